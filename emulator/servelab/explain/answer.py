"""The answer: does it fit, how fast is it at each batch, what does a cold start take, what limits.

Speeds are of a closed loop of equal requests (``StepLaw.service_s``); a decode step is that of
sequences half way through their answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.api import quantities
from modelserve.decide import coldstart, fit, nodefacts
from modelserve.engines import kv, steplaw, stepparts
from servelab.explain.question import Question

# Which part of the hardware a part of a step waits for.
WAITS_FOR: Mapping[str, str] = {
    "weights": "memory bandwidth",
    "kv": "memory bandwidth",
    "compute": "compute",
    "attention": "compute",
    "prefill": "compute",
    "all_reduce": "link between GPUs",
    "per_sequence": "host and launch overhead",
    "overhead": "host and launch overhead",
}


@dataclass(frozen=True, slots=True)
class Limit:
    """The part of the hardware that takes most of the time, and its share of it (0 to 1)."""

    hardware: str
    share: float


@dataclass(frozen=True, slots=True)
class Speed:
    """A batch of equal requests. Times are seconds; rates are of the whole replica."""

    batch: int
    parts: stepparts.StepParts
    step_s: float
    ttft_s: float
    tpot_s: float
    output_tokens_per_s: float
    requests_per_s: float
    limit: Limit


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one set-up; ``speeds`` is empty if it does not fit."""

    question: Question
    fit: fit.Fit
    users: int
    speeds: tuple[Speed, ...]
    prefill_parts: Mapping[str, float]
    prefill_limit: Limit
    cold_start: coldstart.ColdStart
    cold_start_plan: coldstart.Plan

    @property
    def requests_per_s(self) -> float:
        """Most requests per second of that length; 0 if the model does not fit."""
        return max((speed.requests_per_s for speed in self.speeds), default=0.0)

    @property
    def decode_limit(self) -> Limit | None:
        """What limits decoding at the largest batch."""
        return self.speeds[-1].limit if self.speeds else None


def answer(question: Question) -> Explanation:
    """Work it all out. Raises UnknownName for a storage class nobody knows."""
    launch, law = question.launch(), question.law()
    verdict = fit.fit(
        question.model,
        question.gpu,
        question.tensor_parallel,
        question.quantization,
        question.max_model_tokens,
        launch.gpu_memory_utilization,
        launch.engine,
        launch.kv_dtype_bytes,
    )
    tokens = question.input_tokens + question.output_tokens
    held = kv.sequences(launch, question.gpu, tokens)
    users = max(1, min(launch.max_sequences, held)) if verdict.fits else 0
    plan = coldstart.plan(launch, question.gpu, nodefacts.node_rates({}), nodefacts.CacheState())
    prefill = stepparts.of_prompt(law, question.input_tokens)
    return Explanation(
        question=question,
        fit=verdict,
        users=users,
        speeds=tuple(_speed(question, law, batch) for batch in batches(users)),
        prefill_parts=prefill,
        prefill_limit=limit_of(prefill),
        cold_start=coldstart.predict(plan),
        cold_start_plan=plan,
    )


def batches(most: int) -> list[int]:
    """1, 2, 4, … and ``most`` itself; none if that is 0."""
    sizes = []
    size = 1
    while size < most:
        sizes.append(size)
        size *= 2
    return [*sizes, most] if most > 0 else []


def limit_of(parts: Mapping[str, float]) -> Limit:
    """The hardware whose parts together take longest."""
    total_s = sum(parts.values())
    by_hardware: dict[str, float] = {}
    for name, seconds in parts.items():
        hardware = WAITS_FOR[name]
        by_hardware[hardware] = by_hardware.get(hardware, 0.0) + seconds
    longest = max(by_hardware, key=lambda hardware: by_hardware[hardware])
    return Limit(longest, by_hardware[longest] / total_s if total_s else 0.0)


