"""Form fields from a JSON Schema: the schema of an answer becomes fields to ask for, and a typed line becomes a
field's value. Pure.

The schema is untrusted: this module asks for JSON wherever it does not understand the schema, and admission validates
the answer.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, Literal, cast

from msgspec import UNSET, Struct, UnsetType

from everturn.core.canonical_json import parse_json, replace_surrogates, replace_surrogates_in
from everturn.core.json_schema import validate_schema
from everturn.errors import ConfigError

Kind = Literal["text", "number", "integer", "boolean", "choice", "choices", "json"]
MAX_FIELDS: Final = 50  # a form with more fields is filled in as JSON
MAX_REF_DEPTH: Final = 8  # nested `$ref`s that are followed
KIND_BY_TYPE: Final[dict[str, Kind]] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
}
KIND_LABELS: Final[dict[Kind, str]] = {
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
EMPTY: Final = '""'  # what people type for an empty text, where Enter alone has another meaning
_NUMBER: Final = re.compile(r"-?\d{1,400}(\.\d{1,400})?([eE][+-]?\d{1,3})?")
_Schema = dict[str, Any]


class FormField(Struct, frozen=True):
    """One field of a form. A field without a name is the whole answer."""

    name: str
    kind: Kind
    schema: _Schema
    title: str = ""
    description: str = ""
    is_required: bool = True
    is_nullable: bool = False
    default: Any | UnsetType = UNSET
    options: tuple[tuple[Any, str], ...] = ()  # values to choose from, each with its label


def default_answer(fields: list[FormField] | None) -> Any:
    """Return an answer with the defaults, as a start for editing."""
    if fields and len(fields) == 1 and not fields[0].name:
        return None if fields[0].default is UNSET else fields[0].default
    return {field.name: None if field.default is UNSET else field.default for field in fields or ()}


def parse_form(form: str) -> list[FormField] | None:
    """Return the fields of a form in the order to ask for them; None if the form can only be filled in as JSON."""
    root = _read(form)
    schema = _resolved(root, root)
    properties = schema.get("properties")
    if not isinstance(properties, dict) and schema.get("type") != "object":
        field = _field("", schema, root, True)
        return None if field.kind == "json" else [field]
    declared = cast("_Schema", properties) if isinstance(properties, dict) else {}
    if len(declared) > MAX_FIELDS or any(keyword in schema for keyword in ("allOf", "anyOf", "oneOf", "not", "if")):
        return None
    required = schema.get("required")
    names: list[Any] = cast("list[Any]", required) if isinstance(required, list) else []
    if any(not isinstance(name, str) or name not in declared for name in names):
        return None
    # Required fields come first, in the order of `required`: hashing the form loses the order of `properties`.
    order = dict.fromkeys([*names, *declared])
    return [_field(name, _resolved(declared[name], root), root, name in names) for name in order]


def _read(form: str) -> _Schema:
    try:
        schema = parse_json(form)
    except ValueError:
        return {}
    return cast("_Schema", schema) if isinstance(schema, dict) else {}


def _resolved(schema: Any, root: _Schema) -> _Schema:
    """Return a schema, or the schema that its `$ref` points to; keywords beside the reference take precedence."""
    resolved = cast("_Schema", schema) if isinstance(schema, dict) else {}
    for _ in range(MAX_REF_DEPTH):
        if not isinstance(ref := resolved.get("$ref"), str):
            return resolved
        target: Any = root
        for name in ref.removeprefix("#").strip("/").split("/") if ref.startswith("#/") else ["", ""]:
            target = cast("_Schema", target).get(name) if isinstance(target, dict) else None
        own = {name: value for name, value in resolved.items() if name != "$ref"}
        resolved = {**(cast("_Schema", target) if isinstance(target, dict) else {}), **own}
    return {}


def _field(name: str, schema: _Schema, root: _Schema, is_needed: bool) -> FormField:
    inner, is_nullable = _without_null(schema, root)
    kind, options = _kind(inner, root)
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return FormField(
        name,
        kind,
        {**schema, **definitions},
        _text(schema.get("title") or inner.get("title")),
        _text(schema.get("description") or inner.get("description")),
        is_needed,
        is_nullable,
        schema.get("default", UNSET),
        options,
    )


def _without_null(schema: _Schema, root: _Schema) -> tuple[_Schema, bool]:
    """Return a schema without null, and whether it allows null: `type: [string, null]`, or `anyOf` with null."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in cast("list[Any]", kinds) if kind != "null"]
        if len(others) == 1:
            return {**schema, "type": others[0]}, len(others) < len(cast("list[Any]", kinds))
        return {}, "null" in kinds
    for keyword in ("anyOf", "oneOf"):
        if isinstance(alternatives := schema.get(keyword), list):
            resolved = [_resolved(alternative, root) for alternative in cast("list[Any]", alternatives)]
            others = [alternative for alternative in resolved if alternative.get("type") != "null"]
            if len(others) == 1 and len(resolved) == 2:
                return others[0], True
    return schema, False


