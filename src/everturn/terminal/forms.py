"""The JSON Schema of an answer → the fields a person is asked for, and a line they typed → the value of one. Pure.

A schema is a stranger's: what is not understood in it is asked for as JSON, and the door has the last word.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, Literal, cast

from msgspec import UNSET, Struct, UnsetType

from everturn.core.canonical import clean, clean_all, parse
from everturn.core.schemas import misfits
from everturn.errors import ConfigError

Kind = Literal["text", "number", "integer", "boolean", "choice", "choices", "json"]
MOST_FIELDS: Final = 50  # a form with more of them is filled in as JSON
DEEPEST: Final = 8  # references that lead to references
KINDS: Final[dict[str, Kind]] = {"string": "text", "number": "number", "integer": "integer", "boolean": "boolean"}
CALLED: Final[dict[Kind, str]] = {
    "text": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "yes or no",
    "choice": "one of these",
    "choices": "some of these",
    "json": "JSON",
}
YES: Final = ("y", "yes", "true")
NO: Final = ("n", "no", "false")
EMPTY: Final = '""'  # how an empty text is typed, where Enter alone means something else
_NUMBER: Final = re.compile(r"-?\d{1,400}(\.\d{1,400})?([eE][+-]?\d{1,3})?")
_Words = dict[str, Any]


class Field(Struct, frozen=True):
    """Something a person is asked for; the one without a name is the whole answer."""

    name: str
    kind: Kind
    schema: _Words
    title: str = ""
    about: str = ""
    is_needed: bool = True
    is_nullable: bool = False
    default: Any | UnsetType = UNSET
    options: tuple[tuple[Any, str], ...] = ()  # what can be chosen, and how it is called


def fields_of(form: str) -> list[Field] | None:
    """The fields of a form, in the order in which they are asked; None where it can only be filled in as JSON."""
    root = _read(form)
    whole = _resolved(root, root)
    properties = whole.get("properties")
    if not isinstance(properties, dict) and whole.get("type") != "object":
        field = _field("", whole, root, True)
        return None if field.kind == "json" else [field]
    found = cast("_Words", properties) if isinstance(properties, dict) else {}
    if len(found) > MOST_FIELDS or any(word in whole for word in ("allOf", "anyOf", "oneOf", "not", "if")):
        return None
    needed = whole.get("required")
    names: list[Any] = cast("list[Any]", needed) if isinstance(needed, list) else []
    if any(not isinstance(name, str) or name not in found for name in names):
        return None
    # What is needed comes first, and as the form has it: the order of its fields is lost where it was hashed.
    order = dict.fromkeys([*names, *found])
    return [_field(name, _resolved(found[name], root), root, name in names) for name in order]


def _read(form: str) -> _Words:
    try:
        found = parse(form)
    except ValueError:
        return {}
    return cast("_Words", found) if isinstance(found, dict) else {}


def _resolved(schema: Any, root: _Words) -> _Words:
    """A schema, or the one it refers to; beside a reference its own words count."""
    words = cast("_Words", schema) if isinstance(schema, dict) else {}
    for _ in range(DEEPEST):
        if not isinstance(ref := words.get("$ref"), str):
            return words
        target: Any = root
        for name in ref.removeprefix("#").strip("/").split("/") if ref.startswith("#/") else ["", ""]:
            target = cast("_Words", target).get(name) if isinstance(target, dict) else None
        own = {name: value for name, value in words.items() if name != "$ref"}
        words = {**(cast("_Words", target) if isinstance(target, dict) else {}), **own}
    return {}


def _field(name: str, words: _Words, root: _Words, is_needed: bool) -> Field:
    inner, is_nullable = _without_null(words, root)
    kind, options = _kind(inner, root)
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return Field(
        name,
        kind,
        {**words, **definitions},
        _text(words.get("title") or inner.get("title")),
        _text(words.get("description") or inner.get("description")),
        is_needed,
        is_nullable,
        words.get("default", UNSET),
        options,
    )


def _without_null(words: _Words, root: _Words) -> tuple[_Words, bool]:
    """What it is if it is anything: `type: [string, null]`, or any of a schema and null."""
    kinds = words.get("type")
    if isinstance(kinds, list):
        left = [kind for kind in cast("list[Any]", kinds) if kind != "null"]
        if len(left) == 1:
            return {**words, "type": left[0]}, len(left) < len(cast("list[Any]", kinds))
        return {}, "null" in kinds
    for word in ("anyOf", "oneOf"):
        if isinstance(several := words.get(word), list):
            given = [_resolved(one, root) for one in cast("list[Any]", several)]
            left = [one for one in given if one.get("type") != "null"]
            if len(left) == 1 and len(given) == 2:
                return left[0], True
    return words, False


def _kind(words: _Words, root: _Words) -> tuple[Kind, tuple[tuple[Any, str], ...]]:
    if options := _options(words):
        return "choice", options
    kind = words.get("type")
    if kind == "array":
        options = _options(_resolved(words.get("items"), root))
        return ("choices", options) if options else ("json", ())
    if any(word in words for word in ("anyOf", "oneOf", "allOf", "const", "not")):
        return "json", ()
    return (KINDS.get(kind, "json"), ()) if isinstance(kind, str) else ("json", ())


def _options(words: _Words) -> tuple[tuple[Any, str], ...]:
    if isinstance(values := words.get("enum"), list):
        names = words.get("enumNames")
        called: list[Any] = cast("list[Any]", names) if isinstance(names, list) else []
        told = [_text(called[at]) if at < len(called) else "" for at in range(len(cast("list[Any]", values)))]
        return tuple(
            (value, _called(value, title)) for value, title in zip(cast("list[Any]", values), told, strict=True)
        )
    for word in ("oneOf", "anyOf"):
        if isinstance(several := words.get(word), list) and several:
            rows = [cast("_Words", one) if isinstance(one, dict) else {} for one in cast("list[Any]", several)]
            if all("const" in row for row in rows):
                return tuple((row["const"], _called(row["const"], _text(row.get("title")))) for row in rows)
    return ()


def _called(value: Any, title: str) -> str:
    """How a choice is called: never only by a title, which may say anything."""
    told = shown(value)
    return f"{told} ({title})" if title and title != told else told


def shown(value: Any) -> str:
    """A value on a line: a plain text as it is, everything else as JSON."""
    is_plain = isinstance(value, str) and value == value.strip() and "\n" not in value and value != ""
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str:
    return clean(value) if isinstance(value, str) else ""


def value_of(field: Field, line: str) -> Any:
    """The value that a line means; `UNSET` where the field is left out.

    Raises:
        ConfigError: it means none, and what to type instead.
    """
    typed = line.strip()
    value = clean_all(_meant(field, typed, line)) if typed else _left(field)
    if value is not UNSET and (wrong := misfits(value, field.schema)):
        raise ConfigError("; ".join(map(str, wrong)))
    return value


def _left(field: Field) -> Any:
    """What Enter alone means."""
    if field.default is not UNSET:
        return field.default
    if not field.is_needed:
        return UNSET
    if field.is_nullable:
        return None
    how = f"; for an empty text type {EMPTY}" if field.kind == "text" else "; Ctrl-D leads back"
    raise ConfigError(f"this is needed{how}")


def _meant(field: Field, typed: str, line: str) -> Any:
    match field.kind:
        case "text":
            return "" if typed == EMPTY else line
        case "boolean":
            if typed.casefold() not in (*YES, *NO):
                raise ConfigError("type y for yes, or n for no")
            return typed.casefold() in YES
        case "number" | "integer":
            if not _NUMBER.fullmatch(typed):
                raise ConfigError(f"type {CALLED[field.kind]}, such as 12")
            return _number(typed, field.kind == "integer")
        case "choice":
            return _chosen(field, typed)
        case "choices":
            return [_chosen(field, word) for word in typed.replace(",", " ").split()] if typed != "[]" else []
        case "json":
            try:
                return parse(typed)
            except ValueError:
                raise ConfigError('that is not JSON; such as ["a", "b"] or {"name": 1}; a text is in quotes') from None


def _number(typed: str, is_whole: bool) -> int | float:
    try:
        value = json.loads(typed)
    except ValueError:
        raise ConfigError("type a number without zeros in front of it") from None
    if is_whole and isinstance(value, float) and value.is_integer():
        value = int(value)
    if abs(value) == float("inf") or (isinstance(value, int) and abs(value) > 2**63 - 1):
        raise ConfigError("that number is too large to be sent exactly")
    return value


def _chosen(field: Field, word: str) -> Any:
    """What is chosen by its number; a text also by its own words, where they cannot be taken for one."""
    if word.isascii() and word.isdecimal():
        if 1 <= int(word[:9]) <= len(field.options) and len(word) <= 9:
            return field.options[int(word) - 1][0]
    elif any(word == value for value, _ in field.options):
        return word
    raise ConfigError(f"type a number from 1 to {len(field.options)}")
