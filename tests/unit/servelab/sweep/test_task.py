"""Traces are found beside a scenario, compressed ones too, and in the package."""

import gzip
import pickle
from pathlib import Path

import pytest

from modelserve import errors
from servelab.sweep import task

TEXT = "arrival_s,input_tokens,output_tokens\n0,1,1\n"


def test_a_compressed_trace_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert "".join(task.Beside(str(tmp_path), "s.yaml")("t.csv.gz")) == TEXT


def test_a_file_goes_before_the_packages_trace_of_that_name(tmp_path: Path) -> None:
    lines = task.Beside(str(tmp_path), "s.yaml")
    assert len(list(lines("azure-code"))) == 8820
    (tmp_path / "azure-code").write_text(TEXT)
    assert list(lines("azure-code")) == TEXT.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("t.csv.gz", b"no gzip", id="no gzip"),
        pytest.param("t.csv.gz", gzip.compress(TEXT.encode() * 99)[:-20], id="cut short"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(errors.InputError, match=rf"{name} cannot be read"):
        list(task.Beside(str(tmp_path), "s.yaml")(name))


def test_what_is_no_text_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(TEXT.encode() + b"1,\xff,1\n")
    with pytest.raises(errors.InputError, match=r"t.csv, line 3: .* no UTF-8"):
        list(task.Beside(str(tmp_path), "s.yaml")("t.csv"))


def test_a_missing_one_is_told_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError, match=r"s.yaml names the trace .*azure-code"):
        list(task.Beside(str(tmp_path), "s.yaml")("t.csv"))


def test_a_task_travels_to_other_processes() -> None:
    one = task.Task({"models": []}, "committed", 1, task.Beside("", "s.yaml"))
    assert pickle.loads(pickle.dumps(one)) == one