def to_json(found: Explanation) -> dict[str, Any]:
    """The document of ``servelab explain --json``: units are in the names of the keys."""
    question, verdict, decode = found.question, found.fit, found.decode_limit
    return {
        "model": question.model.name,
        "gpu": question.gpu.product_label,
        "tensor_parallel": question.tensor_parallel,
        "quantization": question.quantization.value,
        "engine": question.engine.value,
        "parameters": question.model.parameters,
        "active_parameters": question.model.active_parameters,
        "input_tokens": question.input_tokens,
        "output_tokens": question.output_tokens,
        "max_model_tokens": question.max_model_tokens,
        "fit": {
            "fits": verdict.fits,
            "reason": verdict.reason.value,
            "message": verdict.message,
            "weight_bytes": verdict.needed_bytes,
            "available_bytes": verdict.available_bytes,
            "smallest_tensor_parallel": verdict.smallest_tensor_parallel,
        },
        "kv": {
            "bytes_per_token": question.model.kv_bytes_per_token,
            "tokens": verdict.kv_tokens,
            "users": found.users,
        },
        "speeds": [_speed_json(speed) for speed in found.speeds],
        "requests_per_s": found.requests_per_s,
        "prefill_parts_s": dict(found.prefill_parts),
        "limits": {
            "decode": None if decode is None else _limit_json(decode),
            "prefill": _limit_json(found.prefill_limit),
        },
        "cold_start": {
            "parts": found.cold_start.parts(),
            "weight_limit": found.cold_start_plan.weights.limit.binds.value,
            "image_limit": found.cold_start_plan.pull.binds.value,
            "image_bytes": found.cold_start_plan.pull.download.n_bytes,
            "warm_up_parts_s": {
                part.name.value: part.duration_s for part in found.cold_start_plan.warm_up
            },
        },
    }


def summary(found: Explanation) -> str:
    """What limits it, in one sentence."""
    decode, prefill = found.decode_limit, found.prefill_limit
    if decode is None:
        return "It does not fit, so it serves nothing."
    return (
        f"Decode at batch {found.speeds[-1].batch} is limited by {decode.hardware} "
        f"({decode.share:.0%} of a step); prefill of {found.question.input_tokens} tokens by "
        f"{prefill.hardware} ({prefill.share:.0%})."
    )


def room(found: Explanation) -> str:
    """KV room in tokens and users, in one sentence."""
    tokens = found.question.input_tokens + found.question.output_tokens
    per_token = quantities.format_bytes(found.question.model.kv_bytes_per_token)
    return (
        f"KV cache: room for {found.fit.kv_tokens} tokens of {per_token}, "
        f"{found.users} users at once with {tokens} tokens each."
    )


def _speed(question: Question, law: steplaw.StepLaw, batch: int) -> Speed:
    prompt, output = question.input_tokens, question.output_tokens
    parts = stepparts.of_step(law, batch, batch * (prompt + output // 2))
    first_s = law.first_token_s(prompt)
    service_s = law.service_s(prompt, output, batch)
    step_s = parts.total_s
    # A request meets a step under way and waits for half of it on average.
    ttft_s = first_s + (step_s / 2 if batch > 1 else 0.0)
    return Speed(
        batch=batch,
        parts=parts,
        step_s=step_s,
        ttft_s=ttft_s,
        tpot_s=(service_s - first_s) / (output - 1) if output > 1 else step_s,
        output_tokens_per_s=batch * output / service_s,
        requests_per_s=batch / service_s,
        limit=limit_of(parts.by_name()),
    )


def _speed_json(speed: Speed) -> dict[str, Any]:
    return {
        "batch": speed.batch,
        "step_s": speed.step_s,
        "parts_s": speed.parts.by_name(),
        "ttft_s": speed.ttft_s,
        "tpot_s": speed.tpot_s,
        "output_tokens_per_s": speed.output_tokens_per_s,
        "requests_per_s": speed.requests_per_s,
        "limit": _limit_json(speed.limit),
    }


def _limit_json(limit: Limit) -> dict[str, Any]:
    return {"hardware": limit.hardware, "share": round(limit.share, 4)}
