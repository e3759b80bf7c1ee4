"""From the gateways' snapshots to one signal: sums of what is, differences of what was counted.

Counters run since a gateway's start and are keyed by (gateway, epoch): a gateway that restarts
begins a new key at zero, and one that comes back into sight is taken up where it was.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from modelserve.api import wire
from modelserve.decide import observation

Key = tuple[str, str]  # gateway, epoch

# Past so many gateways and epochs, those out of sight are forgotten.
REMEMBERED = 256


class Totals(NamedTuple):
    """One gateway's counters of one model, as last seen."""

    arrivals: int = 0
    completions: int = 0
    service_sum_s: float = 0.0


NO_TOTALS = Totals()


class Counters(NamedTuple):
    """What has been accounted for of one model; ``primed`` after the first look at gateways."""

    seen: Mapping[Key, Totals] = MappingProxyType({})
    primed: bool = False


class Merged(NamedTuple):
    """All live gateways' figures of one model."""

    signal: observation.GatewaySignal
    in_flight: Mapping[str, int]  # by pod UID, sum over gateways
    admitted: frozenset[str]  # UIDs


def merge(
    snapshots: Iterable[wire.DemandSnapshot], namespace: str, name: str, counters: Counters
) -> tuple[Merged, Counters]:
    """Add up one model over the live gateways' newest snapshots.

    On the first look (after an operator restart) counters only set the start: what was counted
    before is no arrival of now. A gateway or model that appears later starts from zero.
    """
    live = held = refused = arrivals = completions = 0
    oldest_s = service_sum_s = 0.0
    in_flight: dict[str, int] = {}
    admitted: set[str] = set()
    seen: dict[Key, Totals] = dict(counters.seen)
    live_keys: set[Key] = set()
    for snapshot in snapshots:
        live += 1
        key = (snapshot.gateway, snapshot.epoch)
        live_keys.add(key)
        for model in snapshot.models:
            if model.name == name and model.namespace == namespace:
                break
        else:
            seen.setdefault(key, NO_TOTALS)
            continue
        held += max(0, model.held)
        refused += max(0, model.refused_recently)
        oldest_s = max(oldest_s, model.oldest_held_s)
        for uid, count in model.in_flight.items():
            in_flight[uid] = in_flight.get(uid, 0) + max(0, count)
        admitted.update(model.admitted)
        total = Totals(model.arrivals, model.completions, model.service_sum_s)
        before = seen.get(key, NO_TOTALS if counters.primed else total)
        arrivals += max(0, total.arrivals - before.arrivals)
        completions += max(0, total.completions - before.completions)
        service_sum_s += max(0.0, total.service_sum_s - before.service_sum_s)
        seen[key] = total
    if len(seen) > REMEMBERED:
        seen = {key: total for key, total in seen.items() if key in live_keys}
    signal = observation.GatewaySignal(
        live, held, oldest_s, refused, arrivals, completions, service_sum_s
    )
    told = Merged(signal, in_flight, frozenset(admitted))
    return told, Counters(seen, counters.primed or live > 0)
