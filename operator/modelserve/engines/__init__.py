"""The engines that serve models: their command lines, metric names, paths, and the step law."""
