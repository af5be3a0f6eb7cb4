"""Validation errors for the model: turns the problems that a validator found in arguments into a message for fixing
them.

For each problem the message says where it is, what was passed and what is expected. The expectation comes from the
schema that the model was shown, so that both use the same terms; the validator's own message covers what no schema
says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import JsonObject, encode_canonical, replace_surrogates
from everturn.core.requests import ToolSpec

MOST_PROBLEMS = 8
MOST_VALUES = 20
LONGEST_EXCERPT = 60
LONGEST_NAME = 64  # longer names are not compared with the known ones

# Problems that the schema explains by itself; the validator's message would add nothing.
_SAID_BY_SCHEMA = ("_type", "_parsing", "_too_short", "_too_long", "_from_float", "_than", "_than_equal")
_ALSO_SAID = frozenset(
    (
        "literal_error",
        "enum",
        "too_short",
        "too_long",
        "multiple_of",
        "string_pattern_mismatch",
        "union_tag_invalid",
        "union_tag_not_found",
    )
)
_PREFIXES = ("Value error, ", "Assertion failed, ")

_LIMITS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("pattern", "that matches {}"),
    ("format", "in the format {}"),
    ("minItems", "at least {} of them"),
    ("maxItems", "at most {} of them"),
)
_KINDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


class ValidationProblem(Struct, frozen=True):
    """One problem that a validator found: its type, the path to it, the validator's message, and the value there."""

    type: str
    loc: tuple[int | str, ...]
    message: str
    given: Any


class FieldPath(Struct, frozen=True):
    """A location in the arguments as the schema describes it: the schemas of the value, and those of its container."""

    where: str
    schemas: list[JsonObject]
    containers: list[JsonObject]
    name: str = ""


def explain_validation_errors(spec: ToolSpec, problems: Sequence[ValidationProblem]) -> str:
    """Describe what is wrong with the arguments of a call, and list the parameters."""
    lines: dict[str, str] = {}  # by location: each branch of a union reports the same one
    for problem in problems:
        place = _locate(spec.schema, problem)
        if place.where not in lines:
            lines[place.where] = _phrase(place, problem, spec.schema)
    shown = list(lines.values())[:MOST_PROBLEMS]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown)} more")
    known = _members(spec.schema) or "none"
    return replace_surrogates(
        f"the arguments of {spec.name} are wrong: {'; '.join(shown)}. Its parameters are: {known}"
    )


def _phrase(place: FieldPath, problem: ValidationProblem, root: JsonObject) -> str:
    expected = _expected(place.schemas, root)
    if problem.type == "missing":
        about = next((str(row["description"]) for row in place.schemas if row.get("description")), "")
        return f"{place.where}: missing, expected {expected}" + (f" ({about.rstrip('.')})" if about else "")
    if problem.type == "extra_forbidden":
        close = _closest(place.name, place.containers)
        return f"{place.where}: there is no such parameter" + (f" (did you mean `{close}`?)" if close else "")
    actual = f"given {_excerpt(problem.given)}"
    if _is_said_by_schema(problem.type) and place.schemas:
        return f"{place.where}: {actual}, expected {expected}"
    words = problem.message
    for prefix in _PREFIXES:
        words = words.removeprefix(prefix)
    return f"{place.where}: {words}, {actual}"


def _is_said_by_schema(kind: str) -> bool:
    return kind.endswith(_SAID_BY_SCHEMA) or kind in _ALSO_SAID


# Location -----------------------------------------------------------------------------------------------------


def _locate(root: JsonObject, problem: ValidationProblem) -> FieldPath:
    """Follow the path to a problem through the schema. Steps that the schema does not know are the validator's own:
    type names.
    """
    where, name = "", ""
    schemas, around = _branches([root], root), list[JsonObject]()
    is_about_key = problem.type in ("missing", "extra_forbidden")
    for at, step in enumerate(problem.loc):
        inner = _inside(schemas, step, root)
        is_key = is_about_key and at == len(problem.loc) - 1
        if not inner and not is_key:
            continue
        around, schemas, name = schemas, inner, str(step)
        where += f"[{step}]" if isinstance(step, int) else f".{_cut(step)}" if where else _cut(step)
    return FieldPath(where or "arguments", schemas, around, name)


