"""The large request that a neighbour's stream is watched beside."""

import json

from servelab.bench import enginehost, neighbours
from servelab.engine.calls import Served
from servelab.engine.surfaces.vllm import protocol


def test_the_large_request_has_megabytes_and_is_one_that_an_engine_takes() -> None:
    body = json.dumps(neighbours.large()).encode()
    served = Served(enginehost.MODEL, enginehost.MAX_MODEL_TOKENS)
    call = protocol.parse_completion(body, "application/json", served)
    assert (len(body) > 3_000_000, len(call.prompts)) == (True, neighbours.PROMPTS)
