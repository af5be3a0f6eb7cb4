"""Tool schemas as every vendor accepts them: an object at the root, without combinators beside it.

A schema that has to be simplified becomes wider, never narrower: the tool itself still validates its arguments.
"""

from __future__ import annotations

import re
from typing import Any, cast

from everturn.core.canonical_json import JsonObject

_COMBINATORS = ("anyOf", "oneOf", "allOf", "enum", "not", "const", "if", "then", "else")
_HOPS = 8  # chained references that are followed; this bounds cycles
_REF = re.compile(r"#/(?:\$defs|definitions)/(.+)")
_DEFS = ("$defs", "definitions")
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def tool_schema(schema: JsonObject) -> JsonObject:
    """Return a schema with an object at its root."""
    schema = _resolved(schema)
    properties = schema.get("properties")
    if (
        schema.get("type") == "object"
        and isinstance(properties, dict)
        and not any(key in schema for key in _COMBINATORS)
    ):
        return schema
    merged: JsonObject = {}
    for key in ("allOf", "anyOf", "oneOf"):
        for branch in schema.get(key) or ():
            if isinstance(branch, dict):  # `true` is a schema, too
                branch_properties = _resolved({"$defs": schema.get("$defs", {}), **cast("JsonObject", branch)}).get(
                    "properties"
                )
                merged |= cast("JsonObject", branch_properties) if isinstance(branch_properties, dict) else {}
    merged |= cast("JsonObject", properties) if isinstance(properties, dict) else {}
    plain = {key: value for key, value in schema.items() if key not in _COMBINATORS}
    return {**plain, "type": "object", "properties": merged}


def _resolved(schema: JsonObject) -> JsonObject:
    """Resolve a reference at the root, which pydantic writes for recursive models."""
    for _ in range(_HOPS):
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            break
        target: Any = schema
        for name in ref.removeprefix("#/").split("/"):
            target = cast("JsonObject", target).get(name) if isinstance(target, dict) else None
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**rest, **cast("JsonObject", target)} if isinstance(target, dict) else rest
    return schema


def required_properties(schema: JsonObject) -> list[str]:
    """Return the required properties; an invalid `required` counts as none."""
    required = schema.get("required")
    return [name for name in cast("list[Any]", required) if isinstance(name, str)] if isinstance(required, list) else []


def hoist_definitions(schema: JsonObject, name: str, shared: JsonObject) -> JsonObject:
    """Return a schema that can be nested in another: its definitions go into `shared`, the `$defs` of that one."""

    def moved(value: Any, is_map: bool = False) -> Any:
        """Rewrite the references of a schema. In a map the keys are property names."""
        if isinstance(value, list):
            return [moved(item) for item in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        fields = cast("JsonObject", value)
        if is_map:
            return {key: moved(item) for key, item in fields.items()}
        match = _REF.fullmatch(ref) if isinstance(ref := fields.get("$ref"), str) else None
        rest = {key: moved(item, key in _MAPS) for key, item in fields.items() if key not in _DEFS}
        return {**rest, "$ref": f"#/$defs/{name}.{match[1]}"} if match is not None else rest

    for key in _DEFS:
        definitions = schema.get(key)
        if isinstance(definitions, dict):
            shared |= {f"{name}.{inner}": moved(item) for inner, item in cast("JsonObject", definitions).items()}
    return moved(schema)


def with_plain_properties(schema: JsonObject) -> tuple[JsonObject, list[str]]:
    """Drop properties whose names some vendors refuse, and return their names: the tool still accepts them."""
    properties = cast("JsonObject", schema.get("properties", {}))
    odd = [name for name in properties if not _PROPERTY.fullmatch(name)]
    if not odd:
        return schema, []
    plain = {name: value for name, value in properties.items() if name not in odd}
    required = [name for name in schema.get("required", ()) if name not in odd]
    opened = {
        key: value for key, value in schema.items() if key != "additionalProperties"
    }  # the model may send them all the same
    return {**opened, "properties": plain, "required": required}, odd
