"""The policies by name, each with its system's defaults and the target of the comparison."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from modelserve import errors
from servelab.policies import (
    aibrix,
    fixed,
    hpa,
    hpametrics,
    keda,
    knative,
    kpa,
    kubeai,
    rayserve,
    scalingrules,
)
from servelab.policies.policy import Policy

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

AnyPolicy = Policy[Any]
Rules = TypeVar("Rules", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Sizing:
    """What all policies of a comparison are given.

    ``target`` is the open requests that a replica is meant to have, ``slots`` those it works on.
    ``down_window_s`` and ``cooldown_s`` None: each system's own default. ``activation_replicas``,
    the count that a wake begins with, is for those that have a setting for it.
    """

    target: float
    slots: int
    min_replicas: int = 0
    max_replicas: int = 8
    down_window_s: float | None = None
    cooldown_s: float | None = None
    activation_replicas: int = 1


def _hpa(sizing: Sizing) -> AnyPolicy:
    metric = hpametrics.Metric(sizing.target)
    found = hpa.Hpa((metric,), sizing.min_replicas, sizing.max_replicas)
    return _with(found, down_window_s=sizing.down_window_s)


def _keda(sizing: Sizing) -> AnyPolicy:
    least, most = sizing.min_replicas, sizing.max_replicas
    found = keda.Keda(sizing.target, min_replicas=least, max_replicas=most)
    if sizing.down_window_s is not None:
        down = _with(scalingrules.DEFAULT_DOWN, window_s=sizing.down_window_s)
        found = _with(found, behavior=scalingrules.Behavior(down=down))
    return _with(found, cooldown_s=sizing.cooldown_s)


def _knative(sizing: Sizing) -> AnyPolicy:
    knobs = kpa.Knobs(target=sizing.target, total=float(sizing.slots))
    knobs = _with(
        knobs,
        scale_down_delay_s=sizing.down_window_s,
        activation_scale=sizing.activation_replicas,
    )
    least, most = sizing.min_replicas, sizing.max_replicas
    found = knative.Knative(knobs, min_scale=least, max_scale=most)
    return _with(found, retention_s=sizing.cooldown_s)


def _kubeai(sizing: Sizing) -> AnyPolicy:
    found = kubeai.KubeAi(sizing.target, sizing.min_replicas, sizing.max_replicas)
    return _with(found, scale_down_delay_s=sizing.down_window_s)


def _aibrix(strategy: aibrix.Strategy) -> Callable[[Sizing], AnyPolicy]:
    def make(sizing: Sizing) -> AnyPolicy:
        least = max(1, sizing.min_replicas)  # from zero it never comes back
        found = aibrix.AiBrix(sizing.target, sizing.max_replicas, strategy, min_replicas=least)
        return _with(found, down_cooldown_s=sizing.down_window_s)

    return make


def _ray(sizing: Sizing) -> AnyPolicy:
    found = rayserve.RayServe(sizing.target, sizing.min_replicas, sizing.max_replicas)
    found = _with(found, downscale_delay_s=sizing.down_window_s)
    return _with(found, downscale_to_zero_delay_s=sizing.cooldown_s)


def _with(rules: Rules, **given: Any) -> Rules:
    """With what is given; what is None stays the system's default."""
    known = {name: value for name, value in given.items() if value is not None}
    return dataclasses.replace(rules, **known)


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
