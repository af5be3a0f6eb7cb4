"""A value and a JSON Schema → what does not fit. Pure, and total on any schema that a stranger sends.

What people and clients answer is held against this, and arguments for tools that come with a schema and no signature.
It knows the words that such schemas are made of. A word it does not know lets everything pass: whoever wrote it checks by
themselves. Patterns are not tried: a stranger's expression may take for ever.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, cast

from msgspec import Struct

MOST: Final = 20  # problems that are told
DEEPEST: Final = 64  # schemas within schemas; what is deeper is let pass
STEPS: Final = 30_000  # looks at a part of a value, or of a schema; behind them nothing is let pass
SHORT: Final = 100  # characters of a value that are told
NAMES: Final = 8  # of an object, that are looked up in the time of a step
LETTERS: Final = 32  # of a reference, that are read in it
COMPARED: Final = 4096  # letters of two texts, or bits of two numbers, that are compared in it

Schema = dict[str, Any] | bool


class Misfit(Struct, frozen=True):
    """A part of a value that does not fit: where it is, and what is wrong."""

    at: tuple[str | int, ...]
    text: str

    def __str__(self) -> str:
        """As a line for people and models."""
        where = ".".join(str(name)[:SHORT] for name in self.at)
        return f"{where}: {self.text}" if where else self.text


def misfits(value: Any, schema: Any) -> list[Misfit]:
    """What of a value does not fit a schema, as far as it is worth telling."""
    if not isinstance(schema, dict | bool):
        return [Misfit((), "its schema is no schema")]
    root = cast("Schema", schema)
    found: list[Misfit] = []
    try:
        for misfit in _Check(root).check(value, root, (), 0):
            found.append(misfit)
            if len(found) >= MOST:
                break
    except _TooMuchError:
        found.append(Misfit((), "it is too much to be checked"))
    return found


class _TooMuchError(Exception):
    pass


class _Check:
    def __init__(self, root: Schema) -> None:
        self._root, self._left = root, STEPS

    def _spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooMuchError

    def check(self, value: Any, schema: Any, at: tuple[str | int, ...], depth: int) -> Iterator[Misfit]:
        self._spend()
        if schema is False:
            yield Misfit(at, "nothing is allowed here")
        if not isinstance(schema, dict) or depth > DEEPEST:
            return
        words = cast("dict[str, Any]", schema)
        if isinstance(words.get("$ref"), str):
            self._spend(1 + len(words["$ref"]) // LETTERS)
            self._spend(words["$ref"].count("/"))
            target = _resolve(self._root, words["$ref"])
            if target is not None:
                yield from self.check(value, target, at, depth + 1)
        self._spend(len(_list(words.get("type"))) + _bits(value) // COMPARED)
        if (wrong := _wrong_type(value, words.get("type"))) is not None:
            yield Misfit(at, wrong)
            return
        for text in self._wrong_value(value, words):
            yield Misfit(at, text)
        if isinstance(value, dict):
            yield from self._object(cast("dict[str, Any]", value), words, at, depth)
        elif isinstance(value, list):
            yield from self._array(cast("list[Any]", value), words, at, depth)
        yield from self._choices(value, words, at, depth)

    def _object(
        self, value: dict[str, Any], words: dict[str, Any], at: tuple[str | int, ...], depth: int
    ) -> Iterator[Misfit]:
        known = words.get("properties")
        properties: dict[str, Any] = cast("dict[str, Any]", known) if isinstance(known, dict) else {}
        self._spend(len(_list(words.get("required"))))
        for name in _names(words.get("required")):
            if name not in value:
                yield Misfit((*at, name), "it is missing")
        others = words.get("additionalProperties", True)
        is_looked_at = bool(properties) or others is not True
        self._spend(1 + (len(value) // NAMES if is_looked_at else 0))
        for name, item in value.items() if is_looked_at else ():
            if name in properties:
                yield from self.check(item, properties[name], (*at, name), depth + 1)
            elif others is False and "patternProperties" not in words:
                there = ", ".join(known[:SHORT] for known in islice(properties, MOST)) or "nothing"
                self._spend(MOST // 4)
                yield Misfit((*at, name), f"it is not known; there is: {there}")
            elif isinstance(others, dict):
                yield from self.check(item, others, (*at, name), depth + 1)
        yield from _sizes(len(value), words, "Properties", "properties", at)

    def _array(
        self, value: list[Any], words: dict[str, Any], at: tuple[str | int, ...], depth: int
    ) -> Iterator[Misfit]:
        given = words.get("prefixItems")
        first: list[Any] = cast("list[Any]", given) if isinstance(given, list) else []
        rest = words.get("items", True)
        self._spend()
        for index, item in enumerate(value) if first or rest is not True else ():
            yield from self.check(item, first[index] if index < len(first) else rest, (*at, index), depth + 1)
        yield from _sizes(len(value), words, "Items", "items", at)

    def _choices(self, value: Any, words: dict[str, Any], at: tuple[str | int, ...], depth: int) -> Iterator[Misfit]:
        for one in _list(words.get("allOf")):
            yield from self.check(value, one, at, depth + 1)
        for word in ("anyOf", "oneOf"):
            options = _list(words.get(word))
            if not options:
                continue
            fits = sum(1 for one in options if next(self.check(value, one, at, depth + 1), None) is None)
            if not fits or (word == "oneOf" and fits > 1):
                yield Misfit(
                    at, "it fits none of what is allowed" if not fits else "it fits more than one of the choices"
                )
        if "not" in words and next(self.check(value, words["not"], at, depth + 1), None) is None:
            yield Misfit(at, "just this is not allowed")

    def _wrong_value(self, value: Any, words: dict[str, Any]) -> Iterator[str]:
        if "const" in words and not self._same(value, words["const"]):
            yield f"it must be {_short(words['const'])}"
        if isinstance(words.get("enum"), list):
            known = cast("list[Any]", words["enum"])
            if not any(self._same(value, one) for one in known):
                self._spend(MOST // 4)
                yield f"it must be one of {', '.join(_short(one) for one in known[:MOST])}"
        if isinstance(value, str):
            yield from (misfit.text for misfit in _sizes(len(value), words, "Length", "characters", ()))
        if _is_number(value):
            yield from _bounds(cast("float", value), words)

    def _same(self, one: Any, other: Any, depth: int = 0) -> bool:
        """Whether two values are the same in JSON, where true is not 1."""
        self._spend()
        if depth > DEEPEST:
            return False
        if isinstance(one, dict) and isinstance(other, dict):
            first, second = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
            self._spend(len(first) // NAMES)
            return first.keys() == second.keys() and all(
                self._same(item, second[name], depth + 1) for name, item in first.items()
            )
        if isinstance(one, list) and isinstance(other, list):
            pairs = cast("list[Any]", one), cast("list[Any]", other)
            return len(pairs[0]) == len(pairs[1]) and all(
                self._same(a, b, depth + 1) for a, b in zip(*pairs, strict=True)
            )
        if isinstance(one, str) and isinstance(other, str) and len(one) == len(other):
            self._spend(len(one) // COMPARED)
        self._spend(_bits(one) // COMPARED)
        return isinstance(one, bool) == isinstance(other, bool) and one == other


def _short(value: Any) -> str:
    """A value as it is told, however long it is."""
    if isinstance(value, str):
        return repr(value if len(value) <= SHORT else value[:SHORT] + "…")
    if isinstance(value, int) and value.bit_length() > 1000:
        return "a very long number"
    if isinstance(value, dict | list):
        return "a certain object" if isinstance(value, dict) else "a certain list"
    return repr(value)


def _resolve(root: Schema, name: str) -> Any:
    """What a reference within the same schema leads to; others are not followed."""
    if not name.startswith("#"):
        return None
    found: Any = root
    for step in name[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or step not in found:
            return None
        found = cast("dict[str, Any]", found)[step]
    return found


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


def _bounds(value: float, words: dict[str, Any]) -> Iterator[str]:
    for word, is_wrong, told in _BOUNDS:
        limit: Any = words.get(word)
        if _is_number(limit) and is_wrong(value, limit):
            yield f"it must be {told} {_short(limit)}"


def _sizes(size: int, words: dict[str, Any], word: str, of: str, at: tuple[str | int, ...]) -> Iterator[Misfit]:
    least, most = words.get(f"min{word}"), words.get(f"max{word}")
    if _is_number(least) and size < cast("float", least):
        yield Misfit(at, f"it has {size} {of}; at least {_short(least)}")
    if _is_number(most) and size > cast("float", most):
        yield Misfit(at, f"it has {size} {of}; at most {_short(most)}")


def _names(value: Any) -> list[str]:
    return [name for name in _list(value) if isinstance(name, str)]


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
