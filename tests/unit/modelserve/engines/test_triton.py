"""Triton's containers: behind the OpenAI front end, or with its own server."""

from typing import Any

from modelserve.engines import commandline, launch, triton

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
FRONT_END = ["python3", triton.FRONT_END, f"--tokenizer={LLAMA}", "--model-repository=/models"]


def options(container: dict[str, Any]) -> dict[str, str]:
    found = launch.parse(container, {})
    assert found is not None
    return dict(found.options)


def test_the_front_end_serves_on_its_own_port() -> None:
    found = launch.parse({"image": "x", "command": FRONT_END}, {})
    assert found is not None
    assert (found.engine, found.port, found.options) == ("triton", 9000, ())


def test_its_v2_front_end_is_on_a_port_of_its_own() -> None:
    words = [*FRONT_END, "--enable-kserve-frontends", "--default-max-tokens=64"]
    found = options({"image": "x", "command": words})
    assert found == {"kserve-http-port": "8000", "default-max-tokens": "64"}


def test_a_server_is_known_by_the_model_its_surroundings_name() -> None:
    words = ["tritonserver", "--model-repository=/models", "--http-port=8080"]
    env = [{"name": "MODEL_ID", "value": LLAMA}]
    found = launch.parse({"image": "x", "command": words, "env": env}, {})
    assert found is not None
    assert (found.model.name, found.port) == (LLAMA, 8080)
    assert triton.NATIVE in found.options


def test_a_server_of_other_models_is_no_engine() -> None:
    words = ["tritonserver", "--model-repository=/models/resnet50"]
    assert triton.recognise(commandline.read({"image": "x", "command": words})) is None


def test_a_server_in_an_image_for_language_models_needs_no_name() -> None:
    image = "nvcr.io/nvidia/tritonserver:25.09-trtllm-python-py3"
    words = ["tritonserver", "--model-repository=/models"]
    found = launch.parse({"image": image, "command": words}, {})
    assert found is not None
    assert (found.model.name, triton.NATIVE in found.options) == (triton.UNNAMED, True)


def test_a_server_is_known_by_the_folder_of_its_models() -> None:
    words = ["tritonserver", "--model-repository=/models/llama-3.1-8b"]
    found = launch.parse({"image": "x", "command": words}, {})
    assert found is not None
    assert (found.model.name, triton.NATIVE in found.options) == (LLAMA, True)


def test_the_model_of_a_server_has_a_name_without_a_slash() -> None:
    words = ["tritonserver", "--model-repository=/models/llama-3.1-8b"]
    found = launch.parse({"image": "x", "command": words}, {})
    assert found is not None
    assert found.served_name == "ensemble"


def test_a_server_is_told_by_its_surroundings_that_its_models_are_decoupled() -> None:
    words = ["tritonserver", "--model-repository=/models/llama-3.1-8b"]
    words.append("--model-control-mode=explicit")
    env = [{"name": "DECOUPLED_MODE", "value": "True"}]
    found = options({"image": "x", "command": words, "env": env})
    assert (found["decoupled"], found["model-control-mode"]) == ("true", "explicit")
    assert "decoupled" not in options({"image": "x", "command": words})
