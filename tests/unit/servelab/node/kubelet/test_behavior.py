"""The words for containers without an engine."""

import json
from typing import Any

import pytest

from modelserve import errors
from modelserve.api import names
from servelab.node.kubelet import behavior
from servelab.node.pods import podspec


def pod(words: Any, annotation: str = names.BEHAVIOR, **container: Any) -> podspec.Pod:
    text = words if isinstance(words, str) else json.dumps(words)
    meta = {"namespace": "d", "name": "p", "uid": "u", "annotations": {annotation: text}}
    return podspec.parse(
        {"metadata": meta, "spec": {"containers": [{"name": "a", "image": "b:1", **container}]}}
    )


def test_a_server_is_well_in_its_time() -> None:
    said = behavior.Behavior(
        listen_after_seconds=2, healthy_from_seconds=3, healthy_until_seconds=9,
        unhealthy_seconds=((5, 6),),
    )  # fmt: skip
    assert [said.listens(age) for age in (1, 2)] == [False, True]
    assert [said.healthy(age) for age in (2, 3, 5.5, 6, 9)] == [False, True, False, True, False]


def test_lines_come_in_order_of_time() -> None:
    said = behavior.Behavior(log=("2 b", "0.5 a c"))
    assert said.lines() == [(0.5, "a c"), (2.0, "b")]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("{", "is no JSON"),
        ([], "must be an object"),
        ({"z": {}}, "names no container: 'z'"),
        ({"a": {"listenAfter": 1}}, "a.listenAfter: Extra inputs"),
        ({"a": {"exitCode": 256}}, "a.exitCode: Input should be less"),
        ({"a": {"log": ["boom"]}}, "'boom' must begin with the second"),
    ],
)
def test_wrong_words_are_named(words: Any, complaint: str) -> None:
    with pytest.raises(errors.InputError, match="of pod d/p") as caught:
        behavior.parse(pod(words))
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"b:1": 5}, "image 'b:1' must be an object"),
        ({"b:1": {"size": 5}}, "unknown word 'size'"),
        ({"b:1": {"pullSeconds": "x"}}, "no number"),
    ],
)
def test_wrong_image_facts_are_named(words: Any, complaint: str) -> None:
    with pytest.raises(errors.InputError, match=complaint):
        behavior.parse_images(pod(words, names.IMAGES))


@pytest.mark.parametrize(
    ("command", "ignores"),
    [
        (["/bin/sh", "-c", "sleep 9"], True),
        (["sh", "-c", "trap exit TERM; sleep 9"], False),
        (["python", "-m", "http.server"], False),
        (["/bin/sleep", "9"], True),
    ],
)
def test_who_ignores_sigterm_as_first_process(command: list[str], ignores: bool) -> None:
    assert behavior.parse(pod({}, command=command))["a"].ignores_term is ignores


def test_given_words_win_over_the_command() -> None:
    said = behavior.parse(pod({"a": {"termAfterSeconds": 1}}, command=["sleep", "9"]))
    assert not said["a"].ignores_term


def test_an_engine_that_its_image_lacks_is_no_engine_and_ends_as_it_would_there() -> None:
    words = ["python3", "-m", "sglang.launch_server"]
    said = behavior.parse(pod({}, image="vllm/vllm-openai", command=words))["a"]
    assert (said.listen, said.exit_code, said.start_error) == (False, 1, "")
    assert said.log[0].endswith("(ModuleNotFoundError: No module named 'sglang')")
    absent = behavior.parse(pod({}, image="vllm/vllm-openai", command=["sglang", "serve"]))["a"]
    assert absent.start_error == 'exec: "sglang": executable file not found in $PATH'