def _branches(schemas: list[JsonObject], root: JsonObject) -> list[JsonObject]:
    """Every schema that may apply, with references resolved and unions expanded."""
    flat: list[JsonObject] = []
    waiting, seen = list(schemas), set[str]()
    while waiting:
        schema = waiting.pop(0)
        unions = [row for word in ("anyOf", "oneOf", "allOf") for row in schema.get(word, ())]
        reference = str(schema.get("$ref", ""))
        if reference and reference not in seen:
            seen.add(reference)
            target = root.get("$defs", {}).get(reference.rpartition("/")[2])
            # What stands beside a reference describes this use of it, and takes precedence.
            unions += [{**target, **{key: row for key, row in schema.items() if key != "$ref"}}] if target else []
        if unions:
            description = {"description": schema["description"]} if "description" in schema else {}
            waiting[:0] = [{**row, **description} for row in unions]
        elif not reference:
            flat.append(schema)
    return flat


def _inside(schemas: list[JsonObject], step: int | str, root: JsonObject) -> list[JsonObject]:
    inner_schemas: list[Any] = []
    for schema in schemas:
        if isinstance(step, int):
            first = schema.get("prefixItems", ())
            inner_schemas.append(first[step] if step < len(first) else schema.get("items"))
        else:
            named = schema.get("properties", {})
            inner_schemas.append(named[step] if step in named else schema.get("additionalProperties"))
    return _branches([cast(JsonObject, row) for row in inner_schemas if isinstance(row, dict)], root)


def _closest(name: str, around: list[JsonObject]) -> str:
    import difflib  # here: most processes never need it

    if len(name) > LONGEST_NAME:
        return ""
    names = {known.casefold(): known for schema in around for known in schema.get("properties", {})}
    close = difflib.get_close_matches(name.casefold(), names, n=1)
    return names[close[0]] if close else ""


# Expected and actual value --------------------------------------------------------------------------------------


def _expected(schemas: list[JsonObject], root: JsonObject) -> str:
    words = list(dict.fromkeys(_describe_schema(schema, root) for schema in schemas))
    return (", or " if any(", " in word for word in words) else " or ").join(words) or "a value"


def _describe_schema(schema: JsonObject, root: JsonObject) -> str:
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if values:
        shown = ", ".join(_json(value) for value in values[:MOST_VALUES])
        more = f" and {len(values) - MOST_VALUES} more" if len(values) > MOST_VALUES else ""
        return f"one of {shown}{more}" if len(values) > 1 else shown
    words = [_KINDS.get(str(schema.get("type")), "a value")]
    if isinstance(schema.get("items"), dict):
        kinds = [_KINDS.get(str(row.get("type")), "") for row in _branches([schema["items"]], root)]
        if all(kinds) and kinds:
            words = [f"a list, each of it {' or '.join(dict.fromkeys(kinds))}"]
    if members := _members(schema):
        words = [f"an object with {members}"]
    return ", ".join(words + [phrase.format(schema[key]) for key, phrase in _LIMITS if key in schema])


def _members(schema: JsonObject) -> str:
    """The parameters by name, in their order, the required ones marked."""
    required = schema.get("required", ())
    rows = cast("dict[str, JsonObject]", schema.get("properties", {})).items()
    return ", ".join(_member(name, row) + " (required)" * (name in required) for name, row in rows)


def _member(name: str, schema: JsonObject) -> str:
    """The name, and the value where it is constant: that is how a model tells the objects of a union apart."""
    return f"{name}={_json(schema['const'])}" if "const" in schema else name


def _excerpt(value: Any) -> str:
    match value:
        case bool() | None:
            return _json(value)  # its kind is obvious
        case str():
            kind = "string"
        case int():
            kind = "integer"
        case float():
            kind = "number"
        case list():
            kind = "array"
        case dict():
            kind = "object"
        case _:
            return "something that is not JSON"
    return f"{_json(value)} ({_KINDS[kind]})"


def _json(value: Any) -> str:
    if isinstance(value, str):
        value = replace_surrogates(value[: LONGEST_EXCERPT + 1])  # no more than this is shown, so no more is serialized
    try:
        return _cut(encode_canonical(value))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return "…"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_EXCERPT else text[: LONGEST_EXCERPT - 1] + "…"
