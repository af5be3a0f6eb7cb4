"""A JSON schema → the subset of OpenAPI that Gemini reads, where one field it does not know fails the whole request.

References are inlined, and where they lead in a circle they are cut. What cannot be said becomes wider, never narrower:
values that are no texts, which no `enum` may hold here, are told in the description. Every schema names a type, every
object a property, every array what it is of, or they are refused; and beside `anyOf` stands nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

from everturn.core.canonical import JsonObject, canonical

NODES = 2_000  # a schema of more is not written out: references in references grow without bounds
DEPTH = 30
TOLD = 20  # values of an enum that are told in words

_SCALARS: list[JsonObject] = [{"type": "string", "nullable": True}, {"type": "number"}, {"type": "boolean"}]
_OPEN = "any_name"  # the property of an object that may have any: without one it is refused
_OBJECT: JsonObject = {
    "type": "object",
    "properties": {_OPEN: {"anyOf": _SCALARS}},
    "description": f"An object with any names; {_OPEN} is only an example.",
}
_ANY: list[JsonObject] = [*_SCALARS, _OBJECT, {"type": "array", "items": {"anyOf": [*_SCALARS, _OBJECT]}}]
_NULL: JsonObject = {"type": "string", "nullable": True}  # as near as it can be said
_KINDS = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_BOUNDS = {"minimum": "minimum", "exclusiveMinimum": "minimum", "maximum": "maximum", "exclusiveMaximum": "maximum"}


def openapi(schema: JsonObject) -> JsonObject:
    """Write a schema anew."""
    return _Rewriting(schema).node(schema, (), 0)


class _Rewriting:
    def __init__(self, root: JsonObject) -> None:
        self._root, self._left = root, NODES

    def node(self, schema: object, path: tuple[str, ...], depth: int) -> JsonObject:
        """One schema. `path` are the references that led here."""
        if not isinstance(schema, dict):  # `true` is one, too
            return _one_of(_ANY, "")
        schema, path = self._whole(cast("JsonObject", schema), path, depth)
        said = _description(schema)
        if choices := _listed(schema.get("anyOf") or schema.get("oneOf")):
            shared = {"type": schema["type"]} if "type" in schema else {}
            branches = [self.node({**shared, **choice}, path, depth + 1) for choice in choices]
        else:
            branches = [self._typed(kind, schema, path, depth) for kind in _kinds(schema)] or _ANY
        if schema.get("nullable") is True:
            branches = [*branches, _NULL]
        return _one_of(branches, said)

    def _whole(self, schema: JsonObject, path: tuple[str, ...], depth: int) -> tuple[JsonObject, tuple[str, ...]]:
        """The same without references, and with what all of its parts say together."""
        self._left -= 1
        if self._left < 0 or depth > DEPTH:
            return {}, path
        while isinstance(ref := schema.get("$ref"), str):
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            found = self._find(ref)
            if ref in path:  # a circle
                found = _cut(found)
            schema, path = {**found, **rest}, (*path, ref)
        for part in _listed(schema.get("allOf")):
            whole, path = self._whole(part, path, depth + 1)
            schema = {**whole, **schema, **_joined("properties", whole, schema), **_joined("required", whole, schema)}
        if "properties" in schema:  # choices beside properties: an object that has all of them
            for choice in _listed(schema.get("anyOf") or schema.get("oneOf")):
                schema = {**schema, **_joined("properties", self._whole(choice, path, depth + 1)[0], schema)}
            schema = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
        return schema, path

    def _find(self, ref: str) -> JsonObject:
        found: Any = self._root
        for name in ref.removeprefix("#").strip("/").split("/") if ref != "#" else ():
            name = unquote(name).replace("~1", "/").replace("~0", "~")
            found = cast("JsonObject", found).get(name) if isinstance(found, dict) else None
        return cast("JsonObject", found) if isinstance(found, dict) else {}

    def _typed(self, kind: str, schema: JsonObject, path: tuple[str, ...], depth: int) -> JsonObject:
        if kind == "null":
            return _NULL
        made: JsonObject = {"type": kind}
        values, said = _values(schema), _description(schema)
        texts = [value for value in values if isinstance(value, str) and value]
        if texts and kind == "string" and len(texts) == len([value for value in values if value is not None]):
            made["enum"] = list(dict.fromkeys(texts))
        elif values:
            told = ", ".join(canonical(value) for value in values[:TOLD])
            said = f"{said}\nOne of {told}{', …' if len(values) > TOLD else ''}.".strip()
        if said:
            made["description"] = said
        match kind:
            case "string":
                if schema.get("format") == "date-time":  # all others are refused
                    made["format"] = "date-time"
            case "integer" | "number":
                made |= {ours: schema[key] for key, ours in _BOUNDS.items() if _is_number(schema.get(key))}
            case "array":
                made["items"] = self._items(schema, path, depth)
                made |= {key: schema[key] for key in ("minItems", "maxItems") if type(schema.get(key)) is int}
            case "object":
                made |= self._object(schema, path, depth)
            case _:
                pass
        return made

    def _items(self, schema: JsonObject, path: tuple[str, ...], depth: int) -> JsonObject:
        items = schema.get("items")
        places = _listed(schema.get("prefixItems") or items)  # a type of its own for every place: any of them
        if not places:
            return self.node(items, path, depth + 1)
        if "prefixItems" in schema and items is not False and "maxItems" not in schema:
            places = [*places, cast("JsonObject", items) if isinstance(items, dict) else {}]
        return _one_of([self.node(place, path, depth + 1) for place in places], "")

    def _object(self, schema: JsonObject, path: tuple[str, ...], depth: int) -> JsonObject:
        given = _object(schema.get("properties"))
        properties = {name: self.node(value, path, depth + 1) for name, value in given.items() if value is not False}
        if not properties:
            more = _object(schema.get("additionalProperties"))
            example = self.node(more, path, depth + 1) if more else {"anyOf": _SCALARS}
            return _with({**_OBJECT, "properties": {_OPEN: example}}, _description(schema))
        required = [name for name in _names(schema.get("required")) if name in properties]
        return {"properties": properties, **({"required": required} if required else {})}


def _cut(schema: JsonObject) -> JsonObject:
    """What is said of an object inside of itself: only what needs no more words, and nothing of it must be there."""
    plain = ("string", "number", "integer", "boolean")
    given = _object(schema.get("properties"))
    properties = {name: value for name, value in given.items() if _object(value).get("type") in plain}
    return {"type": "object", "properties": properties} if "properties" in schema else {}


def _one_of(branches: Sequence[JsonObject], description: str) -> JsonObject:
    """Any of these. What is said of them all is said of each, for beside `anyOf` it may not stand."""
    found: list[JsonObject] = []
    for branch in branches:
        for one in cast("list[JsonObject]", branch.get("anyOf", [branch])):
            if branch is not _NULL and (told := _with(one, description)) not in found:
                found.append(told)
    if not found:
        return _NULL
    if any(branch is _NULL for branch in branches):
        found[0] = {**found[0], "nullable": True}
    return found[0] if len(found) == 1 else {"anyOf": found}


def _with(schema: JsonObject, description: str) -> JsonObject:
    said = _description(schema)
    if not description or said.startswith(description):
        return schema
    return {**schema, "description": f"{description}\n{said}".strip()}


def _kinds(schema: JsonObject) -> list[str]:
    """The types a schema names or, where it names none, those its other words speak of; none if it may be anything."""
    given: object = schema.get("type")
    named = [kind.lower() for kind in _names([given] if isinstance(given, str) else given)]
    if named:
        return list(dict.fromkeys(named)) if _KINDS.issuperset(named) else []
    if values := _values(schema):
        return list(dict.fromkeys(_kind(value) for value in values))
    if "properties" in schema:
        return ["object"]
    return ["array"] if "items" in schema or "prefixItems" in schema else []


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case _:
            return "array" if isinstance(value, list | tuple) else "object"


def _values(schema: JsonObject) -> list[Any]:
    values: object = [schema["const"]] if "const" in schema else schema.get("enum")
    return cast("list[Any]", values) if isinstance(values, list) else []


def _listed(value: object) -> list[JsonObject]:
    """The schemas in a list; `true` is one, too."""
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("JsonObject", one) if isinstance(one, dict) else {} for one in found]


def _object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _names(value: object) -> list[str]:
    found = cast("list[object]", value) if isinstance(value, list | tuple) else []
    return [name for name in found if isinstance(name, str)]


def _joined(key: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> JsonObject:
    """What two schemas say of their properties, or which of them they require."""
    ours, more = one.get(key), other.get(key)
    if isinstance(ours, dict) and isinstance(more, dict):
        return {key: {**cast("JsonObject", ours), **cast("JsonObject", more)}}
    if isinstance(ours, list) and isinstance(more, list):
        return {key: list(dict.fromkeys(_names(cast("object", ours)) + _names(cast("object", more))))}
    return {}


def _description(schema: JsonObject) -> str:
    text: object = schema.get("description")
    return text if isinstance(text, str) else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
