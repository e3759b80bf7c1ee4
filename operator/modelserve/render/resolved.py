"""What the catalogue makes of a spec, frozen in the Deployment: no upgrade of ours rolls a model.

The annotation ``modelserve.dev/resolved`` holds it as JSON, together with a digest of the parts of
the spec it was made from. As long as those parts stay, the frozen values are used again; the
generation would not do for that, since a changed replica count or window raises it too.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

from modelserve import ports
from modelserve.api import names
from modelserve.api import spec as specs
from modelserve.decide import observation, prediction
from modelserve.engines import launch, profiles

# The parts of the spec that reach the pod template by way of the catalogue.
_PARTS = {"model", "engine", "gpu", "storage", "cold_start"}


@dataclass(frozen=True, slots=True)
class Resolved:
    """Everything of the pod template that the catalogue has a say in."""

    digest: str
    gpu_product: str
    gpu_resource: str
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: Mapping[str, str]
    annotations: Mapping[str, str]
    startup_path: str
    health_path: str
    start_deadline_s: int

    def to_text(self) -> str:
        """The annotation's value: JSON, the same for the same values."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the annotation. Raises ValueError, TypeError or KeyError if it is none of ours."""
        data = json.loads(text)
        lists = {"command": tuple(data["command"]), "args": tuple(data["args"])}
        return cls(**{**data, **lists})


def digest(name: str, spec: specs.ModelServeSpec) -> str:
    """Changes exactly when a part of the spec does that the catalogue resolves."""
    document = {"name": name, **spec.model_dump(mode="json", include=_PARTS, exclude_defaults=True)}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def resolve(name: str, spec: specs.ModelServeSpec, assessment: prediction.Assessment) -> Resolved:
    """Put into words what the assessment of the same spec found."""
    gpu = assessment.gpu
    rendered = launch.render(prediction.launch_spec(name, spec))
    profile = profiles.of(spec.engine.type)
    return Resolved(
        digest=digest(name, spec),
        gpu_product=gpu.product_label,
        gpu_resource=gpu.resource_name,
        image=rendered.image,
        command=rendered.command,
        args=rendered.args,
        env=dict(rendered.env),
        annotations=dict(rendered.annotations),
        startup_path=profile.startup_path,
        health_path=profile.health_path,
        start_deadline_s=math.ceil(
            observation.progress_deadline_s(spec, assessment.cold_start().total_s)
        ),
    )


def frozen(deployment: ports.Object | None, wanted_digest: str) -> Resolved | None:
    """What an earlier version resolved for the same parts of the spec; None if nothing usable."""
    annotations = (deployment or {}).get("metadata", {}).get("annotations") or {}
    try:
        found = Resolved.parse(annotations[names.RESOLVED])
    except (KeyError, TypeError, ValueError):
        return None
    return found if found.digest == wanted_digest else None
