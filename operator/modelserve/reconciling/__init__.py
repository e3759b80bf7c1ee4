"""Observe, decide, apply: what the operator does for one ModelServe, written against ports."""
