"""The sentences of a decision's message: the same numbers, put the same way everywhere."""

from modelserve.decide import demand, supply


def number(value: float) -> str:
    """A number of requests, without a fraction that means nothing."""
    return f"{value:.0f}" if value >= 9.95 or abs(value - round(value)) < 0.05 else f"{value:.1f}"


def seconds(value_s: float) -> str:
    """Seconds for people: ``4.2 s``, ``41 s``, ``12 min``."""
    if value_s < 9.95:
        return f"{value_s:.1f} s"
    return f"{value_s:.0f} s" if value_s < 600 else f"{value_s / 60:.0f} min"


def rate(per_s: float) -> str:
    """``1.9/s``; slow ones by the minute, ``4.2/min``."""
    return f"{per_s:.1f}/s" if per_s >= 0.95 or not per_s else f"{per_s * 60:.1f}/min"


def replicas(count: int) -> str:
    """``1 replica``, ``2 replicas``."""
    return "1 replica" if count == 1 else f"{count} replicas"


def demanded(now: demand.Demand, arrival_rate_per_s: float, service_s: float) -> str:
    """``23 requests in demand (12 held, 3 waiting, 8 running), 1.9/s arriving, 4.2 s each``."""
    total = now.total
    if total <= 0 and arrival_rate_per_s <= 0:
        return "no requests"
    refused = f", {now.refused} refused" if now.refused else ""
    what = "request" if total == 1 else "requests"
    arriving = f"{arrival_rate_per_s:.1f}/s arriving, " if arrival_rate_per_s >= 0.05 else ""
    return (
        f"{number(total)} {what} in demand ({now.held} held, {number(now.waiting)} waiting, "
        f"{number(now.running)} running{refused}), {arriving}{seconds(service_s)} each"
    )


def starting(have: supply.Supply, now_s: float) -> str:
    """Who is starting, and when they are there."""
    count = len(have.starting_s)
    if not count:
        return "nothing is starting"
    first_s, last_s = have.starting_s[0] - now_s, have.starting_s[-1] - now_s
    if count == 1:
        return f"1 replica is starting and will be there in {seconds(first_s)}"
    if seconds(first_s) == seconds(last_s):
        return f"{count} replicas are starting and will be there in {seconds(first_s)}"
    return f"{count} replicas are starting, there in {seconds(first_s)} to {seconds(last_s)}"


def step(current: int, count: int) -> str:
    """``so 2 → 3``, or that it stays."""
    return f"so it stays at {current}" if current == count else f"so {current} → {count}"
