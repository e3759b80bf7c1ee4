"""Records what a real kubelet does with pods: `make record-kubelet` (Linux, root)."""
