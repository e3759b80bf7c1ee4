"""What moves for one engine: its image and its weights, told in Unix seconds, real."""

from dataclasses import dataclass

from servelab.node.rules.context import Host
from servelab.timing import transfers


@dataclass(frozen=True, slots=True)
class Moves:
    """Its pull, at the node's image store, and the one transfer of the step that runs."""

    host: Host
    pull_key: str
    key: str

    def start(self, work: transfers.Work, at: float) -> None:
        """A step begins, or began then."""
        self.host.transfers.start(self.key, work, at * self.host.scale)

    def stop(self, now_s: float) -> None:
        """The step that ran, if any, is over."""
        self.host.transfers.stop(self.key, now_s * self.host.scale)

    def step_ends_s(self) -> float:
        """When the step that runs will have ended, as things are."""
        return self.host.transfers.ends_at_s(self.key) / self.host.scale

    def pull_ends_s(self) -> float:
        """When its image will be there."""
        return self.host.images.state(self.pull_key).ends_s / self.host.scale

    def of_step(self, now_s: float) -> transfers.Progress | None:
        """How far the step is; None if it has no known length."""
        return self.host.transfers.progress(self.key, now_s * self.host.scale)

    def of_pull(self, now_s: float) -> transfers.Progress | None:
        """How far the pull is; None while it waits its turn."""
        at_s = now_s * self.host.scale
        begun = self.host.images.state(self.pull_key).begun_s <= at_s
        return self.host.images.progress(self.pull_key, at_s) if begun else None
