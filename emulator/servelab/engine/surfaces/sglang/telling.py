"""What an answer tells of its tokens: texts, ids, probabilities, times."""

from collections.abc import Sequence
from typing import Any

from servelab.engine.core.sequences import Finish, FinishReason
from servelab.engine.replying import Choice, Reply
from servelab.engine.surfaces import likely
from servelab.engine.surfaces.likely import Token
from servelab.engine.surfaces.sglang import chunks
from servelab.engine.text import encoding

ABORT, QUEUE_ABORT = "Aborted", "Abort in waiting queue"


def matched(choice: Choice) -> str | int | None:
    """The text or token that stopped it, once it has."""
    return likely.end_token() if likely.ended_by_itself(choice) else choice.stop_reason


def finish_reason(choice: Choice) -> dict[str, Any] | None:
    """Why it ended, once it has, in the native shape."""
    if choice.finished is None:
        return None
    if choice.finished.reason == FinishReason.LENGTH:
        return {"type": "length", "length": choice.finished.output_tokens}
    if choice.finished.reason == FinishReason.STOP:
        return {"type": "stop", "matched": matched(choice)}
    if in_queue(choice):
        return {"type": "abort", "message": QUEUE_ABORT}
    return {"type": "abort", "message": ABORT, "status_code": None, "err_type": None}


def in_queue(choice: Choice) -> bool:
    """Whether it was aborted before it ever ran: little is told of such a one."""
    return (
        choice.finished is not None
        and choice.finished.reason == FinishReason.ABORT
        and choice.finished.scheduled_s is None
    )


def prompt_tokens(reply: Reply) -> int:
    """Of all prompts but those whose first answer never ran."""
    firsts = reply.choices[:: reply.call.n]
    return sum(choice.prompt.tokens for choice in firsts if not in_queue(choice))


def chat_logprobs(told: Sequence[Token]) -> dict[str, Any]:
    """In a chat's shape."""
    return likely.content(told, _entry)


def _entry(text: str, rank: int) -> dict[str, Any]:
    return {
        "token": text,
        "bytes": list(text.encode()),
        "logprob": likely.logprob(rank),
    }


def text_logprobs(told: Sequence[Token], prompt: Sequence[int] | None = None) -> dict[str, Any]:
    """In a text completion's shape; offsets are not told. ``prompt``: ids that go before."""
    before = [encoding.decode([token]) for token in prompt or ()]
    values: list[float | None] = [
        None if place == 0 else likely.logprob() for place in range(len(before))
    ]
    tops: list[dict[str, float] | None] = []
    if any(token.candidates for token in told):
        tops = [
            None if place == 0 else {text: likely.logprob()} for place, text in enumerate(before)
        ]
        tops += map(likely.ranks, told)
    return {
        "text_offset": [-1] * (len(before) + len(told)),
        "token_logprobs": [*values, *(likely.logprob() for _ in told)],
        "tokens": [*before, *(token.text for token in told)],
        "top_logprobs": tops,
    }


def native_logprobs(
    told: Sequence[Token], prompt: Sequence[int], top: int, *, texts: bool
) -> dict[str, Any]:
    """In the native shape: value, id and, where asked for, text."""
    before = [
        [
            None if place == 0 else likely.logprob(),
            token,
            encoding.decode([token]) if texts else None,
        ]
        for place, token in enumerate(prompt)
    ]
    fields: dict[str, Any] = {
        "input_token_logprobs": before,
        "output_token_logprobs": [
            [likely.logprob(), token.id, token.text if texts else None] for token in told
        ],
        "output_token_logprobs_length": len(told),
    }
    if top:
        fields["input_top_logprobs"] = [
            None if place == 0 else [each] for place, each in enumerate(before)
        ]
        fields["output_top_logprobs"] = [
            [
                [likely.logprob(rank), token_id, text if texts else None]
                for rank, (token_id, text) in enumerate(token.candidates)
            ]
            for token in told
        ]
    return fields


def meta(
    name: str,
    choice: Choice,
    completion_tokens: int,
    logprobs: dict[str, Any],
    times: dict[str, Any],
) -> dict[str, Any]:
    """The native route's ``meta_info``; ``times`` differ by what the server measures."""
    if in_queue(choice):
        return unstarted(name, finish_reason(choice), times)
    before = {name: times[name] for name in SCHEDULED if name in times}
    after = {name: value for name, value in times.items() if name not in SCHEDULED}
    return {
        "id": name,
        "finish_reason": finish_reason(choice),
        "prompt_tokens": choice.prompt.tokens,
        "weight_version": chunks.WEIGHT_VERSION,
        "num_retractions": choice.finished.preemptions if choice.finished else 0,
        **before,
        **logprobs,
        "reasoning_tokens": 0,
        "completion_tokens": completion_tokens,
        "cached_tokens": choice.cached_tokens,
        "dp_rank": None,
        **after,
    }


def unstarted(name: str, reason: dict[str, Any] | None, times: dict[str, Any]) -> dict[str, Any]:
    """The ``meta_info`` of a request that never ran."""
    e2e = {"e2e_latency": times["e2e_latency"]} if "e2e_latency" in times else {}
    sent_name = "response_sent_to_client_ts"
    sent = {sent_name: times[sent_name]} if sent_name in times else {}
    told = {"id": name, "finish_reason": reason, "weight_version": chunks.WEIGHT_VERSION}
    return told | e2e | {"completion_tokens": 0} | sent


# Times the scheduler measures; they stand before the others.
SCHEDULED = ("forward_entry_time", "prefill_finished_time", "queue_time")


def times(
    finish: Finish | None, sent_unix_s: float | None, now_unix_s: float, *, measured: bool
) -> dict[str, Any]:
    """Times of one request; ``measured``: the server runs with its metrics.

    ``sent_unix_s`` is when the first part of the answer went out, None in all later parts but the
    last.
    """
    sent = {} if sent_unix_s is None else {"response_sent_to_client_ts": sent_unix_s}
    if finish is None:
        return sent
    told: dict[str, Any] = {"e2e_latency": finish.at_s - finish.arrived_s}
    if not measured:
        return told | sent
    arrived = now_unix_s - (finish.at_s - finish.arrived_s)
    told["request_received_ts"] = arrived
    if finish.first_token_s is not None:
        first_s = finish.first_token_s - finish.arrived_s
        told["first_token_latency"] = first_s
        told["prefill_finished_time"] = arrived + first_s
    told["api_server_dispatch_finish_ts"] = arrived
    told |= sent | {"request_finished_ts": now_unix_s}
    if finish.scheduled_s is not None:
        told["queue_time"] = finish.scheduled_s - finish.arrived_s
        told["forward_entry_time"] = arrived + told["queue_time"]
    if finish.output_tokens > 1 and finish.first_token_s is not None:
        decode_s = (finish.last_token_s or finish.at_s) - finish.first_token_s
        if decode_s > 0:
            told["decode_throughput"] = (finish.output_tokens - 1) / decode_s
    return told
