"""A scenario over and over with other fields: planned, run in processes, written down."""
