"""Measured points of real engines, run through the simulated one and scored."""
