"""Holds emulated nodes against recordings of a real kubelet."""
