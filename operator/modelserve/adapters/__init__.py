"""The edges: the Kubernetes API, engines' metrics, gateways' demand, the clock."""
