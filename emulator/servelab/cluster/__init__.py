"""The local cluster: a real Kubernetes control plane and our own processes, without containers."""
