"""The spec as pydantic models, and its definitions as the API server takes them."""

from collections.abc import Iterator
from typing import Any

import pytest

from modelserve.api import crd, pool, spec

SMALLEST = {"model": {"name": "llama"}, "gpu": {"product": "h100"}}


def test_two_fields_make_a_model() -> None:
    parsed = spec.ModelServeSpec.model_validate(SMALLEST)
    assert (parsed.scaling.min_replicas, parsed.scaling.max_replicas) == (0, 8)
    assert parsed.engine.type is spec.EngineType.VLLM


def test_growth_may_double_or_add_four_every_fifteen_seconds() -> None:
    policies = spec.ModelServeSpec.model_validate(SMALLEST).scaling.scale_up.policies
    assert [(p.type, p.value, p.period_seconds) for p in policies] == [
        ("Percent", 100, 15),
        ("Pods", 4, 15),
    ]


def test_an_older_operator_reads_newer_objects() -> None:
    assert spec.ModelServeSpec.model_validate(SMALLEST | {"later": 1}).replicas == 1


@pytest.mark.parametrize(("nodes", "count"), [(3, 3), ({"min": 2, "max": 9}, 2)])
def test_a_pool_stands_at_its_number_or_minimum(nodes: Any, count: int) -> None:
    assert pool.GPUPoolSpec.model_validate({"gpu": "h100", "nodes": nodes}).node_count == count


def _nodes(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for key, value in schema.get("properties", {}).items():
        yield from _nodes(value, f"{path}.{key}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key], f"{path}[]")


SCHEMAS = {
    f"{document['spec']['names']['kind']}{path}": node
    for document in (crd.modelserve(), crd.gpupool())
    for path, node in _nodes(document["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
}


@pytest.mark.parametrize("path", [p for p in SCHEMAS if ".spec." in p and "[]" not in p])
def test_every_field_of_a_spec_says_what_it_is(path: str) -> None:
    node = SCHEMAS[path]
    nested = {"resources", "requests", "limits"}
    assert node.get("description") or path.rsplit(".", 1)[-1] in nested or node.get("properties")


@pytest.mark.parametrize("path", SCHEMAS)
def test_every_schema_node_is_structural(path: str) -> None:
    node = SCHEMAS[path]
    assert "type" in node or node.get("x-kubernetes-preserve-unknown-fields")
    assert not {"$ref", "anyOf", "const", "title", "allOf"} & node.keys()


def test_a_number_or_an_object_is_left_to_the_model() -> None:
    assert SCHEMAS["GPUPool.spec.nodes"].get("x-kubernetes-preserve-unknown-fields") is True
