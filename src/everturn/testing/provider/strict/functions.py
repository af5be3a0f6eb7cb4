"""Ollama validation, tools: the fields it reads have the right type, and the model supports tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everturn.testing.provider.faults import Refused, is_list, is_object

Json = dict[str, Any]

OURS = " (Ollama would take this, and the model would be misled; this provider does not)"


def wrong(field: str, value: Any, expected: str) -> Refused:
    """The error for a value of another type, as Go words it."""
    return Refused(f"json: cannot unmarshal {_kind(value)} into Go struct field {field} of type {expected}")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "array" if is_list(value) else "object" if is_object(value) else "number"


def check_functions(tools: Sequence[Any], model: str) -> None:
    """Tools are functions with unique names, for a model that supports them."""
    if tools and model.startswith("notools-"):
        raise Refused(f'"{model}" does not support tools')
    names: set[str] = set()
    for tool in tools:
        if not is_object(tool):
            raise wrong("ChatRequest.tools", tool, "api.Tool")
        function: Any = tool.get("function")
        if function is None:
            raise Refused("a tool without a function" + OURS)
        if not is_object(function):
            raise wrong("ChatRequest.tools.function", function, "api.ToolFunction")
        name = check_name(function.get("name"))
        if name in names:
            raise Refused(f'two tools are called "{name}"{OURS}')
        names.add(name)
        check_parameters(function.get("parameters"))


def check_name(name: Any) -> str:
    """A function has a name."""
    if name is not None and not isinstance(name, str):
        raise wrong("ChatRequest.tools.function.name", name, "string")
    if not name:
        raise Refused("a tool without a name" + OURS)
    return name


def check_parameters(schema: Any) -> None:
    """The fields it reads of a schema have the right type: one type at the root, properties that are objects."""
    path = "ChatRequest.tools.function.parameters"
    if schema is None:
        return
    if not is_object(schema):
        raise wrong(path, schema, "api.ToolFunctionParameters")
    if schema.get("type") is not None and not isinstance(schema["type"], str):
        raise wrong(f"{path}.type", schema["type"], "string")
    check_property(path, schema)


def check_property(path: str, schema: Json) -> None:
    """A property has its types as a string or a list of them, and so have nested ones."""
    kinds, required, described = schema.get("type"), schema.get("required"), schema.get("description")
    for item in kinds if is_list(kinds) else () if kinds is None else (kinds,):
        if not isinstance(item, str):
            raise wrong(f"{path}.type", item, "string")
    if described is not None and not isinstance(described, str):
        raise wrong(f"{path}.description", described, "string")
    if required is not None and not (is_list(required) and all(isinstance(item, str) for item in required)):
        raise wrong(f"{path}.required", required, "[]string")
    properties, others = schema.get("properties"), schema.get("anyOf")
    if properties is not None and not is_object(properties):
        raise Refused("Value looks like object, but can't find closing '}' symbol")
    if others is not None and not is_list(others):
        raise wrong(f"{path}.anyOf", others, "[]api.ToolProperty")
    for inner in (*(properties or {}).values(), *(others or ())):
        if not is_object(inner):
            raise wrong(f"{path}.properties", inner, "api.ToolProperty")
        check_property(f"{path}.properties", inner)
