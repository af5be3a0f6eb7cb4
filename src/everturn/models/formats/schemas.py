"""Schemas of tools, as every vendor takes them: an object at the root, and nothing clever beside it.

A schema that has to be simplified becomes wider, never narrower: the tool itself still checks what it is called with.
"""

from __future__ import annotations

import re
from typing import Any, cast

from everturn.core.canonical import JsonObject

_CLEVER = ("anyOf", "oneOf", "allOf", "enum", "not", "const", "if", "then", "else")
_HOPS = 8  # references to references that are followed; a circle of them leads nowhere
_REF = re.compile(r"#/(?:\$defs|definitions)/(.+)")
_DEFS = ("$defs", "definitions")
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def tool_schema(schema: JsonObject) -> JsonObject:
    """A schema with an object at its root."""
    schema = _resolved(schema)
    properties = schema.get("properties")
    if schema.get("type") == "object" and isinstance(properties, dict) and not any(key in schema for key in _CLEVER):
        return schema
    merged: JsonObject = {}
    for key in ("allOf", "anyOf", "oneOf"):
        for branch in schema.get(key) or ():
            if isinstance(branch, dict):  # `true` is a schema, too
                found = _resolved({"$defs": schema.get("$defs", {}), **cast("JsonObject", branch)}).get("properties")
                merged |= cast("JsonObject", found) if isinstance(found, dict) else {}
    merged |= cast("JsonObject", properties) if isinstance(properties, dict) else {}
    plain = {key: value for key, value in schema.items() if key not in _CLEVER}
    return {**plain, "type": "object", "properties": merged}


def _resolved(schema: JsonObject) -> JsonObject:
    """The same without a reference at its root, which pydantic writes for models that hold themselves."""
    for _ in range(_HOPS):
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            break
        found: Any = schema
        for name in ref.removeprefix("#/").split("/"):
            found = cast("JsonObject", found).get(name) if isinstance(found, dict) else None
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**rest, **cast("JsonObject", found)} if isinstance(found, dict) else rest
    return schema


def required_of(schema: JsonObject) -> list[str]:
    """The properties that must be there; what else people write in that place says nothing."""
    required = schema.get("required")
    return [name for name in cast("list[Any]", required) if isinstance(name, str)] if isinstance(required, list) else []


def hoisted(schema: JsonObject, name: str, shared: JsonObject) -> JsonObject:
    """A schema that can stand inside another: what it refers to goes into `shared`, the `$defs` of that one."""

    def moved(value: Any, is_map: bool = False) -> Any:
        """The same with references that lead there. In a map the keys are names that somebody chose."""
        if isinstance(value, list):
            return [moved(one) for one in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        fields = cast("JsonObject", value)
        if is_map:
            return {key: moved(one) for key, one in fields.items()}
        found = _REF.fullmatch(ref) if isinstance(ref := fields.get("$ref"), str) else None
        rest = {key: moved(one, key in _MAPS) for key, one in fields.items() if key not in _DEFS}
        return {**rest, "$ref": f"#/$defs/{name}.{found[1]}"} if found is not None else rest

    for key in _DEFS:
        given = schema.get(key)
        if isinstance(given, dict):
            shared |= {f"{name}.{inner}": moved(one) for inner, one in cast("JsonObject", given).items()}
    return moved(schema)


def with_plain_properties(schema: JsonObject) -> tuple[JsonObject, list[str]]:
    """A schema without the properties whose names some vendors refuse, and those names: the tool still takes them."""
    properties = cast("JsonObject", schema.get("properties", {}))
    odd = [name for name in properties if not _PROPERTY.fullmatch(name)]
    if not odd:
        return schema, []
    plain = {name: value for name, value in properties.items() if name not in odd}
    required = [name for name in schema.get("required", ()) if name not in odd]
    opened = {
        key: value for key, value in schema.items() if key != "additionalProperties"
    }  # they may come all the same
    return {**opened, "properties": plain, "required": required}, odd
