"""Reading measured points."""

from pathlib import Path

import pytest

from modelserve.errors import InputError
from servelab.validation import points


def test_the_points_of_the_package_have_names_of_their_own() -> None:
    found = points.read()
    assert len(found) == 298
    assert len({point.id for point in found}) == 298


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("points: 3", "no list `points`", id="no-list"),
        pytest.param("- a", "no list `points`", id="list-at-the-top"),
        pytest.param("points: [{id: a}]", "point 1 must be a mapping", id="no-kind"),
        pytest.param("points: [{id: a, kind: b, tp: x}]", "`tp` is 'x'", id="word"),
        pytest.param("points: [{id: a, kind: b, load: 3}]", "`load` is 3", id="load"),
        pytest.param("a: [", "cannot read measured points", id="no-yaml"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=sentence) as caught:
        points.read(file)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read measured points"):
        points.read(tmp_path / "none.yaml")
