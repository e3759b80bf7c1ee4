"""Files that tell of engines, and the line where one of them is wrong."""

from pathlib import Path

import pytest

from modelserve import errors
from modelserve.engines import arguments
from servelab.engine.alone import files, lined

TABLE = arguments.load("vllm-0.33.0")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "engines.yaml"


def test_a_file_of_flags_tells_settings_the_model_and_words(path: Path) -> None:
    path.write_text("model: m\ngpu: l4\nmax-num-seqs: 16\nmodel-config: c.json\n")
    told = files.config(path, TABLE)
    assert told == files.Told(
        {"gpu": "l4", "model_config_file": "c.json"}, "m", ("--max-num-seqs=16",)
    )


def test_an_empty_file_tells_nothing(path: Path) -> None:
    path.write_text("# nothing yet\n")
    assert files.config(path, TABLE) == files.Told({}, None, ())


def test_engines_take_what_they_do_not_say_from_the_base(path: Path) -> None:
    path.write_text("engines:\n- {model: a, seed: 5}\n- {command: trtllm-serve x, name: b}\n")
    (first, own), (second, other) = files.engines(path, TABLE, {"gpu": "l4", "seed": 1})
    assert (first.model, own.seed, own.gpu) == ("a", 5, "l4")
    assert (second.model, other.seed, other.name) == (None, 1, "b")
    assert other.command == ("trtllm-serve", "x")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("engines: [\n", ":2: no YAML"),
        ("engines: []\n", ":1: engines: name at least one engine"),
        ("- model: m\n", ":1: it must hold a list `engines`"),
        ("engines:\n- model: m\nmore: 1\n", ":3: more: unknown"),
        ("engines:\n- 7\n", ":2: engines.0: it must be a mapping"),
        ("engines:\n- model: m\n  port: 99999\n", ":3: engines.0.port: Input should be less"),
        ("engines:\n- model: m\n  model-config: [\n    1]\n", ":3: engines.0.model-config"),
        ("engines:\n- model: m\n\n  max-num-seqz: 1\n", ":4: engines.0.max-num-seqz: unknown flag"),
        ("engines:\n- max-model-len: abc\n", ":2: engines.0.max-model-len: vllm serve: error"),
        ("engines:\n- model: m\n  command: x\n", ":3: engines.0.command: a whole command line"),
        ("engines:\n- name: x\n- name: x\n", ":3: engines.1.name: 'x' is taken already"),
        ("engines:\n- {model: m, start: warm}\n", ":2: engines.0.start: Input should be 'now'"),
    ],
)
def test_an_error_has_its_line(path: Path, text: str, sentence: str) -> None:
    path.write_text(text)
    with pytest.raises(errors.InputError) as caught:
        files.engines(path, TABLE, {})
    assert str(path) + sentence in str(caught.value)


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError, match="cannot be read"):
        lined.read(tmp_path / "none.yaml")


def test_a_place_without_a_line_has_the_one_around_it(path: Path) -> None:
    path.write_text("a:\n  b: 1\n")
    document = lined.read(path)
    assert document.where(("a", "b")) == f"{path}:2"
    assert document.where(("a", "none")) == f"{path}:1"
