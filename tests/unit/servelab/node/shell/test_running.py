"""The shell inside containers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.catalog import gpus
from servelab.node.gpus import devices, readings, smi
from servelab.node.shell import inside, running, words

GPU = gpus.find("NVIDIA-H100-80GB-HBM3")
HOLDER = readings.Holder("default", "llm", "engine", 61, "VLLM::EngineCore")
USE = readings.Use(HOLDER, 74 << 30, readings.Activity(0.98, 0.1, 0.7))
READING = readings.read(devices.of_node("dgx-0", 1)[0], GPU, [USE])
HERE = inside.Inside(
    hostname="llm-0",
    pod_ip="10.200.0.7",
    namespace="default",
    env={"HOME": "/root", "A": "1"},
    processes=(inside.Process(1, 0, "vllm serve m", 1.8e9 - 60, 30.0, 1 << 30, 4 << 30),),
    cpus=8,
    memory_bytes=64 << 30,
    memory_used_bytes=1 << 30,
    booted_unix_s=1.8e9 - 600,
    now_unix_s=1.8e9,
    kernel="6.8.0-servelab",
    nvidia=smi.View((READING,), "570.172.08", "12.8", 1.8e9),
    mounts=("/models",),
)


@pytest.mark.parametrize(
    ("line", "out", "code"),
    [
        ("echo a  'b  c' \"d $A\" \\$A", "a b  c d 1 $A\n", 0),
        ("echo a; echo b", "a\nb\n", 0),
        ("false && echo no || echo yes", "yes\n", 0),
        ("true || echo no; echo $?", "0\n", 0),
        ("nope; echo $?", "127\n", 0),
        ("B=2; echo ${B}3", "23\n", 0),
        ("cat /etc/hostname", "llm-0\n", 0),
        ("cat /etc/nope", "", 1),
        ("ls /models /etc/nope", "/models:\n", 2),
        ("env | grep ^A", "A=1\n", 0),
        ("export C=x && printenv C", "x\n", 0),
        ("hostname; date +%Y", "llm-0\n2027\n", 0),
        ("ls /dev | grep nvidia | wc -l", "4\n", 0),
        ("sh -c 'echo in; exit 5'; echo $?", "in\n5\n", 0),
        ("exit 300", "", 44),
        ("cat /proc/meminfo | head -n 1", "MemTotal:       67108864 kB\n", 0),
        ("nvidia-smi --query-gpu=index,memory.used --format=csv,noheader,nounits", "0, 75776\n", 0),
        ("nvidia-smi --query-gpu=name --format=csv", "name\nNVIDIA H100 80GB HBM3\n", 0),
        (
            "nvidia-smi --query-gpu=nope --format=csv",
            'Field "nope" is not a valid field to query.\n\n',
            2,
        ),
        ("/usr/bin/nproc", "8\n", 0),
        ("# nothing", "", 0),
    ],
)
def test_lines_do_what_a_shell_does(line: str, out: str, code: int) -> None:
    done = running.script(HERE, line)
    assert (done.out, done.code) == (out, code)


@pytest.mark.parametrize("line", ["echo 'a", "echo $(id)", "cat < x", "| cat", "sleep 1 &"])
def test_what_it_cannot_read_is_a_syntax_error(line: str) -> None:
    done = running.script(HERE, line)
    assert (done.code, done.err.startswith("sh: 1: Syntax error: ")) == (2, True)


@pytest.mark.parametrize(
    "silenced", ["nope 2>/dev/null", "nope 2> /dev/null", "nope >/dev/null 2>&1"]
)
def test_errors_can_be_thrown_away(silenced: str) -> None:
    assert running.script(HERE, silenced) == inside.Result(code=127)


def test_sleep_is_told_and_not_slept() -> None:
    assert running.script(HERE, "sleep 2; sleep 0.5; echo a") == inside.Result("a\n", pause_s=2.5)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("foo", 'exec: "foo": executable file not found in $PATH'),
        ("", 'exec: "": executable file not found in $PATH'),
        ("/foo", 'exec: "/foo": stat /foo: no such file or directory'),
        ("/etc", 'exec: "/etc": is a directory'),
        ("/etc/hostname", 'exec: "/etc/hostname": permission denied'),
    ],
)
def test_the_runtime_says_why_it_cannot_start_something(command: str, why: str) -> None:
    with pytest.raises(running.NotStarted) as refused:
        running.run(HERE, [command])
    assert str(refused.value) == why


def test_the_table_is_as_wide_as_the_real_one() -> None:
    lines = running.run(HERE, ["nvidia-smi"]).out.splitlines()
    assert {len(line) for line in lines[1:] if line.strip()} == {91}
    assert "VLLM::EngineCore" in lines[-2]
    assert "|   75776MiB /  81559MiB |     98%      Default |" in lines[9]


@pytest.mark.parametrize(
    ("command", "every_s", "once"),
    [
        ("nvidia-smi -l 2 -L", 2.0, "nvidia-smi -L"),
        ("nvidia-smi -L -l", 5.0, "nvidia-smi -L"),
        ("nvidia-smi --loop=3 -i 0", 3.0, "nvidia-smi -i 0"),
        ("/usr/bin/nvidia-smi -lms 250", 0.25, "/usr/bin/nvidia-smi"),
        ("nvidia-smi -i 0", None, "nvidia-smi -i 0"),
        ("echo -l 2", None, "echo -l 2"),
    ],
)
def test_a_loop_is_found_in_a_command(command: str, every_s: float | None, once: str) -> None:
    assert running.repeated(command.split()) == (every_s, once.split())


def test_ps_shows_the_processes() -> None:
    lines = running.run(HERE, ["ps", "aux"]).out.splitlines()
    assert lines[1].split()[:4] == ["root", "1", "50.0", "1.6"]
    assert lines[1].endswith("0:30 vllm serve m")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
def test_any_line_has_an_answer(line: str) -> None:
    assert 0 <= running.script(HERE, line).code <= 255


@given(st.lists(st.text("ab '\"$\\;|&", max_size=5), min_size=1))
def test_quoted_words_come_out_as_they_were(found: list[str]) -> None:
    line = " ".join("'" + word.replace("'", "'\\''") + "'" for word in ["x", *found])
    assert [step.expand({}) for step in words.steps(line)] == [["x", *found]]
