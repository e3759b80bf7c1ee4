"""Emulated GPU nodes: registration, the life of pods bound to them, and the kubelet's API."""
