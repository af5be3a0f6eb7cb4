"""Grammars for constrained decoding (GBNF, as in llama.cpp): built from tool schemas, they allow only calls that match.

A schema that a grammar cannot express becomes wider: the tool itself still validates its arguments. Only properties
that a schema allows without naming them are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from everturn.core.canonical_json import JsonObject, encode_canonical
from everturn.models.formats.tool_schemas import required_properties, tool_schema
from everturn.models.prompted.tool_format import OfferedTools

_BASICS: Final = {
    "string": r'"\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""',
    "integer": r'"-"? ("0" | [1-9] [0-9]{0,15})',
    "number": r'"-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "value": "object | array | string | number | boolean | null",
    "object": '"{" (string colon value (comma string colon value)*)? "}"',
    "array": '"[" (value (comma value)*)? "]"',
    "comma": '"," " "?',
    "colon": '":" " "?',
}


class Grammar:
    """Rules that are collected while calls are described."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = dict(_BASICS)
        self._named: dict[str, str] = {}  # schema -> its rule, so that recursive schemas terminate

    def literal(self, value: object) -> str:
        """Return a rule for one JSON value."""
        return quoted(encode_canonical(value))

    def object(self, schema: JsonObject) -> str:
        """Return a rule for the arguments of a tool."""
        schema = tool_schema(schema)
        return self._rule(schema, schema)

    def value(self, schema: JsonObject | None) -> str:
        """Return a rule for a value of a schema; without a schema, a string."""
        return "string" if schema is None else self._rule(schema, schema)

    def members(self, schema: JsonObject, write: Callable[[str, str, bool], str]) -> list[tuple[str, bool]]:
        """Return `write(name, rule, is_text)` for each argument of a tool, and whether it is required."""
        schema = tool_schema(schema)
        required = required_properties(schema)
        rules: list[tuple[str, bool]] = []
        for name, inner in cast("JsonObject", schema["properties"]).items():
            rule = self._rule(inner, schema)
            rules.append((write(name, rule, rule == "string"), name in required))
        return sorted(rules, key=lambda member: not member[1])

    def answer(self, calls: Sequence[str], opening: str, offer: OfferedTools) -> str:
        """Return the whole grammar: lines that do not begin like a call, and then calls."""
        root = "calls" if offer.must_call else r'(line "\n")* (calls | line)'
        several = rf'call ("\n" call){{0,{offer.max_calls - 1}}}' if offer.max_calls > 1 else "call"
        rules = {"root": root, "call": " | ".join(calls), "calls": several}
        return self.write(rules if offer.must_call else {**rules, "line": _line_without(opening)})

    def write(self, rules: dict[str, str]) -> str:
        """Return these rules, and those that were collected."""
        return "\n".join(f"{name} ::= {rule}" for name, rule in {**rules, **self._rules}.items())

    def _rule(self, schema: Any, root: JsonObject) -> str:
        """Return the name of a rule for a schema."""
        if not isinstance(schema, dict):
            return "value"
        fields = cast("JsonObject", schema)
        plain = self._plain(fields)
        if plain is not None:
            return plain
        key = encode_canonical(fields)
        if key not in self._named:
            name = self._named[key] = f"r{len(self._named)}"
            self._rules[name] = self._written(fields, root)
        return self._named[key]

    def _plain(self, schema: JsonObject) -> str | None:
        kind = schema.get("type")
        if any(key in schema for key in ("$ref", "const", "enum", "anyOf", "oneOf", "allOf")):
            return None
        if kind == "object" and schema.get("properties"):
            return None
        if kind == "array" and "items" in schema:
            return None
        if isinstance(kind, list):
            return None
        return kind if isinstance(kind, str) and kind in _BASICS else "value"

    def _written(self, schema: JsonObject, root: JsonObject) -> str:
        if isinstance(ref := schema.get("$ref"), str):
            target: Any = root
            for step in ref.removeprefix("#/").split("/"):
                target = cast("JsonObject", target).get(step) if isinstance(target, dict) else None
            return self._rule(target, root)
        if "const" in schema:
            return self.literal(schema["const"])
        if schema.get("enum"):
            return " | ".join(map(self.literal, schema["enum"]))
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                return " | ".join(self._rule(choice, root) for choice in schema[key])
        if isinstance(kinds := schema.get("type"), list):
            return (
                " | ".join(self._rule({**schema, "type": kind}, root) for kind in cast("list[str]", kinds)) or "value"
            )
        if schema.get("type") == "array":
            item = self._rule(schema["items"], root)
            return f'"[" ({item} (comma {item})*)? "]"'
        if schema.get("type") == "object":
            return self._members(schema, root)
        return "value"  # allOf, and everything else

    def _members(self, schema: JsonObject, root: JsonObject) -> str:
        required = required_properties(schema)
        members = {
            name: f"{quoted(encode_canonical(name))} colon {self._rule(inner, root)}"
            for name, inner in cast("JsonObject", schema["properties"]).items()
        }
        first = [rule for name, rule in members.items() if name in required]
        others = [rule for name, rule in members.items() if name not in required]
        if first:
            inner = " comma ".join(first) + "".join(f" (comma {rule})?" for rule in others)
            return f'"{{" {inner} "}}"'
        chains = [rule + "".join(f" (comma {later})?" for later in others[at + 1 :]) for at, rule in enumerate(others)]
        return f'"{{" ({" | ".join(chains)})? "}}"'


def quoted(text: str) -> str:
    """Return a text as a literal of a grammar."""
    return json.dumps(text, ensure_ascii=False)


def _line_without(opening: str) -> str:
    """Return a rule for a line that does not begin with `opening`."""
    alternatives: list[str] = []
    for at, char in enumerate(opening):
        other = f"[^{_in_class(char)}\\n] [^\\n]*"
        alternatives.append(f"{quoted(opening[:at])} ({other})?" if at else other)
    return f"({' | '.join(alternatives)})?"


def _in_class(char: str) -> str:
    return f"\\{char}" if char in "]^\\-" else char
