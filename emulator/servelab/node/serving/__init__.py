"""What a kubelet serves over HTTPS: logs, exec, port-forward, metrics, stats, health."""
