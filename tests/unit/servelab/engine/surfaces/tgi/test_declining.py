"""A chat whose functions have answered: the model calls none, and is asked anew."""

from typing import Any

from modelserve.api.spec import EngineType
from servelab.engine.checks import surface
from servelab.engine.surfaces.tgi import tools
from servelab.engine.text import encoding

FUNCTION = {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}
BODY: dict[str, Any] = {
    "model": "tgi",
    "messages": [{"role": "user", "content": "hello"}, {"role": "tool", "content": "42"}],
    "tools": [{"type": "function", "function": FUNCTION}],
    "max_tokens": 30,
}
SAID = encoding.count('{"function": {"_name": "no_tool"}}')
PATH = "/v1/chat/completions"


def row(status: int, response: dict[str, Any], **changes: Any) -> dict[str, Any]:
    asked = {"name": "chat", "method": "POST", "path": PATH, "body": BODY | changes}
    headers = {"content-type": "application/json"}
    if "stream" in changes:
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
    return asked | {"status": status, "response_headers": headers, "response": response}


async def differences(*rows: dict[str, Any]) -> list[surface.Difference]:
    report = await surface.check(rows, EngineType.TGI)
    return list(report.differences)


async def test_the_second_answer_is_told_with_the_tokens_of_the_first() -> None:
    head = {"object": "chat.completion", "id": "", "created": "<time>", "model": "<name>"}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "<text>"},
        "logprobs": None,
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": "<n>", "completion_tokens": SAID, "total_tokens": "<n>"}
    told = head | {"system_fingerprint": "<text>", "choices": [choice], "usage": usage}
    assert await differences(row(200, {"json": told})) == []


async def test_an_answer_cut_off_before_it_says_so_is_an_error() -> None:
    told = {"error": "<text>", "error_type": "tool_error"}
    assert await differences(row(422, {"json": told}, max_tokens=3)) == []


async def test_a_stream_cut_off_before_it_says_so_ends_without_a_word() -> None:
    told = {"events": [{"data": "[DONE]"}]}
    assert await differences(row(200, told, max_tokens=3, stream=True)) == []


async def test_a_stream_begins_with_the_second_answer() -> None:
    delta = {"role": "assistant", "content": "<text>"}
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
    head = {"object": "chat.completion.chunk", "id": "", "created": "<time>", "model": "<name>"}
    chunk = {"data": head | {"system_fingerprint": "<text>", "choices": [choice], "usage": None}}
    last = {"data": chunk["data"] | {"choices": [choice | {"finish_reason": "length"}]}}
    most = SAID + 1
    events = [*[chunk] * (most - 1), last, {"data": "[DONE]"}]
    assert await differences(row(200, {"events": events}, max_tokens=most, stream=True)) == []


def test_the_name_is_enough_to_say_so() -> None:
    assert tools.says_no('{"function": {"_name": "no_tool"')
    assert not tools.says_no('{"function": {"_name": "no_')
    assert not tools.says_no('{"function": {"_name": "f"}}')
