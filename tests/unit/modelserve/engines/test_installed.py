"""Commands that an official image has no program for."""

import pytest

from modelserve.api.spec import EngineType
from modelserve.engines import installed

VLLM = "vllm/vllm-openai:v0.33.0"
SGLANG = "lmsysorg/sglang:v0.5.23"
TRITON = "nvcr.io/nvidia/tritonserver:25.10-vllm-python-py3"
FRONT_END = "/opt/tritonserver/python/openai/openai_frontend/main.py"


def lack(image: str, *command: str) -> installed.Lack | None:
    return installed.lack({"image": image, "command": list(command)})


@pytest.mark.parametrize(
    ("image", "command"),
    [
        (VLLM, ("vllm", "serve", "M")),
        (VLLM, ("python3", "-m", "vllm.entrypoints.openai.api_server")),
        (VLLM, ()),
        (VLLM, ("python3", "app.py")),
        (VLLM, ("sh", "-c", "echo sglang; vllm serve M")),
        (SGLANG, ("python3", "-m", "sglang.launch_server")),
        ("lmsysorg/sglang:v0.4.6", ("python3", "-m", "vllm.entrypoints.openai.api_server")),
        (TRITON, ("vllm", "serve", "M")),
        ("registry.local/team/llm:1", ("vllm", "serve", "M")),
        ("registry.local/vllm-openai:1", ("/usr/bin/vllm", "serve", "M")),
    ],
)
def test_what_may_be_there_is_not_missed(image: str, command: tuple[str, ...]) -> None:
    assert lack(image, *command) is None


@pytest.mark.parametrize(
    ("image", "command", "why"),
    [
        (SGLANG, ("vllm", "serve", "M"), 'exec: "vllm": executable file not found in $PATH'),
        (VLLM, ("trtllm-serve", "M"), 'exec: "trtllm-serve": executable file not found in $PATH'),
        ("mirror.local/vllm-openai", ("/opt/sglang", "serve"), "stat /opt/sglang: no such file"),
    ],
)
def test_a_missing_program_cannot_be_started(
    image: str, command: tuple[str, ...], why: str
) -> None:
    found = lack(image, *command)
    assert found is not None
    assert why in found.start_error


@pytest.mark.parametrize(
    ("command", "line", "exit_code"),
    [
        (("python3", "-m", "sglang"), "/usr/bin/python3: No module named sglang", 1),
        (
            ("python3", "-m", "sglang.launch_server", "--model-path=M"),
            "/usr/bin/python3: Error while finding module specification for "
            "'sglang.launch_server' (ModuleNotFoundError: No module named 'sglang')",
            1,
        ),
        (("sh", "-c", "cd /x && exec sglang serve"), "sh: 1: sglang: not found", 127),
        (("/bin/bash", "-c", "sglang serve"), "bash: line 1: sglang: command not found", 127),
        (("sh", "-c", "python3 -m sglang"), "/usr/bin/python3: No module named sglang", 1),
        (("python3", FRONT_END), f"python3: can't open file '{FRONT_END}': [Errno 2] No such", 2),
    ],
)
def test_who_begins_and_finds_nothing_says_so(
    command: tuple[str, ...], line: str, exit_code: int
) -> None:
    found = lack(VLLM, *command)
    assert found is not None
    assert (found.start_error, found.exit_code) == ("", exit_code)
    assert found.line.startswith(line)


def test_it_says_which_engine_is_there() -> None:
    found = lack(VLLM, "text-generation-launcher")
    assert found is not None
    assert (found.engine, found.holds) == (EngineType.TGI, EngineType.VLLM)
