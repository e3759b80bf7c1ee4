"""What large requests cost others: the longest wait between two tokens of a neighbour's stream."""

import asyncio
import json
import random
from collections.abc import Mapping
from typing import Any

from servelab.bench import streams
from servelab.engine.text import vocabulary

PROMPTS = 100
PROMPT_WORDS = 6000
TIMES = 3
STREAM_TOKENS = 8000


def large() -> Mapping[str, Any]:
    """A text completion of some four megabytes."""
    rng, words = random.Random(1), vocabulary.words()
    texts = [" ".join(rng.choices(words, k=PROMPT_WORDS)) for _ in range(PROMPTS)]
    return {"model": "m", "max_tokens": 1, "prompt": texts}


async def longest_wait_s(port: int) -> float:
    """Seconds, while large requests are answered one after the other."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(streams.request(STREAM_TOKENS, stream=True))
    await reader.read(1)
    watching = asyncio.create_task(_watch(reader))
    ask = streams.post("/v1/completions", json.dumps(large()).encode())
    for _ in range(TIMES):
        await _whole(port, ask)
    watching.cancel()
    writer.transport.abort()
    return await watching


async def _watch(reader: asyncio.StreamReader) -> float:
    """The longest wait until it is cancelled."""
    loop, longest_s = asyncio.get_running_loop(), 0.0
    try:
        while True:
            began_s = loop.time()
            await reader.read(65536)
            longest_s = max(longest_s, loop.time() - began_s)
    except asyncio.CancelledError:
        return longest_s


async def _whole(port: int, ask: bytes) -> None:
    """One request and the beginning of its answer, which comes when it is whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(ask)
    await reader.readline()
    writer.transport.abort()
