"""The one shape of all policies: state in, decision and state out, time an argument.

A driver calls ``start`` once, then ``decide`` at the last decision's ``revisit_at_s``. It may call
earlier, and does so when a pod gets ready or goes; where ``woken`` is set, also when a request
arrives and no pod is ready. A policy that is not due then changes nothing. The count is applied at
once; the next observation shows it.
"""

from typing import Protocol, TypeVar

from servelab.policies.decision import Decision
from servelab.policies.observation import Observation

State = TypeVar("State")


class Policy(Protocol[State]):
    """One system's rules with its constants. Implementations are frozen dataclasses."""

    @property
    def woken(self) -> bool:
        """Whether the system is told of a request that finds no ready pod."""

    def start(self, count: int, now_s: float) -> State:
        """The state of a policy that takes over ``count`` replicas at ``now_s``."""

    def decide(self, seen: Observation, past: State, now_s: float) -> tuple[Decision, State]:
        """Decide at ``now_s``, emulated monotonic seconds. Raises nothing."""
