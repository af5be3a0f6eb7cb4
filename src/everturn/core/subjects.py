"""What rules look at: from the arguments of a call to the cases that are judged.

A tool declares which of its arguments are paths, addresses or commands; every other argument is plain text. A dot
reaches into an object (`to.city`), and into every object of a list. An argument with many values makes one case for
each of them, and every case must be allowed for the call to be allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final, cast

import msgspec

from everturn.core.canonical import JsonObject, canonical
from everturn.core.patterns import Subject, SubjectKind, read_path
from everturn.core.policy import MOST_CASES
from everturn.core.urls import read_url
from everturn.errors import ToolError

DEEPEST = 8  # how many dots a name may have
_ABSENT: Final = object()

ReadCommand = Callable[[str], Sequence[Subject]]
Values = Sequence[Subject | None]


class Unjudgeable(ToolError):
    """A call that no rule can be held against. It is denied, and the text tells the model what would help."""

    code = "denied"


def cases_of(
    subjects: Mapping[str, SubjectKind],
    arguments: JsonObject,
    read_command: ReadCommand,
    wanted: frozenset[str] | None = None,
) -> list[dict[str, Subject | None]]:
    """Lay out the values of a call, one case for each combination.

    Declared subjects are always read; of the other arguments only those `wanted`, the names that some rule looks at.

    Raises:
        Unjudgeable: a declared value cannot be read, or there are more than 256 cases.
    """
    names = _names_in(arguments) if wanted is None else wanted
    if not subjects and not names:
        return [{}]
    values: dict[str, Values] = {}
    for name, kind in subjects.items():
        values[name] = _declared(name, kind, _found(arguments, name), read_command)
    for name in sorted(names):  # the same order in every process
        if name not in subjects:
            values[name] = _plain(name, _found(arguments, name))
    many = {name: found for name, found in values.items() if len(found) > 1}
    if prod(map(len, many.values())) > MOST_CASES:
        counts = " × ".join(f"{len(found)} of {name}" for name, found in many.items())
        raise Unjudgeable(f"too much in one call: {counts} is more than {MOST_CASES}; make several calls of it")
    single = {name: found[0] for name, found in values.items() if len(found) == 1}
    return [single | dict(zip(many, case, strict=True)) for case in product(*many.values())]


def commands_of(subjects: Mapping[str, SubjectKind], arguments: JsonObject) -> list[str]:
    """The command lines in a call, each once: what has to be read before its cases can be laid out."""
    found: dict[str, None] = {}
    for name, kind in subjects.items():
        for value in _found(arguments, name) if kind == "command" else ():
            items = cast("list[Any]", value) if isinstance(value, list) else [value]
            found.update((item, None) for item in items if isinstance(item, str))
    return list(found)


def _found(arguments: JsonObject, name: str) -> list[Any]:
    """Everything that a name can mean: the argument of that name, and what its dots lead to."""
    found: list[Any] = [arguments[name]] if name in arguments else []
    if "." in name:
        found += _reached(arguments, name.split(".", DEEPEST))
    return found if any(value is not _ABSENT for value in found) else []


def _reached(value: Any, steps: Sequence[str]) -> list[Any]:
    """Follow the steps into objects, and into each object of a list; what lacks one is absent there."""
    if not steps:
        return [value]
    found: list[Any] = []
    for item in cast("list[Any]", value) if isinstance(value, list) else (value,):
        inner = cast("dict[str, Any]", item).get(steps[0], _ABSENT) if isinstance(item, dict) else _ABSENT
        found += [_ABSENT] if inner is _ABSENT else _reached(inner, steps[1:])
    return found


def _names_in(arguments: Mapping[str, Any], depth: int = DEEPEST) -> set[str]:
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


def _plain(name: str, found: Sequence[Any]) -> Values:
    """Text as it is, other values as their canonical JSON; a list of simple values is many values."""
    values = [_plain_one(name, item) for value in found for item in _items(value)]
    return values or (None,)


def _items(value: Any) -> Sequence[Any]:
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [value] if any(isinstance(item, dict | list) for item in items) else items


def _plain_one(name: str, value: Any) -> Subject | None:
    if value is _ABSENT:
        return None
    if isinstance(value, str):
        return Subject("text", value)
    try:
        return Subject("text", canonical(value))
    except (UnicodeEncodeError, RecursionError, OverflowError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise Unjudgeable(f"the argument {name!r} is not plain JSON, so it cannot be judged") from error


# ----------------------------------------------------------------------------------------------- declared subjects


def _declared(name: str, kind: SubjectKind, found: Sequence[Any], read_command: ReadCommand) -> Values:
    """The values of a declared subject; a missing one and a null are nothing that a rule could fit."""
    values: list[Subject | None] = []
    for value in found:
        if value is None or value is _ABSENT:
            values.append(None)
        elif isinstance(value, list):
            for item in cast("list[Any]", value):
                values += _declared_one(name, kind, item, read_command)
        else:
            values += _declared_one(name, kind, value, read_command)
    return values or (None,)


def _declared_one(name: str, kind: SubjectKind, value: Any, read_command: ReadCommand) -> Values:
    if not isinstance(value, str):
        raise Unjudgeable(f"{name!r} must be a text or a list of texts; it is {type(value).__name__}")
    if kind == "command":
        return list(read_command(value))
    if kind == "text":
        return (Subject(kind, value),)
    normal = read_path(value) if kind == "path" else read_url(value)
    if normal is None:
        raise Unjudgeable(f"{name!r} cannot be read as a {kind}: {_advice(kind)}")
    return (Subject(kind, str(normal)),)


def _advice(kind: SubjectKind) -> str:
    if kind == "path":
        return "it has control characters in it; leave them out"
    return (
        "write scheme, host and path in full (https://example.com/a%20b), without a user, spaces, backslashes "
        "or an unusual way to write the host"
    )
