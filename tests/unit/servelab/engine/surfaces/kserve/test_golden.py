"""The model server's answers, held against a list written from its source."""

from pathlib import Path

from modelserve.api.spec import EngineType
from modelserve.engines import kserve
from servelab.engine.checks import surface

GOLDEN = Path(__file__).parents[5] / "golden" / "surface" / "kserve-0.20.0-http.json"


async def test_every_answer_is_the_model_servers() -> None:
    rows = surface.read(GOLDEN)
    report = await surface.check(rows, EngineType.VLLM, (kserve.FRONT_END,))
    assert (list(report.differences), report.equal) == ([], len(rows))


async def test_a_pooling_model_embeds_and_does_not_chat() -> None:
    messages = [{"role": "user", "content": "hello"}]
    asked = {
        "/openai/v1/embeddings": (200, {"model": "llama-8b", "input": "hello"}),
        "/openai/v1/chat/completions": (400, {"model": "llama-8b", "messages": messages}),
    }
    rows = [
        {"name": path, "method": "POST", "path": path, "body": body, "status": status}
        | {"response": {"json": {}}}
        for path, (status, body) in asked.items()
    ]
    options = (kserve.FRONT_END, ("runner", "pooling"))
    report = await surface.check(rows, EngineType.VLLM, options)
    assert [each for each in report.differences if each.where == "status"] == []
