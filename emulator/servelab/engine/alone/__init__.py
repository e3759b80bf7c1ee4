"""Engines without a cluster: what they are told by flags, environment and file, and their run."""
