"""Rule subjects: lays out the arguments of a call as the cases that rules decide about.

A tool declares which of its arguments are paths, URLs or commands; every other argument is plain text. A dot
reaches into an object (`to.city`), and into every object of a list. An argument with many values makes one case for
each of them, and every case must be allowed for the call to be allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final, cast

import msgspec

from everturn.core.canonical_json import JsonObject, encode_canonical
from everturn.core.rules.patterns import Subject, SubjectKind, normalize_path
from everturn.core.rules.policy import MAX_CASES
from everturn.core.rules.urls import parse_url
from everturn.errors import ToolError

MAX_NAME_DEPTH = 8  # how many dots a name may have
_ABSENT: Final = object()

ReadCommand = Callable[[str], Sequence[Subject]]
SubjectValues = Sequence[Subject | None]


class UnreadableCall(ToolError):
    """A call that rules cannot be matched against. It is denied, and the text tells the model how to fix it."""

    code = "denied"


def build_cases(
    subjects: Mapping[str, SubjectKind],
    arguments: JsonObject,
    read_command: ReadCommand,
    wanted: frozenset[str] | None = None,
) -> list[dict[str, Subject | None]]:
    """Lay out the values of a call, one case for each combination.

    Declared subjects are always read; of the other arguments only those `wanted`, the names that some rule matches.

    Raises:
        UnreadableCall: a declared value cannot be read, or there are more than 256 cases.
    """
    names = _names_in(arguments) if wanted is None else wanted
    if not subjects and not names:
        return [{}]
    values: dict[str, SubjectValues] = {}
    for name, kind in subjects.items():
        values[name] = _declared_values(name, kind, _values_of(arguments, name), read_command)
    for name in sorted(names):  # the same order in every process
        if name not in subjects:
            values[name] = _plain_values(name, _values_of(arguments, name))
    many = {name: items for name, items in values.items() if len(items) > 1}
    if prod(map(len, many.values())) > MAX_CASES:
        counts = " × ".join(f"{len(items)} of {name}" for name, items in many.items())
        raise UnreadableCall(
            f"one call does too many things: {counts}, at most {MAX_CASES}; split it into several calls"
        )
    single = {name: items[0] for name, items in values.items() if len(items) == 1}
    return [single | dict(zip(many, case, strict=True)) for case in product(*many.values())]


def find_commands(subjects: Mapping[str, SubjectKind], arguments: JsonObject) -> list[str]:
    """The distinct command lines of a call, which must be parsed before its cases can be laid out."""
    commands: dict[str, None] = {}
    for name, kind in subjects.items():
        for value in _values_of(arguments, name) if kind == "command" else ():
            items = cast("list[Any]", value) if isinstance(value, list) else [value]
            commands.update((item, None) for item in items if isinstance(item, str))
    return list(commands)


def _values_of(arguments: JsonObject, name: str) -> list[Any]:
    """All values of a name: the argument of that name, and the values its dots lead to."""
    values: list[Any] = [arguments[name]] if name in arguments else []
    if "." in name:
        values += _follow_path(arguments, name.split(".", MAX_NAME_DEPTH))
    return values if any(value is not _ABSENT for value in values) else []


def _follow_path(value: Any, steps: Sequence[str]) -> list[Any]:
    """Follow the steps into objects, and into each object of a list; a missing key gives `_ABSENT`."""
    if not steps:
        return [value]
    values: list[Any] = []
    for item in cast("list[Any]", value) if isinstance(value, list) else (value,):
        inner = cast("dict[str, Any]", item).get(steps[0], _ABSENT) if isinstance(item, dict) else _ABSENT
        values += [_ABSENT] if inner is _ABSENT else _follow_path(inner, steps[1:])
    return values


def _names_in(arguments: Mapping[str, Any], depth: int = MAX_NAME_DEPTH) -> set[str]:
    """Every name that leads to a value."""
    names: set[str] = set()
    for key, value in arguments.items():
        names.add(key)
        inner: Iterable[Any] = cast("list[Any]", value) if isinstance(value, list) else (value,)
        for item in inner if depth else ():
            if isinstance(item, dict):
                names.update(f"{key}.{name}" for name in _names_in(cast("dict[str, Any]", item), depth - 1))
    return names


# -------------------------------------------------------------------------------------------------- plain arguments


def _plain_values(name: str, found: Sequence[Any]) -> SubjectValues:
    """Text as it is, other values as their canonical JSON; a list of scalars is many values."""
    values = [_plain_value(name, item) for value in found for item in _items(value)]
    return values or (None,)


def _items(value: Any) -> Sequence[Any]:
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [value] if any(isinstance(item, dict | list) for item in items) else items


def _plain_value(name: str, value: Any) -> Subject | None:
    if value is _ABSENT:
        return None
    if isinstance(value, str):
        return Subject("text", value)
    try:
        return Subject("text", encode_canonical(value))
    except (UnicodeEncodeError, RecursionError, OverflowError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise UnreadableCall(f"the argument {name!r} is not plain JSON, so rules cannot match it") from error


# ----------------------------------------------------------------------------------------------- declared subjects


def _declared_values(name: str, kind: SubjectKind, found: Sequence[Any], read_command: ReadCommand) -> SubjectValues:
    """The values of a declared subject; no rule matches a missing value or a null."""
    values: list[Subject | None] = []
    for value in found:
        if value is None or value is _ABSENT:
            values.append(None)
        elif isinstance(value, list):
            for item in cast("list[Any]", value):
                values += _declared_value(name, kind, item, read_command)
        else:
            values += _declared_value(name, kind, value, read_command)
    return values or (None,)


def _declared_value(name: str, kind: SubjectKind, value: Any, read_command: ReadCommand) -> SubjectValues:
    if not isinstance(value, str):
        raise UnreadableCall(f"{name!r} must be a string or a list of strings; it is {type(value).__name__}")
    if kind == "command":
        return list(read_command(value))
    if kind == "text":
        return (Subject(kind, value),)
    normal = normalize_path(value) if kind == "path" else parse_url(value)
    if normal is None:
        raise UnreadableCall(f"{name!r} cannot be read as a {kind}: {_advice(kind)}")
    return (Subject(kind, str(normal)),)


def _advice(kind: SubjectKind) -> str:
    if kind == "path":
        return "it has control characters in it; leave them out"
    return (
        "write scheme, host and path in full (https://example.com/a%20b), without a user, spaces, backslashes "
        "or an unusual way to write the host"
    )
