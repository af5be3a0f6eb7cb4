"""OpenAI validation, common to both formats: refuses unknown fields, invalid tools, and tool choices without tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from everturn.testing.provider.faults import Refused, is_list, is_object

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAX_NAME = 64
# In this order: for Python a boolean is an integer too.
_TYPES = {
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    str: "a string",
    list: "an array",
    dict: "an object",
}
CACHE_RETENTIONS = ("in_memory", "24h")
_NO_ROOT = ("oneOf", "anyOf", "allOf", "enum", "not")


def missing(param: str) -> Refused:
    """The error for a required field."""
    return Refused(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")


def wrong_type(param: str, expected: str, value: Any) -> Refused:
    """The error for a field of another type."""
    text = f"Invalid type for '{param}': expected {expected}, but got {_type_of(value)} instead."
    return Refused(text, param, "invalid_type")


def wrong_value(param: str, value: Any, supported: Collection[str]) -> Refused:
    """The error for a field with an unsupported value."""
    listed = [f"'{choice}'" for choice in supported]
    text = " and ".join(listed) if len(listed) < 3 else ", ".join(listed[:-1]) + f", and {listed[-1]}"
    return Refused(f"Invalid value: '{value}'. Supported values are: {text}.", param, "invalid_value")


def check_prompt_cache(body: dict[str, Any]) -> None:
    """A key of the prompt cache is a string, and a retention one of two."""
    key, retention = body.get("prompt_cache_key"), body.get("prompt_cache_retention")
    if key is not None and not isinstance(key, str):
        raise wrong_type("prompt_cache_key", "a string", key)
    if retention not in (None, *CACHE_RETENTIONS):
        raise wrong_value("prompt_cache_retention", retention, CACHE_RETENTIONS)


def empty(param: str) -> Refused:
    """The error for an empty array."""
    text = f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return Refused(text, param, "empty_array")


def too_long(param: str, limit: int, value: str) -> Refused:
    """The error for a string above its limit."""
    text = (
        f"Invalid '{param}': string too long. Expected a string with maximum length {limit}, "
        f"but got a string with length {len(value)} instead."
    )
    return Refused(text, param, "string_above_max_length")


def _type_of(value: object) -> str:
    for kind, name in _TYPES.items():
        if isinstance(value, kind):
            return name
    return "null"


def check_fields(body: dict[str, Any], known: Collection[str]) -> None:
    """Every top-level field is documented."""
    for name in body:
        if name not in known:
            raise Refused(f"Unknown parameter: '{name}'.", name, "unknown_parameter")


def check_stream(body: dict[str, Any]) -> None:
    """Our own rule: this provider has no other way to answer."""
    if body.get("stream") is not True:
        raise Refused("This provider always streams: 'stream' must be true.", "stream", "invalid_value")


def check_name(param: str, name: Any) -> str:
    """A function name is made of letters, digits, underscores and dashes."""
    if not isinstance(name, str):
        raise missing(param) if name is None else wrong_type(param, "a string", name)
    if not NAME.fullmatch(name):
        if len(name) > _MAX_NAME:
            raise too_long(param, _MAX_NAME, name)
        text = (
            f"Invalid '{param}': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        )
        raise Refused(text, param, "invalid_value")
    return name


def check_function(param: str, function: Any, names: set[str]) -> None:
    """A function has a unique name and, if any, the schema of an object."""
    if not is_object(function):
        raise missing(param) if function is None else wrong_type(param, "an object", function)
    name = check_name(f"{param}.name", function.get("name"))
    if name in names:
        raise Refused(f"Invalid '{param}.name': Tool names must be unique. Found duplicate '{name}'.", f"{param}.name")
    names.add(name)
    schema = function.get("parameters")
    if schema is not None:
        _check_schema(param, name, schema, is_strict=function.get("strict") is True)


def _check_schema(param: str, name: str, schema: Any, *, is_strict: bool) -> None:
    def bad(why: str) -> Refused:
        text = f"Invalid schema for function '{name}': {why}"
        return Refused(text, f"{param}.parameters", "invalid_function_parameters")

    if not is_object(schema):
        raise wrong_type(f"{param}.parameters", "an object", schema)
    if schema.get("type") != "object":
        got = schema.get("type")
        shown = "None" if got is None else f'"{got}"'
        raise bad(f"schema must be a JSON Schema of 'type: \"object\"', got 'type: {shown}'.")
    if any(word in schema for word in _NO_ROOT):
        raise bad("schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.")
    if is_strict and schema.get("additionalProperties") is not False:
        raise bad("In context=(), 'additionalProperties' is required to be supplied and to be false.")
    if is_strict:
        properties, required = schema.get("properties"), schema.get("required")
        for key in properties if is_object(properties) else ():
            if not is_list(required) or key not in required:
                raise bad(
                    "In context=(), 'required' is required to be supplied and to be an array including every key in "
                    f"properties. Missing '{key}'."
                )


def check_tools_list(body: dict[str, Any]) -> list[Any]:
    """`tools` is an array that is not empty, and options about tools require it."""
    tools = body.get("tools")
    if tools is None:
        for word in ("tool_choice", "parallel_tool_calls"):
            if body.get(word) is not None:
                text = f"Invalid value for '{word}': '{word}' is only allowed when 'tools' are specified."
                raise Refused(text, word)
        return []
    if not is_list(tools):
        raise wrong_type("tools", "an array of objects", tools)
    if not tools:
        raise empty("tools")
    return tools


def check_arguments(param: str, arguments: Any) -> None:
    """The arguments of a call are a string that holds a JSON object."""
    if not isinstance(arguments, str):
        raise missing(param) if arguments is None else wrong_type(param, "a string", arguments)
    try:
        value = msgspec.json.decode(arguments.encode())
    except (ValueError, RecursionError):
        value = None
    if not is_object(value):
        raise Refused(f"Invalid '{param}': expected a string that holds a JSON object.", param, "invalid_value")


def check_json_schema(param: str, holder: Any, check: Callable[[str, str, dict[str, Any]], None]) -> None:
    """A schema format has a name and a schema; if it is strict, one of the vendor's subset, which `check` knows."""
    if not is_object(holder):
        raise missing(param)
    name = check_name(f"{param}.name", holder.get("name"))
    schema = holder.get("schema")
    if not is_object(schema):
        raise missing(f"{param}.schema")
    if holder.get("strict") is True:
        check(param, name, schema)
