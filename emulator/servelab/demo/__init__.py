"""The whole story in minutes: from zero to N replicas and back, on a real API server."""
