"""How many requests each gateway may have in flight at one replica: together, no herd."""

import math
from collections.abc import Mapping, Sequence

from modelserve.api import wire


def cap(slots: int) -> int:
    """All gateways together, at one replica: a little more than its slots."""
    return math.ceil(slots * wire.IN_FLIGHT_FACTOR)


def split(slots: int, weights: Mapping[str, float]) -> dict[str, int]:
    """The cap in proportion to what each gateway holds and has in flight; everyone gets at least 1.

    Without any traffic it is split evenly. Remainders go to the largest fractions, then by name.
    """
    if not weights:
        return {}
    whole = cap(slots)
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
