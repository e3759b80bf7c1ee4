"""Many models are drawn as their sum."""

from html import parser
from pathlib import Path

from servelab.cli import compare_page, scenarios
from servelab.sim import comparison

SCENARIO = """\
pools: [{gpu: NVIDIA-H100-80GB-HBM3}]
models:
"""
MODEL = """\
  - name: small-NUMBER
    spec:
      model: {name: meta-llama/Llama-3.1-8B-Instruct}
      gpu: {product: NVIDIA-H100-80GB-HBM3}
    traffic: [{steady: {perSecond: 1, seconds: 20}}]
"""


class Balance(parser.HTMLParser):
    """Every element is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_of_many_models_shows_them_added_up(tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    path.write_text(SCENARIO + "".join(MODEL.replace("NUMBER", str(n)) for n in range(4)))
    found = scenarios.Found(str(path))
    runs = list(comparison.compare(found.scenario, ["committed", "fixed-1"], found.lines))
    text = compare_page.write_page(found, runs)
    assert "fixed-1: ready replicas of all 4 models" in text
    assert text.count("<svg") == 4
    balance = Balance()
    balance.feed(text)
    assert balance.open == []


def test_the_sum_of_step_functions_is_the_sum_at_every_time() -> None:
    lines = [[(0.0, 1.0), (10.0, 3.0)], [(5.0, 2.0), (10.0, 0.0)]]
    assert list(compare_page.added(lines)) == [(0.0, 1.0), (5.0, 3.0), (10.0, 3.0)]
