"""The types of OpenAI's client in which vLLM 0.33 takes requests, built from a table.

``data/openai-types.json`` names what each holds: a field with ``!`` must be there; ``["or", …]`` is
one of several, of which an error names all. Types with ``()`` keep fields that they do not know,
and are told with all of their own.
"""

import functools
import json
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Literal

from pydantic import PlainValidator
from pydantic_core import CoreSchema, SchemaValidator, core_schema

Root = Literal[
    "messages", "tool_calls", "input", "output_message", "tools", "tool_choice", "text", "reasoning"
]
_DATA = "data/openai-types.json"
_PLAIN: Mapping[str, CoreSchema] = {
    "str": core_schema.str_schema(),
    "int": core_schema.int_schema(),
    "float": core_schema.float_schema(),
    "bool": core_schema.bool_schema(),
    "any": core_schema.any_schema(),
}


class Never:
    """What no JSON is."""


def taken_as(root: Root) -> PlainValidator:
    """For a field of a request: it is checked, and told, as this."""
    return PlainValidator(lambda value: validator(root).validate_python(value))


@functools.cache
def validator(root: Root) -> SchemaValidator:
    """What checks a value against one of the table's roots; made when first needed."""
    return SchemaValidator(_Table(_table()["types"]).schema(_table()["roots"][root]))


@functools.cache
def _table() -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath(_DATA).read_text(encoding="utf-8")
    table: Mapping[str, Any] = json.loads(text)
    return table


class _Table:
    """The table's types as schemas."""

    def __init__(self, types: Mapping[str, Mapping[str, Any]]) -> None:
        self._types = types
        self._made: dict[str, CoreSchema] = dict(_PLAIN)

    def schema(self, told: str | list[Any]) -> CoreSchema:
        """What a name or an expression stands for."""
        if isinstance(told, str):
            if told not in self._made:
                self._made[told] = self._named(told)
            return self._made[told]
        kind, *rest = told
        if kind == "is":
            return core_schema.literal_schema(rest)
        if kind == "or":
            return core_schema.union_schema([self.schema(each) for each in rest])
        if kind == "default":
            return core_schema.with_default_schema(self.schema(rest[1]), default=rest[0])
        return _WRAPS[kind](self.schema(rest[0]))

    def _named(self, name: str) -> CoreSchema:
        if name == "never":
            return core_schema.is_instance_schema(Never)
        keeps = "()" in name
        fields = {
            field.removesuffix("!"): self._field(field, told, keeps)
            for field, told in self._types[name].items()
        }
        return core_schema.typed_dict_schema(
            fields,
            cls_name=name.partition("~")[0].removesuffix("()"),
            extra_behavior="allow" if keeps else "ignore",
        )

    def _field(self, name: str, told: Any, keeps: bool) -> core_schema.TypedDictField:
        schema, required = self.schema(told), name.endswith("!")
        if keeps and not required and schema["type"] != "default":
            schema = core_schema.with_default_schema(schema, default=None)
        return core_schema.typed_dict_field(schema, required=required)


_WRAPS: Mapping[str, Callable[[CoreSchema], CoreSchema]] = {
    "list": core_schema.list_schema,
    "each": core_schema.generator_schema,
    "map": lambda schema: core_schema.dict_schema(core_schema.str_schema(), schema),
    "nullable": core_schema.nullable_schema,
}
