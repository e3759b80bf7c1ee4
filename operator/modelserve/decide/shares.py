"""How many requests each gateway may have in flight at one replica: together, no herd.

What a gateway has in flight already cannot be taken back from it: others get so much less until it
has ended.
"""

import math
from collections.abc import Mapping, Sequence

from modelserve.api import wire


def cap(slots: int) -> int:
    """All gateways together, at one replica: a little more than its slots."""
    return math.ceil(slots * wire.IN_FLIGHT_FACTOR)


def deal(
    slots: int, snapshots: Sequence[wire.DemandSnapshot], namespace: str, name: str
) -> dict[str, int]:
    """Each live gateway's share of one model's replicas, by the gateways' newest snapshots."""
    whole = cap(slots)
    open_ = weights(snapshots, namespace, name)
    busiest = _busiest(snapshots, namespace, name)
    shares = split_whole(whole, open_)
    over: dict[str, int] = {}
    while new := {g: busiest[g] for g, share in shares.items() if busiest[g] > share} | over:
        if new == over:
            break
        over = new
        left = {gateway: weight for gateway, weight in open_.items() if gateway not in over}
        shares |= split_whole(max(0, whole - sum(over.values())), left)
    return shares


def split(slots: int, weights: Mapping[str, float]) -> dict[str, int]:
    """The cap in proportion to what each gateway holds and has in flight; everyone gets at least 1.

    Without any traffic it is split evenly. Remainders go to the largest fractions, then by name.
    """
    return split_whole(cap(slots), weights)


def split_whole(whole: int, weights: Mapping[str, float]) -> dict[str, int]:
    """So many, in proportion to the weights; everyone gets at least 1."""
    if not weights:
        return {}
    total = sum(weights.values())
    exact = {
        name: whole * weight / total if total > 0 else whole / len(weights)
        for name, weight in weights.items()
    }
    shares = {name: math.floor(value) for name, value in exact.items()}
    order = sorted(exact, key=lambda name: (shares[name] - exact[name], name))
    for name in order[: whole - sum(shares.values())]:
        shares[name] += 1
    return {name: max(1, share) for name, share in shares.items()}


def weights(
    snapshots: Sequence[wire.DemandSnapshot], namespace: str, name: str
) -> dict[str, float]:
    """Open requests of one model by gateway."""
    return {
        snapshot.gateway: float(
            sum(
                model.held + sum(model.in_flight.values())
                for model in snapshot.models
                if model.name == name and model.namespace == namespace
            )
        )
        for snapshot in snapshots
    }


def _busiest(snapshots: Sequence[wire.DemandSnapshot], namespace: str, name: str) -> dict[str, int]:
    """The most requests that each gateway has in flight at one replica."""
    return {
        snapshot.gateway: max(
            (
                count
                for model in snapshot.models
                if model.name == name and model.namespace == namespace
                for count in model.in_flight.values()
            ),
            default=0,
        )
        for snapshot in snapshots
    }
