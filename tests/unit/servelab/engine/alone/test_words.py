"""Flags of a file and of the environment as words of a command line."""

from typing import Any

import pytest

from modelserve import errors
from modelserve.engines import arguments
from servelab.engine.alone import words

TABLE = arguments.load("vllm-0.33.0")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("max-num-seqs", 32, ["--max-num-seqs=32"]),
        ("max_num_seqs", "32", ["--max-num-seqs=32"]),
        ("enforce-eager", True, ["--enforce-eager"]),
        ("enforce-eager", False, ["--no-enforce-eager"]),
        ("headless", False, []),
        ("served-model-name", ["a", "b"], ["--served-model-name", "a", "b"]),
        ("compilation-config", {"mode": 3}, ["--compilation-config", '{"mode": 3}']),
        ("max-model-len", "32k", ["--max-model-len=32k"]),
        ("max-model-len", None, []),
    ],
)
def test_a_key_of_a_file_is_a_flag(key: str, value: Any, expected: list[str]) -> None:
    assert words.of_value(TABLE, key, value) == expected


def test_an_unknown_key_suggests_the_nearest() -> None:
    with pytest.raises(errors.InputError, match="did you mean max-num-seqs"):
        words.of_value(TABLE, "max-num-seqz", 1)


def test_variables_are_flags_but_for_ours_and_those_of_a_service() -> None:
    environment = {
        "SERVELAB_ENGINE_MAX_NUM_SEQS": "32",
        "SERVELAB_ENGINE_ENFORCE_EAGER": "True",
        "SERVELAB_ENGINE_ENABLE_PREFIX_CACHING": "0",
        "SERVELAB_ENGINE_SERVED_MODEL_NAME": "'my model' other",
        "SERVELAB_ENGINE_GPU": "l4",
        "SERVELAB_ENGINE_SERVICE_HOST": "10.0.0.1",
        "SERVELAB_ENGINE_PORT_8000_TCP_ADDR": "10.0.0.1",
        "HOME": "/",
    }
    assert words.of_environment(TABLE, environment, {"GPU"}) == [
        "--no-enable-prefix-caching",
        "--enforce-eager",
        "--max-num-seqs=32",
        *("--served-model-name", "my model", "other"),
    ]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("MAX_NUM_SEQZ", "1", "SERVELAB_ENGINE_MAX_NUM_SEQZ: unknown flag"),
        ("ENFORCE_EAGER", "maybe", "SERVELAB_ENGINE_ENFORCE_EAGER: 'maybe' is neither"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(name: str, value: str, sentence: str) -> None:
    with pytest.raises(errors.InputError, match=sentence):
        words.of_environment(TABLE, {f"SERVELAB_ENGINE_{name}": value}, ())


@pytest.mark.parametrize(
    ("own", "before", "model", "expected"),
    [
        (["M", "--a"], ["--b"], None, ["M", "--b", "--a"]),
        (["--a", "M"], ["--b"], None, ["--b", "--a", "M"]),
        (["--a"], ["--b"], "M", ["M", "--b", "--a"]),
        ([], [], "M", ["M"]),
    ],
)
def test_what_counts_less_comes_first_after_the_model(
    own: list[str], before: list[str], model: str | None, expected: list[str]
) -> None:
    assert words.joined(own, before, model) == expected
