"""Load from the HTTP load generator ``wrk``: chat requests over kept connections."""

import itertools
import json
import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from modelserve import errors
from servelab.cluster import scratch
from servelab.engine.text import vocabulary

PATH = "/v1/chat/completions"
TIMEOUT_S = 30
# So many that nothing an engine might remember of a prompt would help it.
PROMPTS = 4096
PROMPT_WORDS = 8

# Requests take turns, so that no two in a row are the same.
_SCRIPT = """
local bodies = {%s}
local requests, turn = {}, 0
init = function(args)
  local headers = {["Content-Type"] = "application/json"}
  for index, body in ipairs(bodies) do
    requests[index] = wrk.format("POST", "%s", headers, body)
  end
end
request = function()
  turn = turn %% #requests + 1
  return requests[turn]
end
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('\\n{"requests": %%d, "duration_us": %%d, "failed": %%d, "late": %%d}\\n',
    summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.status, errors.timeout))
end
"""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run brought: requests that were answered whole, in ``duration_s``."""

    requests: int
    duration_s: float

    @property
    def per_s(self) -> float:
        """Answers a second."""
        return self.requests / self.duration_s


def check() -> str:
    """The program's path. Raises SetUpError."""
    found = shutil.which("wrk")
    if found is None:
        raise errors.SetUpError(
            "this bench needs the load generator wrk: install the package wrk "
            "(Debian, Ubuntu: apt-get install wrk; macOS: brew install wrk)"
        )
    return found


def chats(
    tokens: Sequence[int], *, stream: bool, prompts: int = PROMPTS
) -> Sequence[dict[str, Any]]:
    """Chat requests for answers of so many tokens in turns, each with words of its own."""
    rng, words = random.Random(1), vocabulary.words()
    ask = {"model": "m", "ignore_eos": True, "stream": stream}
    return [
        ask | {"max_tokens": limit, "messages": [{"role": "user", "content": " ".join(said)}]}
        for limit, said in zip(
            itertools.cycle(tokens),
            (rng.choices(words, k=PROMPT_WORDS) for _ in range(prompts)),
            strict=False,
        )
    ]


def load(
    port: int, bodies: Sequence[dict[str, Any]], connections: int, duration_s: float
) -> Result:
    """Run it to the end. Raises SetUpError, or ModelServeError if a request failed."""
    program = check()
    with scratch.directory("servelab-bench") as directory:
        script = directory / "requests.lua"
        quoted = ", ".join(f"[==[{json.dumps(body)}]==]" for body in bodies)
        script.write_text(_SCRIPT % (quoted, PATH))
        command = [program, "-t", "1", "-c", str(connections), "-d", f"{duration_s:.0f}s"]
        command += ["--timeout", f"{TIMEOUT_S}s", "-s", str(script), f"http://127.0.0.1:{port}"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise errors.SetUpError(f"wrk failed: {(ran.stderr or ran.stdout).strip()}")
    found = json.loads(ran.stdout.strip().rpartition("\n")[2])
    if found["failed"] or found["late"]:
        raise errors.ModelServeError(
            f"of {found['requests']} requests {found['failed']} failed and {found['late']} took "
            f"more than {TIMEOUT_S} s"
        )
    return Result(found["requests"], found["duration_us"] / 1e6)
