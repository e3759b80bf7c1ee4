"""The cases to record: all are usable, and mistakes are told."""

from pathlib import Path

import pytest

from modelserve import errors
from servelab.node.kubelet import behavior
from servelab.node.pods import podspec
from servelab.recording import cases


@pytest.mark.parametrize("case", cases.read(), ids=[case.name for case in cases.read()])
def test_an_emulated_node_understands_how_the_containers_behave(case: cases.Case) -> None:
    pod = case.manifest("node-0")
    known = [
        c["name"] for c in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
    ]
    added = [c["name"] for act in case.acts for c in _added(act)]
    assert set(case.behavior) <= {*known, *added}
    for words in case.behavior.values():
        behavior.Behavior.model_validate(words)
    pod["metadata"] |= {"namespace": "default", "uid": "u"}
    assert podspec.parse(pod).node == ("" if case.scheduled else "node-0")


def _added(act: cases.Act) -> list[dict[str, str]]:
    found: list[dict[str, str]] = act.patch.get("spec", {}).get("ephemeralContainers", [])
    return found


def test_a_container_without_a_command_is_a_server() -> None:
    case = cases.Case(name="a", seconds=1, pod={"containers": [{"name": "main"}]})
    container = case.manifest("n")["spec"]["containers"][0]
    assert container["command"] == ["/bin/sh", "-c", cases.SERVER]
    assert container["image"] == cases.IMAGE


def test_a_case_recorded_several_times_has_several_names() -> None:
    chosen = cases.choose(cases.read(), ["never-ok"], 3)
    assert [case.name for case in chosen] == ["never-ok", "never-ok-2", "never-ok-3"]


def test_an_unknown_case_is_told_with_the_known_ones() -> None:
    with pytest.raises(errors.InputError, match="no case 'nothing'; there are never-ok, "):
        cases.choose(cases.read(), ["nothing"], 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cases: [{name: a, seconds: 0, pod: {}}]", "at seconds: .* greater than 0"),
        ("cases: [{name: a, seconds: 1, pod: {}, acts: [{t: 1, verb: fly}]}]", "at acts.0.verb"),
        ("cases: [{name: a, seconds: 1, pod: {}}, {name: a, seconds: 1, pod: {}}]", "called 'a'"),
        ("nothing: 1", "holds no cases"),
        ("cases: [", "holds no cases"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(text)
    with pytest.raises(errors.InputError, match=told):
        cases.read(file)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError, match=r"nothing\.yaml cannot be read: No such file"):
        cases.read(tmp_path / "nothing.yaml")
