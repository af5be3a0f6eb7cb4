"""Schemas of tools → a grammar (GBNF, as llama.cpp reads it) that lets only calls through that fit them.

A schema the grammar cannot say in full becomes wider: the tool itself still checks its arguments. Only what a schema
allows without naming it is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from everturn.core.canonical import JsonObject, canonical
from everturn.models.formats.schemas import required_of, tool_schema
from everturn.models.prompted.paradigm import Offer

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
    """Rules that are gathered while calls are described."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = dict(_BASICS)
        self._named: dict[str, str] = {}  # what was made already, so that a schema that holds itself comes to an end

    def literal(self, value: object) -> str:
        """A JSON value that must stand there as it is."""
        return quoted(canonical(value))

    def object(self, schema: JsonObject) -> str:
        """The arguments of a tool."""
        schema = tool_schema(schema)
        return self._rule(schema, schema)

    def value(self, schema: JsonObject | None) -> str:
        """A value that fits a schema; without one, words."""
        return "string" if schema is None else self._rule(schema, schema)

    def members(self, schema: JsonObject, write: Callable[[str, str, bool], str]) -> list[tuple[str, bool]]:
        """A rule for each argument of a tool, as `write` has it from name, rule and whether it is text; and if it must be."""
        schema = tool_schema(schema)
        required = required_of(schema)
        found: list[tuple[str, bool]] = []
        for name, inner in cast("JsonObject", schema["properties"]).items():
            rule = self._rule(inner, schema)
            found.append((write(name, rule, rule == "string"), name in required))
        return sorted(found, key=lambda member: not member[1])

    def answer(self, calls: Sequence[str], opening: str, offer: Offer) -> str:
        """The whole grammar: lines that do not begin like a call, and then calls."""
        root = "calls" if offer.must_call else r'(line "\n")* (calls | line)'
        several = rf'call ("\n" call){{0,{offer.most - 1}}}' if offer.most > 1 else "call"
        rules = {"root": root, "call": " | ".join(calls), "calls": several}
        return self.write(rules if offer.must_call else {**rules, "line": _line_without(opening)})

    def write(self, rules: dict[str, str]) -> str:
        """These rules, and those that were gathered on the way."""
        return "\n".join(f"{name} ::= {rule}" for name, rule in {**rules, **self._rules}.items())

    def _rule(self, schema: Any, root: JsonObject) -> str:
        """The name of a rule for a schema."""
        if not isinstance(schema, dict):
            return "value"
        fields = cast("JsonObject", schema)
        plain = self._plain(fields)
        if plain is not None:
            return plain
        key = canonical(fields)
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
            found: Any = root
            for step in ref.removeprefix("#/").split("/"):
                found = cast("JsonObject", found).get(step) if isinstance(found, dict) else None
            return self._rule(found, root)
        if "const" in schema:
            return self.literal(schema["const"])
        if schema.get("enum"):
            return " | ".join(map(self.literal, schema["enum"]))
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                return " | ".join(self._rule(one, root) for one in schema[key])
        if isinstance(kinds := schema.get("type"), list):
            return (
                " | ".join(self._rule({**schema, "type": kind}, root) for kind in cast("list[str]", kinds)) or "value"
            )
        if schema.get("type") == "array":
            item = self._rule(schema["items"], root)
            return f'"[" ({item} (comma {item})*)? "]"'
        if schema.get("type") == "object":
            return self._members(schema, root)
        return "value"  # allOf, and whatever else there is

    def _members(self, schema: JsonObject, root: JsonObject) -> str:
        required = required_of(schema)
        members = {
            name: f"{quoted(canonical(name))} colon {self._rule(inner, root)}"
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
    """A text as a grammar has it."""
    return json.dumps(text, ensure_ascii=False)


def _line_without(opening: str) -> str:
    """A line that does not begin with `opening`."""
    ways: list[str] = []
    for at, sign in enumerate(opening):
        other = f"[^{_in_class(sign)}\\n] [^\\n]*"
        ways.append(f"{quoted(opening[:at])} ({other})?" if at else other)
    return f"({' | '.join(ways)})?"


def _in_class(sign: str) -> str:
    return f"\\{sign}" if sign in "]^\\-" else sign
