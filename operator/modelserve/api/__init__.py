"""What the processes agree on: the custom resources, the names and the wire contracts. Pure."""
