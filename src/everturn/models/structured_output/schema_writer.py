"""Schema writer: rewrites a JSON Schema into the subset that a vendor documents, or says why it cannot be said there.

Pure. Constraints that the subset lacks (bounds, patterns, lengths, defaults, the order of a tuple) move into the
description: the schema becomes wider, and the answer is validated anyway. A property that need not be given is required
where all must be. What would lose its shape raises `SchemaNotSupported`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from everturn.core.canonical_json import JsonObject, encode_canonical
from everturn.core.json_schema import json_type
from everturn.models.structured_output.schema_facts import (
    SchemaSize,
    concerns_type,
    cyclic_definitions,
    description_of,
    escape_name,
    find_definition,
    must_recur,
    reference_name,
    strings_in,
    types_of,
    with_all_required,
)
from everturn.models.structured_output.subsets import SchemaSubset

MAX_SCHEMAS: Final = 4_000  # with every definition written where it is used, these can become very many
MAX_DEPTH: Final = 60

_SILENT = frozenset(  # say nothing about a value, or are read elsewhere
    "$schema $id $anchor $comment $defs definitions title description examples deprecated readOnly writeOnly "
    "discriminator type enum const anyOf oneOf allOf $ref properties required additionalProperties items prefixItems "
    "propertyNames patternProperties contentMediaType contentEncoding nullable".split()
)
_LOOKAROUND = re.compile(r"\(\?(?!:)|\\[1-9bB]")  # what grammars for patterns lack
_INTEGER_STEPS = {"exclusiveMinimum": ("minimum", 1), "exclusiveMaximum": ("maximum", -1)}


class SchemaNotSupported(Exception):
    """A schema cannot be said in a subset; the text says what of it."""


def write_schema(schema: JsonObject, subset: SchemaSubset) -> JsonObject:
    """Return a schema in a subset. Its root is as it was: `schema_facts.is_object_schema` says whether it must be wrapped.

    Raises:
        SchemaNotSupported: the subset lacks what it takes.
    """
    written = _SubsetWriter(schema, subset).write()
    size = SchemaSize(written)
    for name, limit in subset.limits.items():
        if (found := getattr(size, name)) > limit:
            if name == "optional":
                return write_schema(with_all_required(schema), subset)
            raise SchemaNotSupported(f"it has {found} {name.replace('_', ' ')}, and {limit} are allowed")
    return written


class _SubsetWriter:
    def __init__(self, root: JsonObject, subset: SchemaSubset) -> None:
        self._root, self._subset, self._left = root, subset, MAX_SCHEMAS
        self._written: JsonObject = {}  # definitions that are referred to
        self._cyclic = cyclic_definitions(root)

    def write(self) -> JsonObject:
        if self._cyclic:
            self._check_recursion()
        written = self._node(self._root, 0)
        return {**written, "$defs": self._written} if self._written else written

    def _check_recursion(self) -> None:
        recursion = self._subset.recursion
        if recursion == "none" or not self._subset.has_refs:
            raise SchemaNotSupported(f"{sorted(self._cyclic)[0]} refers to itself")
        if recursion == "optional":
            stuck = [name for name in sorted(self._cyclic) if must_recur(self._root, name)]
            if stuck:
                raise SchemaNotSupported(f"{stuck[0]} refers to itself in a property that is required")

    def _node(self, schema: object, depth: int) -> JsonObject:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise SchemaNotSupported("it is too large")
        if not isinstance(schema, dict) or not (fields := cast("JsonObject", schema)):
            return self._any({})
        if "$ref" in fields:
            return self._reference(fields, depth)
        if isinstance(parts := fields.get("allOf"), list):
            return self._all_of(fields, cast("list[Any]", parts), depth)
        if isinstance(choices := fields.get("anyOf", fields.get("oneOf")), list):
            return self._any_of(fields, cast("list[Any]", choices), depth)
        if "enum" in fields or "const" in fields:
            return self._enum(fields)
        kinds = types_of(fields)
        if not kinds:
            return self._any(fields)
        if fields.get("nullable") is True and "null" not in kinds:
            kinds = [*kinds, "null"]
        if len(kinds) > 1:
            return self._described({"anyOf": [self._typed(kind, fields, depth) for kind in kinds]}, fields, ())
        return self._typed(kinds[0], fields, depth)

    def _any(self, fields: JsonObject) -> JsonObject:
        if not self._subset.allows_any:
            raise SchemaNotSupported("it leaves the type of a value open")
        return self._described({}, fields, ())

    def _reference(self, fields: JsonObject, depth: int) -> JsonObject:
        """Refer to a definition, or write it here, if something is said of it that is not in the definition."""
        name, definition = reference_name(fields["$ref"]), find_definition(self._root, fields["$ref"])
        if definition is None:
            raise SchemaNotSupported(f"it refers to {fields['$ref']!r}, which it does not contain")
        beside = {key: fields[key] for key in ("description", "default") if fields.get(key) is not None}
        if name in self._cyclic or (self._subset.has_refs and not beside):
            if name not in self._written:
                self._written[name] = {}  # in its place, before what it refers to
                self._written[name] = self._node(definition, depth + 1)
            return {"$ref": f"#/$defs/{escape_name(name)}"}
        return self._node({**definition, **beside}, depth + 1)

    def _all_of(self, fields: JsonObject, parts: list[Any], depth: int) -> JsonObject:
        if len(parts) != 1 or not isinstance(parts[0], dict):
            raise SchemaNotSupported("it combines schemas with allOf")
        return self._node({**cast("JsonObject", parts[0]), **{k: v for k, v in fields.items() if k != "allOf"}}, depth)

    def _any_of(self, fields: JsonObject, choices: list[Any], depth: int) -> JsonObject:
        if "properties" in fields or "items" in fields:
            raise SchemaNotSupported("it has a choice (anyOf or oneOf) next to properties")
        shared = {"type": fields["type"]} if "type" in fields else {}
        branches: list[JsonObject] = []
        for choice in choices:
            branch = self._node({**shared, **cast("JsonObject", choice)} if isinstance(choice, dict) else choice, depth)
            inner = branch.get("anyOf") if set(branch) == {"anyOf"} else None
            for inner_branch in cast("list[JsonObject]", inner) if inner is not None else [branch]:
                if inner_branch not in branches:
                    branches.append(inner_branch)
        if len(branches) == 1 and "$ref" not in branches[0]:
            return self._described(branches[0], fields, ())
        if len(branches) == 1 and not description_of(fields):
            return branches[0]
        return self._described({"anyOf": branches}, fields, ())

    def _enum(self, fields: JsonObject) -> JsonObject:
        values: object = [fields["const"]] if "const" in fields else fields["enum"]
        by_kind: dict[str, list[Any]] = {}
        for value in cast("list[Any]", values) if isinstance(values, list) else []:
            kind = json_type(value)
            if kind in ("array", "object"):
                raise SchemaNotSupported("it has an enum of lists or objects")
            if value not in (known := by_kind.setdefault(kind, [])) or isinstance(value, bool):
                known.append(value)
        if not by_kind:
            raise SchemaNotSupported("it has an enum without values")
        branches: list[JsonObject] = []
        for kind, known in by_kind.items():
            has_enum = kind != "null" and any(type(value) in self._subset.enums for value in known)
            branches.append({"type": kind, "enum": known} if has_enum else {"type": kind})
        return self._described(branches[0] if len(branches) == 1 else {"anyOf": branches}, fields, ())

    def _typed(self, kind: str, fields: JsonObject, depth: int) -> JsonObject:
        subset, handled = self._subset, ["type"]
        written: JsonObject = {"type": kind}
        match kind:
            case "object":
                written |= self._object(fields, depth)
            case "array":
                written |= self._array(fields, depth, handled)
            case "string":
                if fields.get("format") in subset.formats:
                    written["format"] = fields["format"]
                    handled.append("format")
                pattern = fields.get("pattern")
                if subset.has_pattern and isinstance(pattern, str) and not _LOOKAROUND.search(pattern):
                    written["pattern"] = pattern
                    handled.append("pattern")
            case "number" | "integer":
                written |= self._bounds(kind, fields, handled)
            case "null":
                return written
            case _:
                pass
        return self._described(written, fields, handled, kind)

    def _bounds(self, kind: str, fields: JsonObject, handled: list[str]) -> JsonObject:
        known = self._subset.integers if kind == "integer" else self._subset.numbers
        written: JsonObject = {}
        for key, value in fields.items():
            step = _INTEGER_STEPS.get(key)
            if key in known:
                written[key] = value
            elif kind == "integer" and step is not None and step[0] in known and isinstance(value, int):
                written[step[0]] = value + step[1]
            else:
                continue
            handled.append(key)
        return written

    def _array(self, fields: JsonObject, depth: int, handled: list[str]) -> JsonObject:
        subset = self._subset
        written: JsonObject = {}
        positions = fields.get("prefixItems")
        for key, value in fields.items():
            if key in subset.arrays and isinstance(value, int) and value <= (subset.least_items or value):
                written[key] = value
                handled.append(key)
        if not isinstance(positions, list):
            return {**written, "items": self._node(fields.get("items", {}), depth + 1)}
        places = [self._node(place, depth + 1) for place in cast("list[Any]", positions)]
        rest = fields.get("items")
        if subset.has_prefix_items:
            more = {"items": self._node(cast("object", rest), depth + 1)} if isinstance(rest, dict) else {}
            return {**written, "prefixItems": places, **more}
        if isinstance(rest, dict):
            places.append(self._node(cast("object", rest), depth + 1))
        kinds: list[JsonObject] = []
        for place in places:
            kinds += [place] if place not in kinds else []
        if not kinds:
            raise SchemaNotSupported("it has an empty tuple")
        order = ", ".join(encode_canonical(place) for place in cast("list[Any]", positions))
        written["description"] = f"The items are, in this order: {order}"
        return {**written, "items": kinds[0] if len(kinds) == 1 else {"anyOf": kinds}}

    def _object(self, fields: JsonObject, depth: int) -> JsonObject:
        subset = self._subset
        declared = fields.get("properties")
        others: object = fields.get("additionalProperties")
        if isinstance(patterns := fields.get("patternProperties"), dict) and patterns:
            others = next(iter(cast("JsonObject", patterns).values()))
        if not isinstance(declared, dict):
            if subset.is_closed:
                raise SchemaNotSupported("it has an object whose keys are not known")
            is_said = isinstance(others, dict) and bool(cast("JsonObject", others))
            return {
                "additionalProperties": self._node(cast("object", others), depth + 1)
                if is_said
                else others is not False
            }
        properties = {
            name: self._node(value, depth + 1)
            for name, value in cast("JsonObject", declared).items()
            if value is not False
        }
        required = [name for name in strings_in(fields.get("required")) if name in properties]
        written: JsonObject = {"properties": properties}
        if subset.requires_all:
            written["required"] = list(properties)
        elif required:
            written["required"] = required
        if subset.is_closed or others is False:
            written["additionalProperties"] = False
        elif isinstance(others, dict) and others:
            written["additionalProperties"] = self._node(cast("object", others), depth + 1)
        return written

    def _described(self, written: JsonObject, fields: JsonObject, handled: Sequence[str], kind: str = "") -> JsonObject:
        """Add the title, and a description with all that could not be written otherwise."""
        unsaid = [
            f"{key}: {encode_canonical(value)}"
            for key, value in fields.items()
            if key not in _SILENT and key not in handled and value is not None and concerns_type(key, kind)
        ]
        texts = [
            description_of(fields),
            str(written.get("description", "")),
            f"({', '.join(unsaid)})" if unsaid else "",
        ]
        texts = list(dict.fromkeys(filter(None, texts)))
        title = fields.get("title")
        return {
            **({"title": title} if isinstance(title, str) and title else {}),
            **{key: value for key, value in written.items() if key != "description"},
            **({"description": "\n".join(texts)} if texts else {}),
        }
