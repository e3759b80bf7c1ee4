"""Several policies on the same draws: each request, length and cold start the same for all."""

from collections.abc import Callable, Iterator, Sequence

from servelab.sim import outcome, running, scenario, traffic

DEFAULT: Sequence[str] = ("committed", "hpa", "keda", "knative", "oracle")

Progress = Callable[[str, float], None]


def compare(
    given: scenario.Scenario,
    policies: Sequence[str],
    lines: traffic.Lines = traffic.open_trace,
    *,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[running.Run, outcome.Outcome]]:
    """Run one policy after the other. ``progress`` gets the policy and simulated seconds.

    Raises InputError for a name that no policy has.
    """
    for name in policies:

        def tell(at_s: float, name: str = name) -> None:
            if progress is not None:
                progress(name, at_s)

        run = running.run(given, name, lines, seed=seed, progress=tell)
        yield run, outcome.of(run, given)
