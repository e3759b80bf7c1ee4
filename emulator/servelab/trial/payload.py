"""Chat requests as the bytes that go over the wire."""

import json
from dataclasses import dataclass

from servelab.engine.text import answers, template
from servelab.workload import arrivals

TEMPLATE_TOKENS = template.MESSAGE_TOKENS + template.ANSWER_TOKENS


@dataclass(frozen=True, slots=True)
class Request:
    """Bytes ready to send: at which emulated second, and the tokens its answer must have."""

    at_s: float
    answer_tokens: int
    content: bytes


def streamed_chat(model: str, host: str, arrival: arrivals.Arrival, seed: int) -> Request:
    """A streamed chat of exactly the arrival's lengths; ``seed`` draws the words.

    A prompt shorter than the chat template itself (eight tokens) becomes one word.
    """
    words = max(1, arrival.input_tokens - TEMPLATE_TOKENS)
    body = {
        "model": model,
        "messages": [{"role": "user", "content": answers.Words(seed).text(words)}],
        "max_tokens": arrival.output_tokens,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    document = json.dumps(body).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(document)}\r\n\r\n"
    )
    return Request(arrival.at_s, arrival.output_tokens, head.encode() + document)
