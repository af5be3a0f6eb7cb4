"""JSON Schema validation, bounded in time and total on untrusted schemas.

It checks the answers of people and clients, and the arguments of tools that have a schema but no Python signature. It
supports the common keywords. An unknown keyword accepts everything: the schema's author checks that value. `pattern` is
not evaluated, because an untrusted regular expression may run forever.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, cast

from msgspec import Struct

MAX_VIOLATIONS: Final = 20  # violations that are reported
MAX_SCHEMA_DEPTH: Final = 64  # nested schemas; deeper ones accept everything
MAX_CHECK_STEPS: Final = 30_000  # visits of a part of a value or a schema; beyond them the value is rejected
MAX_SHOWN_LENGTH: Final = 100  # characters of a value in a report
KEYS_PER_STEP: Final = 8  # keys of an object that cost one step
REFERENCE_CHARS_PER_STEP: Final = 32  # characters of a reference that cost one step
COMPARED_CHARS_PER_STEP: Final = (
    4096  # characters of two texts, or bits of two numbers, whose comparison costs one step
)

Schema = dict[str, Any] | bool


class SchemaViolation(Struct, frozen=True):
    """A part of a value that does not fit the schema: its path, and what is wrong."""

    at: tuple[str | int, ...]
    text: str

    def __str__(self) -> str:
        """One line for people and models."""
        where = ".".join(str(name)[:MAX_SHOWN_LENGTH] for name in self.at)
        return f"{where}: {self.text}" if where else self.text


def validate_schema(value: Any, schema: Any) -> list[SchemaViolation]:
    """Validate a value against a schema; at most `MOST` violations are reported."""
    if not isinstance(schema, dict | bool):
        return [SchemaViolation((), "its schema is no schema")]
    root = cast("Schema", schema)
    violations: list[SchemaViolation] = []
    try:
        for violation in _SchemaChecker(root).check(value, root, (), 0):
            violations.append(violation)
            if len(violations) >= MAX_VIOLATIONS:
                break
    except _TooMuchError:
        violations.append(SchemaViolation((), "it is too much to be checked"))
    return violations


class _TooMuchError(Exception):
    pass


class _SchemaChecker:
    def __init__(self, root: Schema) -> None:
        self._root, self._left = root, MAX_CHECK_STEPS

    def _spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooMuchError

    def check(self, value: Any, schema: Any, at: tuple[str | int, ...], depth: int) -> Iterator[SchemaViolation]:
        self._spend()
        if schema is False:
            yield SchemaViolation(at, "nothing is allowed here")
        if not isinstance(schema, dict) or depth > MAX_SCHEMA_DEPTH:
            return
        keywords = cast("dict[str, Any]", schema)
        if isinstance(keywords.get("$ref"), str):
            self._spend(1 + len(keywords["$ref"]) // REFERENCE_CHARS_PER_STEP)
            self._spend(keywords["$ref"].count("/"))
            target = _resolve(self._root, keywords["$ref"])
            if target is not None:
                yield from self.check(value, target, at, depth + 1)
        self._spend(len(_list(keywords.get("type"))) + _bits(value) // COMPARED_CHARS_PER_STEP)
        if (wrong := _wrong_type(value, keywords.get("type"))) is not None:
            yield SchemaViolation(at, wrong)
            return
        for text in self._wrong_value(value, keywords):
            yield SchemaViolation(at, text)
        if isinstance(value, dict):
            yield from self._object(cast("dict[str, Any]", value), keywords, at, depth)
        elif isinstance(value, list):
            yield from self._array(cast("list[Any]", value), keywords, at, depth)
        yield from self._choices(value, keywords, at, depth)

    def _object(
        self, value: dict[str, Any], keywords: dict[str, Any], at: tuple[str | int, ...], depth: int
    ) -> Iterator[SchemaViolation]:
        known = keywords.get("properties")
        properties: dict[str, Any] = cast("dict[str, Any]", known) if isinstance(known, dict) else {}
        self._spend(len(_list(keywords.get("required"))))
        for name in _names(keywords.get("required")):
            if name not in value:
                yield SchemaViolation((*at, name), "it is missing")
        others = keywords.get("additionalProperties", True)
        has_constraints = bool(properties) or others is not True
        self._spend(1 + (len(value) // KEYS_PER_STEP if has_constraints else 0))
        for name, item in value.items() if has_constraints else ():
            if name in properties:
                yield from self.check(item, properties[name], (*at, name), depth + 1)
            elif others is False and "patternProperties" not in keywords:
                available = (
                    ", ".join(known[:MAX_SHOWN_LENGTH] for known in islice(properties, MAX_VIOLATIONS)) or "nothing"
                )
                self._spend(MAX_VIOLATIONS // 4)
                yield SchemaViolation((*at, name), f"it is not known; there is: {available}")
            elif isinstance(others, dict):
                yield from self.check(item, others, (*at, name), depth + 1)
        yield from _sizes(len(value), keywords, "Properties", "properties", at)

    def _array(
        self, value: list[Any], keywords: dict[str, Any], at: tuple[str | int, ...], depth: int
    ) -> Iterator[SchemaViolation]:
        prefix = keywords.get("prefixItems")
        first: list[Any] = cast("list[Any]", prefix) if isinstance(prefix, list) else []
        rest = keywords.get("items", True)
        self._spend()
        for index, item in enumerate(value) if first or rest is not True else ():
            yield from self.check(item, first[index] if index < len(first) else rest, (*at, index), depth + 1)
        yield from _sizes(len(value), keywords, "Items", "items", at)

    def _choices(
        self, value: Any, keywords: dict[str, Any], at: tuple[str | int, ...], depth: int
    ) -> Iterator[SchemaViolation]:
        for option in _list(keywords.get("allOf")):
            yield from self.check(value, option, at, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            options = _list(keywords.get(keyword))
            if not options:
                continue
            fits = sum(1 for option in options if next(self.check(value, option, at, depth + 1), None) is None)
            if not fits or (keyword == "oneOf" and fits > 1):
                yield SchemaViolation(
                    at, "it fits none of what is allowed" if not fits else "it fits more than one of the choices"
                )
        if "not" in keywords and next(self.check(value, keywords["not"], at, depth + 1), None) is None:
            yield SchemaViolation(at, "just this is not allowed")

    def _wrong_value(self, value: Any, keywords: dict[str, Any]) -> Iterator[str]:
        if "const" in keywords and not self._same(value, keywords["const"]):
            yield f"it must be {_short(keywords['const'])}"
        if isinstance(keywords.get("enum"), list):
            known = cast("list[Any]", keywords["enum"])
            if not any(self._same(value, choice) for choice in known):
                self._spend(MAX_VIOLATIONS // 4)
                yield f"it must be one of {', '.join(_short(choice) for choice in known[:MAX_VIOLATIONS])}"
        if isinstance(value, str):
            yield from (violation.text for violation in _sizes(len(value), keywords, "Length", "characters", ()))
        if _is_number(value):
            yield from _bounds(cast("float", value), keywords)

    def _same(self, left: Any, right: Any, depth: int = 0) -> bool:
        """Whether two values are the same in JSON, where true is not 1."""
        self._spend()
        if depth > MAX_SCHEMA_DEPTH:
            return False
        if isinstance(left, dict) and isinstance(right, dict):
            first, second = cast("dict[str, Any]", left), cast("dict[str, Any]", right)
            self._spend(len(first) // KEYS_PER_STEP)
            return first.keys() == second.keys() and all(
                self._same(item, second[name], depth + 1) for name, item in first.items()
            )
        if isinstance(left, list) and isinstance(right, list):
            pairs = cast("list[Any]", left), cast("list[Any]", right)
            return len(pairs[0]) == len(pairs[1]) and all(
                self._same(a, b, depth + 1) for a, b in zip(*pairs, strict=True)
            )
        if isinstance(left, str) and isinstance(right, str) and len(left) == len(right):
            self._spend(len(left) // COMPARED_CHARS_PER_STEP)
        self._spend(_bits(left) // COMPARED_CHARS_PER_STEP)
        return isinstance(left, bool) == isinstance(right, bool) and left == right


def json_type(value: object) -> str:
    """Return the JSON type of a value."""
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


def _short(value: Any) -> str:
    """A value as a report shows it, shortened."""
    if isinstance(value, str):
        return repr(value if len(value) <= MAX_SHOWN_LENGTH else value[:MAX_SHOWN_LENGTH] + "…")
    if isinstance(value, int) and value.bit_length() > 1000:
        return "a very long number"
    if isinstance(value, dict | list):
        return "a certain object" if isinstance(value, dict) else "a certain list"
    return repr(value)


def _resolve(root: Schema, name: str) -> Any:
    """Resolve a reference within the same schema; external references are not followed."""
    if not name.startswith("#"):
        return None
    target: Any = root
    for step in name[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, dict) or step not in target:
            return None
        target = cast("dict[str, Any]", target)[step]
    return target


def _bits(value: Any) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == value // 1,
}


def _wrong_type(value: Any, wanted: Any) -> str | None:
    names = [wanted] if isinstance(wanted, str) else _names(wanted)
    known = [name for name in dict.fromkeys(names) if name in _TYPES]
    if not known or len(known) < len({*names}) or any(_TYPES[name](value) for name in known):
        return None
    return f"it must be {' or '.join(known)}"


_BOUNDS: Final[tuple[tuple[str, Callable[[Any, Any], bool], str], ...]] = (
    ("minimum", operator.lt, "at least"),
    ("maximum", operator.gt, "at most"),
    ("exclusiveMinimum", operator.le, "more than"),
    ("exclusiveMaximum", operator.ge, "less than"),
)


def _bounds(value: float, keywords: dict[str, Any]) -> Iterator[str]:
    for keyword, is_wrong, phrase in _BOUNDS:
        limit: Any = keywords.get(keyword)
        if _is_number(limit) and is_wrong(value, limit):
            yield f"it must be {phrase} {_short(limit)}"


def _sizes(
    size: int, keywords: dict[str, Any], suffix: str, of: str, at: tuple[str | int, ...]
) -> Iterator[SchemaViolation]:
    least, most = keywords.get(f"min{suffix}"), keywords.get(f"max{suffix}")
    if _is_number(least) and size < cast("float", least):
        yield SchemaViolation(at, f"it has {size} {of}; at least {_short(least)}")
    if _is_number(most) and size > cast("float", most):
        yield SchemaViolation(at, f"it has {size} {of}; at most {_short(most)}")


def _names(value: Any) -> list[str]:
    return [name for name in _list(value) if isinstance(name, str)]


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
