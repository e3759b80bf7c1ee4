"""What demo and benches share: a light load client, and eyes on the cluster."""
