"""The pods on those nodes: what they are, and how each is driven and written."""
