"""Scaling settings that meet a promise at the least cost, found by simulating a trace."""
