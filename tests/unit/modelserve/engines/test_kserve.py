"""KServe's runtime: its containers are vLLM behind other paths."""

from typing import Any

import pytest

from modelserve.engines import commandline, kserve, launch, profiles
from modelserve.engines.launch import Launch

IMAGE = "kserve/huggingfaceserver:v0.20.0-gpu"
MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def parsed(args: list[str], **container: Any) -> Launch:
    found = launch.parse({"image": IMAGE, "args": args, **container}, {})
    assert found is not None
    return found


def test_an_inference_service_as_kserve_writes_it() -> None:
    found = parsed(["--model_name=llama3", f"--model_id={MODEL}", "--max_model_len=4096"])
    assert (found.engine, found.served_name, found.model.name) == ("vllm", "llama3", MODEL)
    assert (found.max_model_tokens, found.port) == (4096, 8080)
    assert kserve.FRONT_END in found.options


def test_a_model_without_a_name_is_called_model() -> None:
    assert parsed([f"--model_id={MODEL}"]).served_name == "model"


def test_vllms_own_name_goes_first() -> None:
    words = [f"--model_id={MODEL}", "--model_name=a", "--served-model-name=b"]
    assert parsed(words).served_name == "b"


@pytest.mark.parametrize("command", [["python", "-m", "huggingfaceserver"], []])
def test_it_is_known_by_its_module_or_its_image(command: list[str]) -> None:
    container = commandline.read({"image": IMAGE, "command": command, "args": ["--model_id=a"]})
    assert kserve.recognise(container) is not None


def test_vllm_itself_stays_the_module_of_its_engine() -> None:
    assert profiles.of(kserve.PROFILE.engine).health_path == "/health"
    assert kserve.PROFILE.health_path == "/v2/health/ready"
