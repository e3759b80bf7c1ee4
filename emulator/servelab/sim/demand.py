"""What the traffic needs by itself, whatever anybody decides: the yardstick beside a run."""

from modelserve.decide import prediction
from modelserve.engines import steplaw
from servelab.policies import oracle
from servelab.sim import scenario, traffic


def needs(model: scenario.SimulatedModel, seed: int, lines: traffic.Lines) -> oracle.Needs | None:
    """Replicas over time so that no request would wait; None for closed loops, and what cannot run.

    Service times are by the step law at full slots. Reads all of the traffic.
    """
    assessed = prediction.assess(model.name, model.spec)
    sources = traffic.of(model, seed, lines)
    if sources.clients or isinstance(assessed, prediction.Problem):
        return None
    slots = assessed.slots
    law = steplaw.StepLaw.of_launch(assessed.launch, assessed.gpu)
    requests = (
        (each.at_s, law.service_s(each.input_tokens, each.output_tokens, slots))
        for each in sources.stream
    )
    utilization = model.spec.scaling.target_utilization or 1.0
    return oracle.needs(requests, slots=slots, utilization=utilization)
