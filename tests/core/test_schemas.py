"""Schemas: what does not fit is told, what nobody understands passes, and no stranger's schema takes for ever."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.json_schema import MAX_SCHEMA_DEPTH, MAX_VIOLATIONS, SchemaViolation, validate_schema


def violations_of(value: Any, schema: Any) -> list[str]:
    return [str(misfit) for misfit in validate_schema(value, schema)]


FITS: list[tuple[Any, Any]] = [
    (1, True),
    ("anything", {}),
    (None, {"type": "null"}),
    (1, {"type": "integer"}),
    (1.0, {"type": "integer"}),
    (1.5, {"type": "number"}),
    (True, {"type": "boolean"}),
    ("a", {"type": ["string", "null"]}),
    (None, {"type": ["string", "null"]}),
    ({"a": 1}, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
    ({"b": 1}, {"properties": {"a": False}}),
    ({"b": 1}, {"additionalProperties": {"type": "integer"}}),
    ({"b": 1}, {"additionalProperties": False, "patternProperties": {"b": {}}}),
    ([1, "a"], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}),
    ([], {"items": False}),
    ("ab", {"minLength": 2, "maxLength": 2}),
    ([1], {"minItems": 1, "maxItems": 1}),
    ({"a": 1}, {"minProperties": 1, "maxProperties": 1}),
    (1, {"minimum": 1, "maximum": 1, "exclusiveMinimum": 0, "exclusiveMaximum": 2}),
    ("a", {"enum": ["a", "b"]}),
    (1, {"const": 1.0}),
    (1, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    (1, {"oneOf": [{"type": "string"}, {"type": "integer"}]}),
    (1, {"allOf": [{"minimum": 0}, {"maximum": 2}]}),
    (1, {"not": {"type": "string"}}),
    ({"a": {"a": {}}}, {"type": "object", "additionalProperties": {"$ref": "#"}}),
    (1, {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}}),
    # What is not understood is checked by whoever wrote it.
    ("a", {"type": "date"}),
    ("a", {"type": ["integer", "date"]}),
    ("a", {"pattern": "^b$", "format": "email", "$comment": 1}),
    (1, {"$ref": "https://example.com/schema"}),
    (1, {"$ref": "#/$defs/absent"}),
    (1, {"properties": 1, "required": "a", "items": 1, "enum": "a", "anyOf": {}, "minimum": "2", "allOf": None}),
]

MISFITS: list[tuple[Any, Any, list[str]]] = [
    (1, False, ["nothing is allowed here"]),
    (1, "no schema", ["its schema is no schema"]),
    (True, {"type": "integer"}, ["it must be integer"]),
    (1.5, {"type": "integer"}, ["it must be integer"]),
    ("1", {"type": ["number", "null"]}, ["it must be number or null"]),
    (float("inf"), {"type": "integer"}, ["it must be integer"]),
    ({}, {"required": ["a"]}, ["a: it is missing"]),
    ({"a": "x"}, {"properties": {"a": {"type": "integer"}}}, ["a: it must be integer"]),
    ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": False}, ["b: it is not known; there is: a"]),
    ({"b": 1}, {"additionalProperties": False}, ["b: it is not known; there is: nothing"]),
    ({"b": 1}, {"additionalProperties": {"type": "string"}}, ["b: it must be string"]),
    ([1, 2], {"prefixItems": [{}], "items": False}, ["1: nothing is allowed here"]),
    ([{"a": 1}], {"items": {"properties": {"a": {"type": "string"}}}}, ["0.a: it must be string"]),
    ("a", {"minLength": 2}, ["it has 1 characters; at least 2"]),
    ([1, 2], {"maxItems": 1}, ["it has 2 items; at most 1"]),
    ({}, {"minProperties": 1}, ["it has 0 properties; at least 1"]),
    (0, {"minimum": 1}, ["it must be at least 1"]),
    (2, {"maximum": 1}, ["it must be at most 1"]),
    (1, {"exclusiveMinimum": 1}, ["it must be more than 1"]),
    (1, {"exclusiveMaximum": 1}, ["it must be less than 1"]),
    ("c", {"enum": ["a", "b"]}, ["it must be one of 'a', 'b'"]),
    (True, {"const": 1}, ["it must be 1"]),
    (1, {"enum": [True]}, ["it must be one of True"]),
    (1, {"anyOf": [{"type": "string"}, {"type": "null"}]}, ["it fits none of what is allowed"]),
    (1, {"oneOf": [{"type": "integer"}, {"minimum": 0}]}, ["it fits more than one of the choices"]),
    (1, {"allOf": [{"minimum": 2}, {"type": "string"}]}, ["it must be at least 2", "it must be string"]),
    (1, {"not": {"type": "integer"}}, ["just this is not allowed"]),
    ({"a": {"a": 1}}, {"type": "object", "additionalProperties": {"$ref": "#"}}, ["a.a: it must be object"]),
    ("a", {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}}, ["it must be integer"]),
]


@pytest.mark.parametrize(("value", "schema"), FITS, ids=str)
def test_what_fits_or_is_not_understood_passes(value: Any, schema: Any):
    assert violations_of(value, schema) == []


@pytest.mark.parametrize(("value", "schema", "texts"), MISFITS, ids=str)
def test_what_does_not_fit_is_reported_with_its_place(value: Any, schema: Any, texts: list[str]):
    assert violations_of(value, schema) == texts


def test_no_more_is_told_than_is_worth_reading():
    assert len(validate_schema(["a"] * 1000, {"items": {"type": "integer"}})) == MAX_VIOLATIONS


# Untrusted schemas ------------------------------------------------------------------------------------------------------------


def nested(depth: int, word: str) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {word: schema} if word == "items" else {word: [schema]}
    return schema


HOSTILE: dict[str, tuple[Any, Any]] = {
    "a reference to itself": (1, {"$ref": "#"}),
    "two that refer to each other": (1, {"$ref": "#/a", "a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}}),
    "deep": (1, nested(10_000, "allOf")),
    "a deep value": ([[[[1]]]], {"items": {"$ref": "#"}}),
}


@pytest.mark.parametrize(("value", "schema"), HOSTILE.values(), ids=HOSTILE)
def test_a_schema_without_end_is_let_pass_where_it_is_too_deep(value: Any, schema: Any):
    assert validate_schema(value, schema) == []


TWICE = [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]
DOUBLING: dict[str, Any] = {
    "allOf": {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": TWICE}}},
    "anyOf": {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": TWICE}}},
    "oneOf": {"$ref": "#/$defs/a", "$defs": {"a": {"oneOf": TWICE}}},
    "not": {"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"allOf": TWICE}}},
}


# `anyOf` takes one that fits, `not` one that does not, although nothing could be looked at any more.


@pytest.mark.parametrize(
    "schema",
    [pytest.param(schema, id=word) for word, schema in DOUBLING.items()],
)
def test_a_schema_that_doubles_with_every_look_is_given_up_and_refused(schema: Any):
    found = validate_schema(1, schema)

    assert found
    assert len(found) <= MAX_VIOLATIONS


def test_a_value_that_is_too_large_to_be_checked_is_refused():
    assert validate_schema([1] * 200_000, {"items": {"type": "integer"}}) == [
        SchemaViolation((), "it is too much to be checked")
    ]


@pytest.mark.parametrize("depth", [MAX_SCHEMA_DEPTH - 1, MAX_SCHEMA_DEPTH, MAX_SCHEMA_DEPTH + 1])
def test_what_is_too_deep_is_let_pass_and_what_is_not_is_checked(depth: int):
    value: Any = "no integer"
    for _ in range(depth):
        value = [value]

    assert bool(validate_schema(value, nested(depth, "items"))) is (depth <= MAX_SCHEMA_DEPTH)


WORDS = [
    *("type", "properties", "required", "additionalProperties", "patternProperties", "prefixItems", "items", "$ref"),
    *(
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "const",
        "enum",
        "minimum",
        "exclusiveMaximum",
        "minLength",
        "maxItems",
        "$defs",
    ),
]
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["object", "array", "integer", "#", "#/$defs/a", "#/properties/a", "a", ""])
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*WORDS, "a", "b"]), inner, max_size=3),
    max_leaves=20,
)


@given(values, values | st.dictionaries(st.sampled_from(WORDS), values, max_size=5))
def test_whatever_an_unknown_client_sends_there_is_an_answer(value: Any, schema: Any):
    found = validate_schema(value, schema)

    assert len(found) <= MAX_VIOLATIONS
    assert all(str(misfit) for misfit in found)
    assert validate_schema(value, schema) == found


# Time -----------------------------------------------------------------------------------------------------------------
# Each held the event loop for seconds, or would do so with a part of the counting left out; none may for 0.2 s. A second
# of this thread's own time is what a slow machine is allowed.

MANY = 60_000
LONG = "a" * 1_000_000
WIDE = {str(n): n for n in range(200_000)}
SOME = {str(n): n for n in range(31)}
SLOW: dict[str, tuple[Any, Any]] = {
    "a long reference": ([0] * MANY, {"items": {"$ref": "#" + LONG}}),
    "a reference of many steps": ([0] * MANY, {"items": {"$ref": "#" + "/" * 100_000}}),
    "names that are listed": (
        [{"z": 1}] * MANY,
        {"items": {"anyOf": [{"additionalProperties": False, "properties": WIDE}, {}]}},
    ),
    "many names, again and again": (WIDE, {"allOf": [{"properties": {"a": {}}}] * MANY}),
    "many names that nothing is said of": (WIDE, {"allOf": [{}] * MANY}),
    "some names": (SOME, {"allOf": [{"properties": {"a": {}}}] * MANY}),
    "many that are required": ([{}] * MANY, {"items": {"anyOf": [{"required": ["a"] * 1000}, {}]}}),
    "many that cannot be required": ([{}] * MANY, {"items": {"required": [1] * 100_000}}),
    "many types": ([0] * MANY, {"items": {"type": ["string", "date"] * 1000}}),
    "long texts that differ at their ends": ([LONG + "b"] * MANY, {"items": {"enum": [LONG + "c"] * MANY}}),
    "texts that differ at their ends": (["a" * 4094 + "b"] * MANY, {"items": {"enum": ["a" * 4094 + "c"] * MANY}}),
    "large objects that are compared": ([WIDE] * MANY, {"items": {"anyOf": [{"const": {**WIDE, "0": 1}}, {}]}}),
    "objects that are compared": ([SOME] * MANY, {"items": {"anyOf": [{"const": {**SOME, "30": 1}}, {}]}}),
    "choices that are told": (["q"] * MANY, {"items": {"anyOf": [{"enum": ["\0" * 1000] * 20}, {}]}}),
    "huge numbers": ([1 << 10_000_000] * MANY, {"items": {"type": "integer", "const": (1 << 10_000_000) + 1}}),
}


@pytest.mark.parametrize(("value", "schema"), SLOW.values(), ids=SLOW)
def test_whatever_is_asked_it_is_given_up_soon(value: Any, schema: Any):
    began = time.thread_time()

    found = validate_schema(value, schema)

    assert time.thread_time() - began < 1.0
    assert found[-1] == SchemaViolation((), "it is too much to be checked")


def test_what_nothing_is_said_of_is_not_looked_at():
    assert validate_schema({"list": [1] * 200_000, "object": WIDE}, {"properties": {"list": {"type": "array"}}}) == []


def test_a_long_name_is_reported_in_short():
    assert len(str(validate_schema({}, {"required": [LONG]})[0])) < 200
