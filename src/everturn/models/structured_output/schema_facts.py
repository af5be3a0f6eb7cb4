"""Facts about JSON Schemas: references, recursion, types, and the size that vendors limit. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from everturn.core.canonical_json import JsonObject
from everturn.models.structured_output.subsets import NUMBERS

LARGE_ENUM: Final = 250  # values from which the size of an enum counts

_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_REF = re.compile(r"#/(?:\$defs|definitions)/(.+)")


def resolve_root(schema: JsonObject) -> JsonObject:
    """Return a schema whose root is no reference; pydantic writes one for recursive models."""
    for _ in range(8):
        definition = find_definition(schema, schema.get("$ref"))
        if definition is None:
            break
        schema = {**definition, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def is_object_schema(schema: JsonObject) -> bool:
    """Return whether the root of a schema is an object and nothing else."""
    return schema.get("type") == "object" and not any(
        key in schema for key in ("anyOf", "oneOf", "allOf", "enum", "$ref")
    )


def is_always_object(schema: JsonObject, root: JsonObject, depth: int = 8) -> bool:
    """Return whether every value of a schema is an object: it is one, or a choice of them."""
    if depth and "$ref" in schema:
        definition = find_definition(root, schema["$ref"])
        return definition is not None and is_always_object(definition, root, depth - 1)
    choices: object = schema.get("anyOf", schema.get("oneOf"))
    if depth and isinstance(choices, list) and choices:
        return all(
            isinstance(choice, dict) and is_always_object(cast("JsonObject", choice), root, depth - 1)
            for choice in cast("list[object]", choices)
        )
    return is_object_schema(schema)


class SchemaSize:
    """The size of a written schema, as vendors limit it. Definitions count once, and depth through references."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._depths: dict[str, int] = {}
        self.properties = self.enum_values = self.name_size = self.large_enum_size = self.optional = self.unions = 0
        self.depth = self._measure_depth(root)
        self._count(root)
        for name, definition in cast("Mapping[str, JsonObject]", root.get("$defs", {})).items():
            self.name_size += len(name)
            self._count(definition)

    def _count(self, schema: JsonObject) -> None:
        properties = cast("Mapping[str, JsonObject]", schema.get("properties", {}))
        self.properties += len(properties)
        self.name_size += sum(map(len, properties))
        self.optional += len(properties.keys() - set(schema.get("required", ())))
        self.unions += "anyOf" in schema
        values = cast("list[Any]", schema.get("enum", ()))
        size = sum(len(value) if isinstance(value, str) else len(str(value)) for value in values)
        self.enum_values += len(values)
        self.name_size += size
        if len(values) > LARGE_ENUM:
            self.large_enum_size = max(self.large_enum_size, size)
        for child in child_schemas(schema):
            self._count(child)

    def _measure_depth(self, schema: JsonObject) -> int:
        if "$ref" in schema:
            name, definition = reference_name(schema["$ref"]), find_definition(self._root, schema["$ref"])
            if definition is not None and name not in self._depths:
                self._depths[name] = 0  # a definition inside itself adds nothing
                self._depths[name] = self._measure_depth(definition)
            return self._depths.get(name, 0)
        here = 1 if schema.get("type") in ("object", "array") else 0
        return here + max(map(self._measure_depth, child_schemas(schema)), default=0)


def child_schemas(schema: JsonObject) -> list[JsonObject]:
    """Return the schemas directly in a schema, definitions aside."""
    found: list[object] = [schema.get(key) for key in ("items", "additionalProperties")]
    for key in ("anyOf", "prefixItems", "oneOf", "allOf"):
        found += cast("list[object]", schema.get(key) or ())
    for key in ("properties", "patternProperties"):
        found += cast("JsonObject", schema.get(key) or {}).values()
    return [cast("JsonObject", child) for child in found if isinstance(child, dict)]


def definitions_of(root: JsonObject) -> dict[str, JsonObject]:
    """Return the definitions of a schema by name."""
    found: JsonObject = {}
    for key in ("definitions", "$defs"):
        held = root.get(key)
        found |= cast("JsonObject", held) if isinstance(held, dict) else {}
    return {name: cast("JsonObject", value) for name, value in found.items() if isinstance(value, dict)}


def reference_name(ref: object) -> str:
    """Return the name of the definition that a reference means."""
    match = _REF.fullmatch(ref) if isinstance(ref, str) else None
    return match[1].replace("~1", "/").replace("~0", "~") if match is not None else str(ref)


