"""Puts recorded requests of a real engine to a mock engine, and compares the answers.

A recording is a JSON list; a row has name, method, path, body or raw, headers, and the answer:
status, response_headers and response (json, events or text), with all that varies or is wording
replaced by words in angle brackets. Where the recording has such a word, ours may be anything of
the right kind. Compared are status, headers, structure, codes, types, null fields, finish reasons,
counts of completion tokens, and the fields a validation error points at.
"""

import json
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiohttp

from modelserve.adapters.clock import SystemClock
from modelserve.api.spec import EngineType
from modelserve.engines import profiles
from modelserve.errors import InputError
from servelab.engine.assembly import EngineSpec
from servelab.engine.core import laws
from servelab.engine.core.config import CoreConfig
from servelab.engine.server import EngineServer

# As the recorded engine was started.
MODEL = "llama-8b"
MAX_SEQUENCES = 8
MAX_MODEL_TOKENS = 2048
# The recorded engine's model did nothing: each step is as short as the next.
STEP_S = 0.001

ANSWER_REAL_S = 60.0
HEADERS = ("content-type", "transfer-encoding", "allow")
# A recording names no more than these fields of an error, in order of the alphabet.
MOST_FIELDS = 6
_FIELD = re.compile(r"\bbody(?:\.\w+)*")
_MASK = re.compile(r"<[a-z_ -]+>")
# How many prompt tokens were in the cache depends on the tokenizer and on what came before.
_COUNTS = frozenset({"cached_tokens", "cache_write_tokens"})
_ABSENT = "<absent>"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where an answer is not the recorded one."""

    name: str
    where: str
    real: Any
    ours: Any


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found."""

    requests: int
    equal: int
    differences: Sequence[Difference]

    def to_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        differences = [asdict(difference) for difference in self.differences]
        return {"requests": self.requests, "equal": self.equal, "differences": differences}


def read(path: Path) -> list[dict[str, Any]]:
    """A recording. Raises InputError."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{path} is no JSON: {error}") from None
    if not isinstance(rows, list):
        raise InputError(f"{path} must hold a list of recorded requests")
    for number, row in enumerate(rows):
        _check(row, f"{path}, request {number}")
    return rows


def _check(row: object, where: str) -> None:
    kinds = {"name": str, "method": str, "path": str, "status": int, "response": dict}
    for field, kind in kinds.items():
        if not isinstance(row, dict) or not isinstance(row.get(field), kind):
            raise InputError(f"{where}: {field} is missing, or no {kind.__name__}")


async def check(
    rows: Sequence[Mapping[str, Any]],
    engine: EngineType = EngineType.VLLM,
    options: tuple[tuple[str, str], ...] = (),
) -> Report:
    """Put all requests to a fresh engine of this type, one after the other."""
    config = CoreConfig(MAX_SEQUENCES, MAX_MODEL_TOKENS, MAX_MODEL_TOKENS, kv_blocks=4096)
    law = laws.SteadyLaw(STEP_S)
    spec = EngineSpec(MODEL, MODEL, config, law, 0.9, 1, profiles.of(engine), options)
    server = EngineServer(spec, SystemClock(), ends_by_itself=False)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await server.start(sock)
    base = f"http://127.0.0.1:{sock.getsockname()[1]}"
    timeout = aiohttp.ClientTimeout(total=ANSWER_REAL_S)
    found: list[list[Difference]] = []
    try:
        async with aiohttp.ClientSession(base, timeout=timeout) as http:
            for row in rows:
                found.append(compare(row, await _ask(http, row)))
    finally:
        await server.kill()
    equal = sum(not each for each in found)
    return Report(len(rows), equal, [difference for each in found for difference in each])


async def _ask(http: aiohttp.ClientSession, row: Mapping[str, Any]) -> dict[str, Any]:
    """Our answer in the shape of a recorded one."""
    headers = {name.lower(): value for name, value in (row.get("headers") or {}).items()}
    data = None
    if row.get("raw") is not None:
        data = row["raw"].encode()
    elif "body" in row:
        data = json.dumps(row["body"]).encode()
    if data is not None:
        headers.setdefault("content-type", "application/json")
    method, path = row["method"], row["path"]
    skip = ("content-type",) if data is None else ()
    async with http.request(
        method, path, data=data, headers=headers, skip_auto_headers=skip, allow_redirects=False
    ) as answer:
        text = await answer.text()
        names = dict.fromkeys([*HEADERS, *row.get("response_headers", ())])
        told = {name: answer.headers[name] for name in names if name in answer.headers}
    return {"status": answer.status, "response_headers": told, "response": _response(text, told)}


def _response(text: str, headers: Mapping[str, str]) -> dict[str, Any]:
    kind = headers.get("content-type", "")
    if kind.startswith("text/event-stream"):
        return {"events": [_event(block) for block in text.split("\n\n") if block.strip()]}
    if not kind.startswith("application/json"):
        return {"text": text or "<empty>"}
    document = json.loads(text)
    response: dict[str, Any] = {"json": document}
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(error, dict) and error.get("type") == "Bad Request":
        named = sorted(set(_FIELD.findall(str(error.get("message")))))
        response |= {"fields": named[:MOST_FIELDS]} if named else {}
    return response


def _event(block: str) -> dict[str, Any]:
    event: dict[str, Any] = {}
    for line in block.splitlines():
        name, _, value = line.partition(": ")
        event[name] = value
    data = event.get("data", "")
    return event | {"data": data if data == "[DONE]" else json.loads(data)}


def compare(row: Mapping[str, Any], ours: Mapping[str, Any]) -> list[Difference]:
    """Where our answer is not the recorded one."""
    real = {
        "status": row["status"],
        "response_headers": row.get("response_headers", {}),
        "response": row["response"],
    }
    return [Difference(row["name"], *found) for found in _differences(real, ours, "")]


def _differences(real: Any, ours: Any, where: str) -> list[tuple[str, Any, Any]]:
    if isinstance(real, dict) and isinstance(ours, dict):
        return [
            found
            for key in dict.fromkeys([*real, *ours])
            for found in _differences(
                real.get(key, _ABSENT), ours.get(key, _ABSENT), f"{where}.{key}".lstrip(".")
            )
        ]
    if isinstance(real, list) and isinstance(ours, list):
        length = [] if len(real) == len(ours) else [(f"{where}.length", len(real), len(ours))]
        pairs = enumerate(zip(real, ours, strict=False))
        inner = [found for i, pair in pairs for found in _differences(*pair, f"{where}[{i}]")]
        return length + inner
    return [] if _same(real, ours, where.rpartition(".")[2]) else [(where, real, ours)]


def _same(real: Any, ours: Any, name: str) -> bool:
    if name in _COUNTS and real != "<n>":
        return type(real) is type(ours)
    if not isinstance(real, str) or not _MASK.search(real) or real in ("<empty>", _ABSENT):
        return type(real) is type(ours) and bool(real == ours)
    if ours == _ABSENT:
        return False
    if not _MASK.fullmatch(real):
        around = (re.escape(text) for text in _MASK.split(real))
        return isinstance(ours, str) and re.fullmatch(".*".join(around), ours, re.S) is not None
    if real in ("<n>", "<time>"):
        return isinstance(ours, int | float) and not isinstance(ours, bool)
    if real == "<list>":
        return isinstance(ours, list)
    return isinstance(ours, str)
