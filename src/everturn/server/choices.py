"""The valid values of a field in a request body, for the error that refuses another one.

msgspec says which value is invalid, and where; this finds the type of that place and lists what it accepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import inspect

_STEP: Final = re.compile(r"\.([A-Za-z_][\w-]*)|\[(?:\.\.\.|\d+)\]")
_INVALID: Final = "Invalid enum value"
_MOST: Final = 20


def describe_choices(kind: Any, where: str, text: str) -> str:
    """Return "; valid: a, b" for the text of an invalid enum value at a path of a type, "" for another text."""
    if not text.startswith(_INVALID):
        return ""
    types = [inspect.type_info(kind)]
    for match in _STEP.finditer(where.removeprefix("$")):
        types = [inner for outer in types for inner in _inside(outer, match[1])]
    values = list(dict.fromkeys(str(value) for found in types for value in _values(found)))
    more = f" and {len(values) - _MOST} more" if len(values) > _MOST else ""
    return f"; valid: {', '.join(values[:_MOST])}{more}" if values else ""


def _inside(outer: inspect.Type, field: str | None) -> Iterator[inspect.Type]:
    match outer:
        case inspect.UnionType(types=types):
            for inner in types:
                yield from _inside(inner, field)
        case inspect.Metadata(type=inner):
            yield from _inside(inner, field)
        case inspect.StructType(fields=fields) | inspect.TypedDictType(fields=fields) if field is not None:
            yield from (found.type for found in fields if found.encode_name == field)
        case inspect.DictType(value_type=inner) if field is None:
            yield inner
        case inspect.CollectionType(item_type=inner) if field is None:
            yield inner
        case inspect.TupleType(item_types=inners) if field is None:
            yield from inners
        case _:
            pass


def _values(found: inspect.Type) -> Iterator[object]:
    match found:
        case inspect.UnionType(types=types):
            for inner in types:
                yield from _values(inner)
        case inspect.Metadata(type=inner):
            yield from _values(inner)
        case inspect.LiteralType(values=values):
            yield from values
        case inspect.EnumType(cls=cls):
            yield from (member.value for member in cls)
        case _:
            pass
