"""Kubernetes manifests as dictionaries. Pure."""
