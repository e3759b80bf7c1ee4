"""vLLM's own command line: what its parser takes, and the words in which it refuses."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve import errors
from modelserve.catalog import gpus
from modelserve.engines import arguments, commandline, kv, launch

TABLE = arguments.load("vllm-0.33.0")
MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def parse(*words: str, lenient: bool = False) -> commandline.Flags:
    usage = "vllm serve [model_tag] [options]"
    return arguments.parse(TABLE, words, "vllm serve", usage, lenient=lenient)


def refusal(*words: str) -> errors.UsageError:
    with pytest.raises(errors.UsageError) as caught:
        parse(*words)
    return caught.value


# As the parser of the released wheel answers.
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("M --max-num-seqz 5", "vllm: error: unrecognized arguments: --max-num-seqz 5"),
        ("M other", "vllm: error: unrecognized arguments: other"),
        (
            "M --max-model-len abc",
            "vllm serve: error: argument --max-model-len: invalid human_readable_int_or_auto "
            "value: 'abc'",
        ),
        (
            "M --max-num-batched-tokens 1.5K",
            "vllm serve: error: argument --max-num-batched-tokens: Decimals are not allowed with "
            "binary suffixes like K. Did you mean to use 1.5k instead?",
        ),
        (
            "M --max-num-queued-reqs many",
            "vllm serve: error: argument --max-num-queued-reqs: Value many cannot be converted to "
            "<class 'int'>.",
        ),
        (
            "M -tp two",
            "vllm serve: error: argument --tensor-parallel-size/-tp: invalid int value: 'two'",
        ),
        (
            "M --enable-dbo=1",
            "vllm serve: error: argument --enable-dbo/--disable-dbo: ignored explicit argument '1'",
        ),
        (
            "M --max-num-q 5",
            "vllm serve: error: ambiguous option: --max-num-q could match --max-num-queued-reqs, "
            "--max-num-queued-tokens",
        ),
        ("M --lora-modules x", "vllm serve: error: Invalid JSON format for --lora-modules: x"),
        (
            "M --lora-modules [1]",
            "vllm serve: error: Invalid fields for --lora-modules: [1] - vllm.entrypoints.openai."
            "models.protocol.LoRAModulePath() argument after ** must be a mapping, not list",
        ),
        (
            'M --lora-modules {"name":"a"}',
            'vllm serve: error: Invalid fields for --lora-modules: {"name":"a"} - '
            "LoRAModulePath.__init__() missing 1 required positional argument: 'path'",
        ),
        (
            'M --lora-modules {"id":1}',
            'vllm serve: error: Invalid fields for --lora-modules: {"id":1} - '
            "LoRAModulePath.__init__() got an unexpected keyword argument 'id'",
        ),
        ("M --port", "vllm serve: error: argument --port: expected one argument"),
        ("M --swap-space 4", "vllm: error: unrecognized arguments: --swap-space 4"),
    ],
)
def test_it_refuses_in_vllms_words(words: str, message: str) -> None:
    assert str(refusal(*words.split())) == message


def test_a_wrong_choice_lists_the_right_ones() -> None:
    message = str(refusal("M", "--scheduling-policy", "lifo"))
    assert "argument --scheduling-policy: invalid choice: 'lifo'" in message
    assert "priority" in message


def test_usage_is_the_main_commands_where_that_refuses() -> None:
    assert refusal("M", "--foo").usage.startswith("usage: vllm [-h] [-v] {chat,complete,serve,")
    assert refusal("M", "--port").usage == "usage: vllm serve [model_tag] [options]"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("--max-num-seqz", "did you mean --max-num-seqs?"),
        ("--swap-space", "--swap-space was there up to 0.13.0 or a little later"),
        ("--zzzzzzzzzzzz", ""),
    ],
)
def test_a_hint_of_ours_names_the_flag_that_was_meant(word: str, hint: str) -> None:
    assert refusal("M", word).hint == hint


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("M --max-model-len 32k", "max-model-len", "32000"),
        ("M --max-model-len=32K", "max-model-len", "32768"),
        ("M --max-model-len 1.5M", "max-model-len", None),
        ("M --max-model-len 1.5m", "max-model-len", "1500000"),
        ("M --max-model-len auto", "max-model-len", "-1"),
        ("M --max_num_seqs 7", "max-num-seqs", "7"),
        ("M --max-num-se 7", "max-num-seqs", "7"),
        ("M -tp 2", "tensor-parallel-size", "2"),
        ("M -q fp8", "quantization", "fp8"),
        ("M -O3", "optimization-level", "3"),
        ("M --no-enable-prefix-caching", "enable-prefix-caching", "false"),
        ("M --disable-prefix-caching", "enable-prefix-caching", "false"),
        ("M --device-memory-utilization 0.5", "gpu-memory-utilization", "0.5"),
        ("M --disable-log-requests", "enable-log-requests", "false"),
        ("M --served-model-name a b", "served-model-name", "a"),
        ("M --compilation-config.mode 3", "compilation-config", '{"mode": 3}'),
        ("M --max-num-seqs 3 --max-num-seqs 9", "max-num-seqs", "9"),
    ],
)
def test_it_reads_what_vllm_reads(words: str, name: str, value: str | None) -> None:
    if value is None:
        refusal(*words.split())
    else:
        assert parse(*words.split()).values[name] == value


@pytest.mark.parametrize(
    "words",
    [
        f"M --max-model-len {'9' * 400}k",
        f"M --max-model-len {'9' * 5000}",
        f"M --limit-mm-per-prompt {'[' * 100_000}",
        f"M --compilation-config {'[' * 100_000}",
        f"M --hf-overrides {{{'[' * 100_000}}}",
    ],
    ids=["size", "digits", "json", "config", "text-or-json"],
)
def test_nothing_is_too_large_to_be_refused(words: str) -> None:
    assert "error: argument" in str(refusal(*words.split()))


@given(
    st.lists(
        st.one_of(
            st.text(max_size=12),
            st.sampled_from([flag for each in TABLE.arguments for flag in each.flags]),
        ),
        max_size=8,
    )
)
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    with contextlib.suppress(errors.InputError):
        parse(*words)


def test_another_version_takes_flags_of_its_own() -> None:
    flags = parse("M", "--swap-space", "4", "--never-heard-of", lenient=True)
    assert (flags.positionals, flags.values["swap-space"]) == (("M",), "4")


@given(st.sampled_from(TABLE.arguments))
def test_every_flag_is_taken_in_all_its_spellings(argument: arguments.Argument) -> None:
    if argument.is_switch:
        for flag in (*argument.flags, *argument.negatives):
            expected = "false" if flag in argument.negatives else "true"
            assert parse("M", flag).values[argument.name] == expected
    else:
        for flag in argument.flags:
            assert f"argument {argument.flags[0]}" in str(refusal("M", flag, "--port")) or (
                argument.nargs == "?"
            )


@pytest.mark.parametrize(
    ("image", "code"),
    [
        ("vllm/vllm-openai:v0.33.0", 2),
        ("vllm/vllm-openai:latest", 2),
        ("mine/vllm", 2),
        ("vllm/vllm-openai:v0.10.2", 0),
    ],
)
def test_only_an_image_of_another_version_may_have_unknown_flags(image: str, code: int) -> None:
    container = {"image": image, "command": ["vllm", "serve", MODEL, "--brand-new"]}
    if code:
        with pytest.raises(errors.UsageError):
            launch.parse(container, {})
    else:
        assert launch.parse(container, {}) is not None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--max-num-seqs", "0"), "greater than or equal to 1"),
        (("--gpu-memory-utilization", "1.5"), "at most 1"),
    ],
)
def test_a_value_out_of_bounds_is_refused(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(errors.InputError, match=sentence):
        launch.parse({"command": ["vllm", "serve", MODEL, *words]}, {})


@pytest.mark.parametrize(
    "words", [(f"--model={MODEL}", "-tp", "2"), ("-tp", "2", "--model", MODEL), (MODEL, "-tp", "2")]
)
def test_the_model_may_come_by_flag(words: tuple[str, ...]) -> None:
    found = launch.parse({"command": ["vllm", "serve", *words]}, {})
    assert found is not None
    assert (found.model.name, found.tensor_parallel) == (MODEL, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--foo 5", "unrecognized arguments: --foo 5"),
        ("--tp_size 2", "unrecognized arguments: --tp_size 2"),
        ("--context-length 8k", "argument --context-length: invalid int value: '8k'"),
    ],
)
def test_sglang_refuses_in_its_own_words(words: str, message: str) -> None:
    command = ["python3", "-m", "sglang.launch_server", "--model-path", MODEL, *words.split()]
    with pytest.raises(errors.UsageError) as caught:
        launch.parse({"command": command}, {})
    assert str(caught.value) == f"launch_server.py: error: {message}"


@pytest.mark.parametrize(("gpu", "tokens"), [("h100", 131_072), ("l4", None)])
def test_an_automatic_length_is_what_there_is_room_for(gpu: str, tokens: int | None) -> None:
    words = ["vllm", "serve", MODEL, "--max-model-len", "auto"]
    chosen = gpus.find(gpu)
    found = launch.parse({"command": words}, {}, chosen)
    assert found is not None
    assert found.max_model_tokens == (tokens or kv.capacity_of_launch(found, chosen))


def test_a_file_that_nobody_can_read_does_not_name_the_model() -> None:
    words = ["vllm", "serve", "--config", "/etc/engine.yaml"]
    with pytest.raises(errors.InputError, match="name the model on the command line"):
        launch.parse({"command": words}, {})
    assert launch.parse({"command": [*words, "--model", MODEL]}, {}) is not None


def test_a_served_name_without_a_model_is_refused() -> None:
    with pytest.raises(errors.InputError, match="first positional argument"):
        launch.parse({"command": ["vllm", "serve", "--served-model-name", "x"]}, {})