def _kind(schema: _Schema, root: _Schema) -> tuple[Kind, tuple[tuple[Any, str], ...]]:
    if options := _options(schema):
        return "choice", options
    kind = schema.get("type")
    if kind == "array":
        options = _options(_resolved(schema.get("items"), root))
        return ("choices", options) if options else ("json", ())
    if any(keyword in schema for keyword in ("anyOf", "oneOf", "allOf", "const", "not")):
        return "json", ()
    return (KIND_BY_TYPE.get(kind, "json"), ()) if isinstance(kind, str) else ("json", ())


def _options(schema: _Schema) -> tuple[tuple[Any, str], ...]:
    if isinstance(values := schema.get("enum"), list):
        names = schema.get("enumNames")
        labels: list[Any] = cast("list[Any]", names) if isinstance(names, list) else []
        titles = [
            _text(labels[index]) if index < len(labels) else "" for index in range(len(cast("list[Any]", values)))
        ]
        return tuple(
            (value, _option_label(value, title)) for value, title in zip(cast("list[Any]", values), titles, strict=True)
        )
    for keyword in ("oneOf", "anyOf"):
        if isinstance(alternatives := schema.get(keyword), list) and alternatives:
            rows = [
                cast("_Schema", alternative) if isinstance(alternative, dict) else {}
                for alternative in cast("list[Any]", alternatives)
            ]
            if all("const" in row for row in rows):
                return tuple((row["const"], _option_label(row["const"], _text(row.get("title")))) for row in rows)
    return ()


def _option_label(value: Any, title: str) -> str:
    """Return the label of an option: always with the value itself, because a title may say anything."""
    text = format_value(value)
    return f"{text} ({title})" if title and title != text else text


def format_value(value: Any) -> str:
    """Return a value on one line: plain text as it is, everything else as JSON."""
    is_plain = isinstance(value, str) and value == value.strip() and "\n" not in value and value != ""
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str:
    return replace_surrogates(value) if isinstance(value, str) else ""


def parse_value(field: FormField, line: str) -> Any:
    """Parse a line as the value of a field; `UNSET` means that the field is left out.

    Raises:
        ConfigError: the line is not a valid value; the message says what to type instead.
    """
    stripped = line.strip()
    value = replace_surrogates_in(_parse_typed(field, stripped, line)) if stripped else _value_for_enter(field)
    if value is not UNSET and (mismatches := validate_schema(value, field.schema)):
        raise ConfigError("; ".join(map(str, mismatches)))
    return value


def _value_for_enter(field: FormField) -> Any:
    """Return the value that Enter alone means."""
    if field.default is not UNSET:
        return field.default
    if not field.is_required:
        return UNSET
    if field.is_nullable:
        return None
    hint = f"; for an empty text type {EMPTY}" if field.kind == "text" else "; Ctrl-D leads back"
    raise ConfigError(f"this is required{hint}")


def _parse_typed(field: FormField, typed: str, line: str) -> Any:
    match field.kind:
        case "text":
            return "" if typed == EMPTY else line
        case "boolean":
            if typed.casefold() not in (*YES, *NO):
                raise ConfigError("type y for yes, or n for no")
            return typed.casefold() in YES
        case "number" | "integer":
            if not _NUMBER.fullmatch(typed):
                raise ConfigError(f"type {KIND_LABELS[field.kind]}, such as 12")
            return _number(typed, field.kind == "integer")
        case "choice":
            return _parse_option(field, typed)
        case "choices":
            return [_parse_option(field, word) for word in typed.replace(",", " ").split()] if typed != "[]" else []
        case "json":
            try:
                return parse_json(typed)
            except ValueError:
                raise ConfigError(
                    'that is not JSON; it looks like ["a", "b"] or {"name": 1}; a text is in quotes'
                ) from None


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


def _parse_option(field: FormField, word: str) -> Any:
    """Return an option by its number; a text option also by its value, unless the value could be taken for a number."""
    if word.isascii() and word.isdecimal():
        if 1 <= int(word[:9]) <= len(field.options) and len(word) <= 9:
            return field.options[int(word) - 1][0]
    elif any(word == value for value, _ in field.options):
        return word
    raise ConfigError(f"type a number from 1 to {len(field.options)}")
