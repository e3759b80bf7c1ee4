"""A fixed count: what a Deployment without any autoscaler does."""

from dataclasses import dataclass

from servelab.policies.decision import Decision, Reason
from servelab.policies.observation import Observation


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always ``count`` replicas."""

    count: int

    @property
    def woken(self) -> bool:
        """It has nothing to do."""
        return False

    def start(self, count: int, now_s: float) -> None:
        """It remembers nothing."""

    def decide(self, seen: Observation, past: None, now_s: float) -> tuple[Decision, None]:
        """The count, whatever is seen."""
        why = f"{self.count}, always"
        return Decision(self.count, seen.count, Reason.FIXED, why, unlimited=self.count), None
