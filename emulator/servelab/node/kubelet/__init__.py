"""A kubelet's pod worker, step by step: what pods without an engine of ours live by (pure)."""