def escape_name(name: str) -> str:
    """Return a name as it stands in a reference."""
    return name.replace("~", "~0").replace("/", "~1")


def find_definition(root: JsonObject, ref: object) -> JsonObject | None:
    """Return the definition that a reference means; None if there is none."""
    return definitions_of(root).get(reference_name(ref)) if isinstance(ref, str) else None


def _references(schema: JsonObject) -> set[str]:
    """Return the names of the definitions that a schema refers to, directly or in its parts."""
    found = {reference_name(schema["$ref"])} if "$ref" in schema else set[str]()
    for child in child_schemas(schema):
        found |= _references(child)
    return found


def cyclic_definitions(root: JsonObject) -> frozenset[str]:
    """Return the definitions that lead back to themselves."""
    links = {name: _references(definition) for name, definition in definitions_of(root).items()}
    body = {key: value for key, value in root.items() if key not in ("$defs", "definitions")}
    links["#"] = _references(body)

    def reached(name: str) -> set[str]:
        seen: set[str] = set()
        ahead = [*links.get(name, ())]
        while ahead:
            if (node := ahead.pop()) not in seen:
                seen.add(node)
                ahead += links.get(node, ())
        return seen

    return frozenset(name for name in links if name in reached(name))


def must_recur(root: JsonObject, name: str) -> bool:
    """Return whether a definition reaches itself through required properties alone."""

    def always(schema: JsonObject) -> set[str]:
        if "$ref" in schema:
            return {reference_name(schema["$ref"])}
        required, found = set(strings_in(schema.get("required"))), set[str]()
        properties = cast("JsonObject", schema.get("properties") or {})
        inner = [value for key, value in properties.items() if key in required]
        rest = {key: value for key, value in schema.items() if key != "properties"}
        for child in (*cast("list[JsonObject]", inner), *child_schemas(rest)):
            found |= always(child)
        return found

    links = {node: always(definition) for node, definition in definitions_of(root).items()}
    seen: set[str] = set()
    ahead = [*links.get(name, ())]
    while ahead:
        if (node := ahead.pop()) not in seen:
            seen.add(node)
            ahead += links.get(node, ())
    return name in seen


def with_all_required(schema: JsonObject) -> JsonObject:
    """Return a schema in which every property is required, for a vendor that allows few that are not."""

    def require_all(value: object, is_map: bool = False) -> Any:
        if isinstance(value, list):
            return [require_all(item) for item in cast("list[object]", value)]
        if not isinstance(value, dict):
            return value
        fields = {
            key: require_all(item, not is_map and key in ("properties", "$defs"))
            for key, item in cast("JsonObject", value).items()
        }
        if not is_map and isinstance(properties := fields.get("properties"), dict):
            fields["required"] = list(cast("JsonObject", properties))
        return fields

    return require_all(schema)


def types_of(fields: JsonObject) -> list[str]:
    """Return the types of a schema, declared or implied; none if it may be anything."""
    declared: object = fields.get("type")
    named = strings_in([declared] if isinstance(declared, str) else declared)
    if named:
        return [kind for kind in dict.fromkeys(named) if kind in _TYPES]
    if "properties" in fields or "additionalProperties" in fields:
        return ["object"]
    return ["array"] if "items" in fields or "prefixItems" in fields else []


_CONCERNS = {
    "string": frozenset({"format", "pattern", "minLength", "maxLength"}),
    "number": NUMBERS,
    "integer": NUMBERS,
    "array": frozenset({"minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"}),
    "object": frozenset({"minProperties", "maxProperties", "dependentRequired"}),
}
_OF_ONE_KIND = frozenset[str]().union(*_CONCERNS.values())


def concerns_type(key: str, kind: str) -> bool:
    """Return whether a keyword says something about values of a type."""
    return key in _CONCERNS.get(kind, ()) or key not in _OF_ONE_KIND


def description_of(fields: JsonObject) -> str:
    """Return the description of a schema, or an empty text."""
    text: object = fields.get("description")
    return text if isinstance(text, str) else ""


def strings_in(value: object) -> list[str]:
    """Return the strings of a list; an invalid list counts as empty."""
    items = cast("list[object]", value) if isinstance(value, list | tuple) else []
    return [name for name in items if isinstance(name, str)]
