"""Changes an engine's queue metrics and makes it fail while it runs, for tests of autoscalers."""
