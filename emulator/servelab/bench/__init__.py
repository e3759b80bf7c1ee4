"""Benches: each measures one side of the system and reports figures. No bench is a timed test."""
