"""Replays of what real systems did, through our own."""
