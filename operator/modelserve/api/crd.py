"""The CRD documents, generated from the pydantic models by ``python -m modelserve.api.crd``.

Pydantic's JSON schema becomes a structural schema: references inlined, ``X | None`` an optional X
(the API server prunes nulls by itself), single literals an enum, numeric bounds as OpenAPI 3.0 has
them, and on each object whose own fields have defaults their sum, so that those take effect.
"""

import copy
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from pydantic import BaseModel

from modelserve.api import generated, names, pool, spec, status

Schema = dict[str, Any]

_KEEP = {
    "type", "description", "format", "pattern", "enum", "default", "minimum", "maximum",
    "minLength", "maxLength", "minItems", "maxItems", "required", "x-kubernetes-validations",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
}  # fmt: skip


def schema_of(model: type[BaseModel], *, defaults: bool) -> Schema:
    """The structural schema of a model. Without ``defaults`` (status) none are written."""
    document = model.model_json_schema(by_alias=True)
    definitions = document.pop("$defs", {})
    return _structural(document, definitions, defaults)


def _structural(node: Mapping[str, Any], definitions: Mapping[str, Any], defaults: bool) -> Schema:
    node = _resolve(node, definitions)
    out: Schema = {k: v for k, v in node.items() if k in _KEEP}
    if not defaults:
        out.pop("default", None)
    elif "default" in out and (out["default"] in (None, [], {}) or node.get("properties")):
        # Nothing by default is no default; an object's is the sum of its fields' own.
        del out["default"]
    if "exclusiveMinimum" in node:
        out |= {"minimum": node["exclusiveMinimum"], "exclusiveMinimum": True}
    if "const" in node:
        out["enum"] = [node["const"]]
    if "properties" in node:
        _add_properties(out, node, definitions, defaults)
    extra = node.get("additionalProperties")
    if isinstance(extra, Mapping):
        out["additionalProperties"] = _structural(extra, definitions, defaults)
        out["maxProperties"] = 64
    elif extra is True and "properties" not in node:
        out["x-kubernetes-preserve-unknown-fields"] = True
    if "items" in node:
        out["items"] = _structural(node["items"], definitions, defaults)
    return out


def _add_properties(
    out: Schema, node: Mapping[str, Any], definitions: Mapping[str, Any], defaults: bool
) -> None:
    out["properties"] = {
        key: _structural(value, definitions, defaults) for key, value in node["properties"].items()
    }
    for key, value in node["properties"].items():
        inner = out["properties"][key]
        if defaults and "default" in value and _has_defaults(inner) and not inner.get("required"):
            inner["default"] = _sum_of_defaults(inner)


def _has_defaults(schema: Schema) -> bool:
    return any("default" in field for field in schema.get("properties", {}).values())


def _sum_of_defaults(schema: Schema) -> Schema:
    # Written out: the server checks CEL rules on a default before it fills in nested ones.
    fields = schema["properties"].items()
    return {key: copy.deepcopy(field["default"]) for key, field in fields if "default" in field}


def _resolve(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    merged = dict(node)
    if "$ref" in merged:
        target = definitions[merged.pop("$ref").removeprefix("#/$defs/")]
        description = merged.get("description")
        merged = _resolve(target, definitions) | merged
        if description:
            merged["description"] = description
    if "anyOf" in merged:
        choices = [c for c in merged.pop("anyOf") if c.get("type") != "null"]
        if len(choices) == 1:
            merged = _resolve(choices[0], definitions) | merged
        else:
            # A number or an object: the API server's schemas cannot say so; our own model checks.
            merged["x-kubernetes-preserve-unknown-fields"] = True
    return merged


def _column(name: str, path: str, kind: str = "string", **extra: Any) -> Schema:
    return {"name": name, "type": kind, "jsonPath": path, **extra}


def _condition(field: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{field}'


MODELSERVE_COLUMNS = (
    _column("Model", ".spec.model.name"),
    _column("Min", ".spec.scaling.minReplicas", "integer"),
    _column("Max", ".spec.scaling.maxReplicas", "integer"),
    _column("Desired", ".status.desiredReplicas", "integer"),
    _column("Ready", ".status.readyReplicas", "integer"),
    _column("Queue", ".status.demand.queued", "integer"),
    _column("Accepting", _condition("status")),
    _column("Reason", _condition("reason")),
    _column("Age", ".metadata.creationTimestamp", "date"),
    _column("GPU", ".spec.gpu.product", priority=1),
    _column("TP", ".spec.gpu.tensorParallel", "integer", priority=1),
    _column("Policy", ".spec.scaling.policy", priority=1),
    _column("Cold start", ".status.coldStart.predicted.totalSeconds", "number", priority=1),
    _column("Waiting for", ".status.waitingFor", priority=1),
)

POOL_COLUMNS = (
    _column("GPU", ".spec.gpu"),
    _column("Per node", ".spec.gpusPerNode", "integer"),
    _column("Nodes", ".status.nodes", "integer"),
    _column("Ready", ".status.readyNodes", "integer"),
    _column("GPUs", ".status.gpus", "integer"),
    _column("In use", ".status.gpusInUse", "integer"),
    _column("Age", ".metadata.creationTimestamp", "date"),
)


def _document(
    group: str,
    kind: str,
    plural: str,
    scope: str,
    short_names: Iterable[str],
    description: str,
    models: tuple[type[BaseModel], type[BaseModel]],
    subresources: Schema,
    columns: Iterable[Schema],
    validations: list[Schema],
) -> Schema:
    schema: Schema = {
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": schema_of(models[0], defaults=True),
            "status": schema_of(models[1], defaults=False),
        },
    }
    if validations:
        schema["x-kubernetes-validations"] = validations
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": list(short_names),
                "categories": ["all"] if scope == "Namespaced" else [],
            },
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": subresources,
                    "additionalPrinterColumns": list(columns),
                }
            ],
        },
    }


def modelserve() -> Schema:
    """The CustomResourceDefinition of ModelServe."""
    return _document(
        names.GROUP,
        names.KIND,
        names.PLURAL,
        "Namespaced",
        ["ms"],
        "ModelServe serves one large language model from GPU-backed replicas and scales it.",
        (spec.ModelServeSpec, status.ModelServeStatus),
        {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        MODELSERVE_COLUMNS,
        [
            {
                "rule": "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && "
                "size(self.metadata.name) <= 52",
                "message": "metadata.name must be a DNS label of at most 52 characters "
                "(lower case letters, digits, '-'): the Deployment and Service carry it",
            }
        ],
    )


def gpupool() -> Schema:
    """The CustomResourceDefinition of GPUPool."""
    return _document(
        names.EMULATOR_GROUP,
        names.POOL_KIND,
        names.POOL_PLURAL,
        "Cluster",
        ["gpool"],
        "GPUPool is a set of equal emulated GPU nodes.",
        (pool.GPUPoolSpec, status.GPUPoolStatus),
        {"status": {}},
        POOL_COLUMNS,
        [],
    )


def documents() -> dict[str, str]:
    """File name → YAML text of every CRD."""
    head = "# Generated from the models in operator/modelserve/api by `make crds`; do not edit.\n"
    return {
        f"{crd['metadata']['name']}.yaml": head
        + yaml.safe_dump(crd, sort_keys=False, width=100, allow_unicode=True)
        for crd in (modelserve(), gpupool())
    }


if __name__ == "__main__":
    sys.exit(generated.main("python -m modelserve.api.crd", __doc__, documents()))
