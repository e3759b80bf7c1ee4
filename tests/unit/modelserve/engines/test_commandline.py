"""Command lines as the kubelet and a shell take them apart."""

import pytest

from modelserve.engines import commandline


@pytest.mark.parametrize(
    ("container", "words"),
    [
        pytest.param({"command": ["a"], "args": ["b", "c"]}, ("a", "b", "c"), id="plain"),
        pytest.param({"args": ["$(X)"], "env": [{"name": "X", "value": "y"}]}, ("y",), id="env"),
        pytest.param({"args": ["$(X)"]}, ("$(X)",), id="unknown-env-stays"),
        pytest.param(
            {"command": ["/bin/bash", "-ec"], "args": ["exec a \\\n  --b 'c d'"]},
            ("exec", "a", "--b", "c d"),
            id="script",
        ),
        pytest.param(
            {"command": ["sh", "-c", "a $Y ${Y}"], "env": [{"name": "Y", "value": "z"}]},
            ("a", "z", "z"),
            id="shell-env",
        ),
        pytest.param({"command": ["sh", "-c", "a 'b"]}, ("sh", "-c", "a 'b"), id="open-quote"),
        pytest.param({}, (), id="nothing"),
    ],
)
def test_words(container: dict[str, object], words: tuple[str, ...]) -> None:
    assert commandline.read(container).words == words


@pytest.mark.parametrize(
    ("script", "rest"),
    [
        ("vllm serve m --a b", ("m", "--a", "b")),
        ("pip install x && /usr/bin/vllm serve m; sleep 9", ("m",)),
        ("export A=1\nvllm serve m --a b\necho done", ("m", "--a", "b")),
        ("vllm bench m", None),
    ],
)
def test_a_program_is_found_in_a_script(script: str, rest: tuple[str, ...] | None) -> None:
    words = commandline.read({"command": ["sh", "-c", script]}).words
    assert commandline.after(words, "vllm", "serve") == rest


@pytest.mark.parametrize("words", [["-p", "2"], ["-p2"], ["-p=2"], ["--po", "2"]], ids=str)
def test_other_names_of_a_flag_count_as_it_does(words: list[str]) -> None:
    found = commandline.flags(["--port=1", *words, "x"], aliases={"p": "port", "po": "port"})
    assert (found.values, found.positionals) == ({"port": "2"}, ("x",))


def test_flags_take_every_usual_form() -> None:
    flags = commandline.flags(
        ["m", "--a", "1", "--b=2", "--c_d", "3", "--on", "--n", "-1", "-tp", "4", "--a=5"]
    )
    assert flags.positionals == ("m",)
    assert flags.values == {"a": "5", "b": "2", "c-d": "3", "on": "", "n": "-1", "tp": "4"}
    assert flags.on("on")
    assert not flags.on("off")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("32", 32),
        ("8k", 8000),
        ("8K", 8192),
        ("1_000", 1000),
        ("x", None),
        ("-1", None),
        ("", None),
    ],
)
def test_counts(text: str, number: int | None) -> None:
    assert commandline.Flags({"n": text}, ()).count("n") == number


def test_a_switch_takes_no_value() -> None:
    flags = commandline.flags(["--trust-remote-code", "m"], {"trust-remote-code"})
    assert flags.positionals == ("m",)
