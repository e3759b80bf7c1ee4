"""The hand-shake to zero as a model that can be explored: operator, gateways, pods, requests."""
