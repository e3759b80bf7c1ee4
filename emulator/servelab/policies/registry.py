"""The policies by name, each with its system's defaults and the target of the comparison."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from modelserve import errors
from servelab.policies import aibrix, fixed, hpa, hpametrics, keda, knative, kpa, kubeai, rayserve
from servelab.policies.policy import Policy

AnyPolicy = Policy[Any]


@dataclass(frozen=True, slots=True)
class Sizing:
    """What all policies of a comparison are given.

    ``target`` is the open requests that a replica is meant to have, ``slots`` those it works on.
    """

    target: float
    slots: int
    min_replicas: int = 0
    max_replicas: int = 8


def _hpa(sizing: Sizing) -> AnyPolicy:
    metric = hpametrics.Metric(sizing.target)
    return hpa.Hpa((metric,), sizing.min_replicas, sizing.max_replicas)


def _keda(sizing: Sizing) -> AnyPolicy:
    return keda.Keda(
        sizing.target, min_replicas=sizing.min_replicas, max_replicas=sizing.max_replicas
    )


def _knative(sizing: Sizing) -> AnyPolicy:
    knobs = kpa.Knobs(target=sizing.target, total=float(sizing.slots))
    return knative.Knative(knobs, min_scale=sizing.min_replicas, max_scale=sizing.max_replicas)


def _kubeai(sizing: Sizing) -> AnyPolicy:
    return kubeai.KubeAi(sizing.target, sizing.min_replicas, sizing.max_replicas)


def _aibrix(strategy: aibrix.Strategy) -> Callable[[Sizing], AnyPolicy]:
    def make(sizing: Sizing) -> AnyPolicy:
        least = max(1, sizing.min_replicas)  # from zero it never comes back
        return aibrix.AiBrix(sizing.target, sizing.max_replicas, strategy, min_replicas=least)

    return make


def _ray(sizing: Sizing) -> AnyPolicy:
    return rayserve.RayServe(sizing.target, sizing.min_replicas, sizing.max_replicas)


_MAKERS: dict[str, Callable[[Sizing], AnyPolicy]] = {
    "hpa": _hpa,
    "keda": _keda,
    "knative": _knative,
    "kubeai": _kubeai,
    "aibrix-apa": _aibrix(aibrix.Strategy.APA),
    "aibrix-kpa": _aibrix(aibrix.Strategy.KPA),
    "ray-serve": _ray,
}
_FIXED = "fixed-"


def names() -> Sequence[str]:
    """What ``of`` knows; ``fixed-N`` stands for any number."""
    return (*_MAKERS, "fixed-N")


def of(name: str, sizing: Sizing) -> AnyPolicy:
    """The policy of a name. Raises InputError. An oracle is made of the trace (see ``oracle``)."""
    if name in _MAKERS:
        return _MAKERS[name](sizing)
    count = name.removeprefix(_FIXED)
    if name.startswith(_FIXED) and count.isdecimal() and len(count) < 7:
        return fixed.Fixed(int(count))
    raise errors.InputError(f"no policy is called {name!r}; there are {', '.join(names())}")
