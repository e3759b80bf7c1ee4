"""What to expect of a model on a GPU, and which part of the hardware limits it. Pure."""
