"""Pools of nodes: which there should be, what they say of themselves, how they come and go."""
