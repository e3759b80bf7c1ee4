"""A small shell inside containers that do not exist: words in, text and exit codes out (pure)."""
