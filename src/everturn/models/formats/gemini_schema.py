"""Gemini schema: rewrites a JSON schema into the subset of OpenAPI that Gemini accepts; it refuses unknown fields.

References are inlined, and cycles are cut. What cannot be expressed becomes wider, never narrower: values that are no
strings, which `enum` must not have here, are listed in the description. Every schema needs a type, every object a
property and every array its items, or Gemini refuses them; and `anyOf` must be the only field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

from everturn.core.canonical_json import JsonObject, encode_canonical
from everturn.core.json_schema import json_type

NODES = 2_000  # larger schemas are cut: nested references grow without bounds
DEPTH = 30
LISTED_VALUES = 20  # values of an enum that are listed in a description

_SCALARS: list[JsonObject] = [{"type": "string", "nullable": True}, {"type": "number"}, {"type": "boolean"}]
_OPEN = "any_name"  # the property of an object with any names: Gemini refuses one without properties
_OBJECT: JsonObject = {
    "type": "object",
    "properties": {_OPEN: {"anyOf": _SCALARS}},
    "description": f"An object with any names; {_OPEN} is only an example.",
}
_ANY: list[JsonObject] = [*_SCALARS, _OBJECT, {"type": "array", "items": {"anyOf": [*_SCALARS, _OBJECT]}}]
_NULL: JsonObject = {"type": "string", "nullable": True}  # the closest expression
_KINDS = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_BOUNDS = {"minimum": "minimum", "exclusiveMinimum": "minimum", "maximum": "maximum", "exclusiveMaximum": "maximum"}


def to_openapi(schema: JsonObject) -> JsonObject:
    """Rewrite a schema."""
    return _SchemaRewriter(schema).node(schema, (), 0)


class _SchemaRewriter:
    def __init__(self, root: JsonObject) -> None:
        self._root, self._left = root, NODES

    def node(self, schema: object, path: tuple[str, ...], depth: int) -> JsonObject:
        """Rewrite one schema. `path` are the references that led to it."""
        if not isinstance(schema, dict):  # `true` is a schema, too
            return _one_of(_ANY, "")
        schema, path = self._whole(cast("JsonObject", schema), path, depth)
        description = _description(schema)
        if choices := _listed(schema.get("anyOf") or schema.get("oneOf")):
            shared = {"type": schema["type"]} if "type" in schema else {}
            branches = [self.node({**shared, **choice}, path, depth + 1) for choice in choices]
        else:
            branches = [self._typed(kind, schema, path, depth) for kind in _kinds(schema)] or _ANY
        if schema.get("nullable") is True:
            branches = [*branches, _NULL]
        return _one_of(branches, description)

    def _whole(self, schema: JsonObject, path: tuple[str, ...], depth: int) -> tuple[JsonObject, tuple[str, ...]]:
        """Resolve references and merge `allOf`."""
        self._left -= 1
        if self._left < 0 or depth > DEPTH:
            return {}, path
        while isinstance(ref := schema.get("$ref"), str):
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            target = self._find(ref)
            if ref in path:  # a cycle
                target = _cut(target)
            schema, path = {**target, **rest}, (*path, ref)
        for part in _listed(schema.get("allOf")):
            whole, path = self._whole(part, path, depth + 1)
            schema = {**whole, **schema, **_joined("properties", whole, schema), **_joined("required", whole, schema)}
        if "properties" in schema:  # choices beside properties become one object with all properties
            for choice in _listed(schema.get("anyOf") or schema.get("oneOf")):
                schema = {**schema, **_joined("properties", self._whole(choice, path, depth + 1)[0], schema)}
            schema = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
        return schema, path

    def _find(self, ref: str) -> JsonObject:
        node: Any = self._root
        for name in ref.removeprefix("#").strip("/").split("/") if ref != "#" else ():
            name = unquote(name).replace("~1", "/").replace("~0", "~")
            node = cast("JsonObject", node).get(name) if isinstance(node, dict) else None
        return cast("JsonObject", node) if isinstance(node, dict) else {}

    def _typed(self, kind: str, schema: JsonObject, path: tuple[str, ...], depth: int) -> JsonObject:
        if kind == "null":
            return _NULL
        result: JsonObject = {"type": kind}
        values, description = _values(schema), _description(schema)
        texts = [value for value in values if isinstance(value, str) and value]
        if texts and kind == "string" and len(texts) == len([value for value in values if value is not None]):
            result["enum"] = list(dict.fromkeys(texts))
        elif values:
            listed = ", ".join(encode_canonical(value) for value in values[:LISTED_VALUES])
            description = f"{description}\nOne of {listed}{', …' if len(values) > LISTED_VALUES else ''}.".strip()
        if description:
            result["description"] = description
        match kind:
            case "string":
                if schema.get("format") == "date-time":  # Gemini refuses all others
                    result["format"] = "date-time"
            case "integer" | "number":
                result |= {field: schema[key] for key, field in _BOUNDS.items() if _is_number(schema.get(key))}
            case "array":
                result["items"] = self._items(schema, path, depth)
                result |= {key: schema[key] for key in ("minItems", "maxItems") if type(schema.get(key)) is int}
            case "object":
                result |= self._object(schema, path, depth)
            case _:
                pass
        return result

    def _items(self, schema: JsonObject, path: tuple[str, ...], depth: int) -> JsonObject:
        items = schema.get("items")
        positions = _listed(schema.get("prefixItems") or items)  # a schema per position becomes any of them
        if not positions:
            return self.node(items, path, depth + 1)
        if "prefixItems" in schema and items is not False and "maxItems" not in schema:
            positions = [*positions, cast("JsonObject", items) if isinstance(items, dict) else {}]
        return _one_of([self.node(place, path, depth + 1) for place in positions], "")

    def _object(self, schema: JsonObject, path: tuple[str, ...], depth: int) -> JsonObject:
        declared = _object(schema.get("properties"))
        properties = {name: self.node(value, path, depth + 1) for name, value in declared.items() if value is not False}
        if not properties:
            extra = _object(schema.get("additionalProperties"))
            example = self.node(extra, path, depth + 1) if extra else {"anyOf": _SCALARS}
            return _with({**_OBJECT, "properties": {_OPEN: example}}, _description(schema))
        required = [name for name in _names(schema.get("required")) if name in properties]
        return {"properties": properties, **({"required": required} if required else {})}


def _cut(schema: JsonObject) -> JsonObject:
    """Reduce an object inside itself to its plain properties, none of them required."""
    plain = ("string", "number", "integer", "boolean")
    declared = _object(schema.get("properties"))
    properties = {name: value for name, value in declared.items() if _object(value).get("type") in plain}
    return {"type": "object", "properties": properties} if "properties" in schema else {}


def _one_of(branches: Sequence[JsonObject], description: str) -> JsonObject:
    """Combine branches in `anyOf`. Their common description is repeated in each, because `anyOf` must be alone."""
    schemas: list[JsonObject] = []
    for branch in branches:
        for schema in cast("list[JsonObject]", branch.get("anyOf", [branch])):
            if branch is not _NULL and (described := _with(schema, description)) not in schemas:
                schemas.append(described)
    if not schemas:
        return _NULL
    if any(branch is _NULL for branch in branches):
        schemas[0] = {**schemas[0], "nullable": True}
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _with(schema: JsonObject, description: str) -> JsonObject:
    own = _description(schema)
    if not description or own.startswith(description):
        return schema
    return {**schema, "description": f"{description}\n{own}".strip()}


def _kinds(schema: JsonObject) -> list[str]:
    """Return the types of a schema, declared or implied by its other fields; empty if it may be anything."""
    declared: object = schema.get("type")
    named = [kind.lower() for kind in _names([declared] if isinstance(declared, str) else declared)]
    if named:
        return list(dict.fromkeys(named)) if _KINDS.issuperset(named) else []
    if values := _values(schema):
        return list(dict.fromkeys(json_type(value) for value in values))
    if "properties" in schema:
        return ["object"]
    return ["array"] if "items" in schema or "prefixItems" in schema else []


def _values(schema: JsonObject) -> list[Any]:
    values: object = [schema["const"]] if "const" in schema else schema.get("enum")
    return cast("list[Any]", values) if isinstance(values, list) else []


def _listed(value: object) -> list[JsonObject]:
    """Return the schemas of a list; `true` is a schema, too."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("JsonObject", item) if isinstance(item, dict) else {} for item in items]


def _object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _names(value: object) -> list[str]:
    items = cast("list[object]", value) if isinstance(value, list | tuple) else []
    return [name for name in items if isinstance(name, str)]


def _joined(key: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> JsonObject:
    """Merge the `properties` or `required` of two schemas."""
    first, second = left.get(key), right.get(key)
    if isinstance(first, dict) and isinstance(second, dict):
        return {key: {**cast("JsonObject", first), **cast("JsonObject", second)}}
    if isinstance(first, list) and isinstance(second, list):
        return {key: list(dict.fromkeys(_names(cast("object", first)) + _names(cast("object", second))))}
    return {}


def _description(schema: JsonObject) -> str:
    text: object = schema.get("description")
    return text if isinstance(text, str) else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
