"""Plays recordings at a cluster and reports what differs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelserve import errors, ports
from modelserve.adapters import kube
from modelserve.api import names
from servelab.node.checks import comparing, playing, recording


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a check."""

    scenarios: int
    differences: Sequence[comparing.Difference]

    @property
    def equal(self) -> int:
        """Scenarios without a difference."""
        return self.scenarios - len({each.scenario for each in self.differences})

    def to_json(self) -> dict[str, Any]:
        return {
            "scenarios": self.scenarios,
            "equal": self.equal,
            "differences": [each.to_json() for each in self.differences],
        }


async def check(
    scenarios: Sequence[recording.Scenario], kubeconfig: str, tell: Callable[[str], None]
) -> Report:
    """Play the scenarios at that cluster and compare. Raises ClusterError, SetUpError."""
    async with await kube.KubeCluster.connect(kubeconfig) as cluster:
        await _require_real_time(cluster)
        runs = await playing.Stage(cluster, Path(kubeconfig), tell).play(scenarios)
    pairs = zip(scenarios, runs, strict=True)
    return Report(
        len(scenarios), [d for scenario, run in pairs for d in comparing.compare(scenario, run)]
    )


async def _require_real_time(cluster: kube.KubeCluster) -> None:
    try:
        found = await cluster.get(ports.CONFIG_MAPS, names.SYSTEM_NAMESPACE, names.TIME_CONFIG_MAP)
        scale = float(found["data"][names.TIME_SCALE_KEY])
    except errors.NotFound as error:
        raise errors.SetUpError(
            "ModelServe is not installed in that cluster: start one with `servelab up`"
        ) from error
    if scale != 1:
        raise errors.InputError(
            f"that cluster runs at time scale {scale:g}, and a kubelet is held against real time: "
            "start one with `servelab up --time-scale 1`"
        )
