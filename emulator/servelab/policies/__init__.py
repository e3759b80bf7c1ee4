"""Autoscaling policies of other systems, to compare ours with. Pure; nothing of theirs is copied.

Each module holds one system's rules as functions and its constants as defaults of a frozen
dataclass that is the policy (see ``policy``). Beside each constant stands where it comes from.
"""
