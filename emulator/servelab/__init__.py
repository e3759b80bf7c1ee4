"""Servelab: GPU nodes, cold starts and inference engines, emulated faithfully and without a GPU."""
