"""Gemini validation, function declarations: refuses invalid ones, and schemas outside of its subset of OpenAPI."""

from __future__ import annotations

import re
from typing import Any

from everturn.testing.provider.faults import Refused, is_object

Json = dict[str, Any]

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
NAME_WORDS = (
    "Invalid function name. Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores "
    "(_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)
_FORMATS = {"STRING": ("enum", "date-time"), "NUMBER": ("float", "double"), "INTEGER": ("int32", "int64")}


def bad(path: str, why: str) -> Refused:
    """The validator's message about a field."""
    return Refused(f"* GenerateContentRequest.{path}: {why}\n")


def check_declarations(request: Json) -> set[str]:
    """Functions have unique names, and parameters that are an object; returns the names."""
    names: set[str] = set()
    for i, tool in enumerate(request.get("tools", ())):
        for k, declared in enumerate(tool.get("functionDeclarations", ())):
            path = f"tools[{i}].function_declarations[{k}]"
            name = check_name(f"{path}.name", declared.get("name", ""))
            if name in names:
                raise Refused(f"Duplicate function declaration found: {name}")
            names.add(name)
            check_parameters(path, declared)
    return names


def check_name(path: str, name: str) -> str:
    """A name has plain characters, and starts with a valid one."""
    if not NAME.fullmatch(name):
        raise bad(path, NAME_WORDS)
    return name


def check_parameters(path: str, declared: Json) -> None:
    """Parameters are written in one of two schema languages, and are those of an object."""
    schema, written = declared.get("parameters"), declared.get("parametersJsonSchema")
    if schema is not None and written is not None:
        raise bad(path, "only one of parameters and parameters_json_schema may be set")
    if written is not None and not (is_object(written) and written.get("type", "object") == "object"):
        raise bad(f"{path}.parameters_json_schema", "functionDeclaration parameters schema should be of type OBJECT.")
    if schema is None:
        return
    check_schema(f"{path}.parameters", schema)
    if schema.get("type") != "OBJECT":
        raise bad(f"{path}.parameters", "functionDeclaration parameters schema should be of type OBJECT.")


def check_schema(path: str, schema: Json) -> None:
    """A schema has a type, and the fields of that type; so have nested schemas."""
    check_type(path, schema)
    check_enum(path, schema)
    check_format(path, schema)
    check_items(path, schema)
    check_properties(path, schema)
    for i, branch in enumerate(schema.get("anyOf", ())):
        check_schema(f"{path}.any_of[{i}]", branch)


def check_type(path: str, schema: Json) -> None:
    """There is a type, unless there are alternatives."""
    if "type" not in schema and "anyOf" not in schema:
        raise bad(f"{path}.type", "must be specified when not using one_of, any_of or all_of fields")


def check_enum(path: str, schema: Json) -> None:
    """Only strings have an enum, and none of its values is empty."""
    if schema.get("enum") and schema.get("type") != "STRING":
        raise bad(f"{path}.enum", "only allowed for STRING type")
    for i, member in enumerate(schema.get("enum", ())):
        if not member:
            raise bad(f"{path}.enum[{i}]", "cannot be empty")


def check_format(path: str, schema: Json) -> None:
    """A type has few formats."""
    kind, wanted = schema.get("type", ""), schema.get("format")
    known = _FORMATS.get(kind)
    if wanted and known is not None and wanted not in known:
        listed = " and ".join(f"'{name}'" for name in known)
        raise bad(f"{path}.format", f"only {listed} are supported for {kind} type")


def check_items(path: str, schema: Json) -> None:
    """An array has an item type."""
    if schema.get("type") == "ARRAY" and "items" not in schema:
        raise bad(f"{path}.items", "missing field.")
    if "items" in schema:
        check_schema(f"{path}.items", schema["items"])


def check_properties(path: str, schema: Json) -> None:
    """An object has properties, and required ones exist."""
    properties = schema.get("properties", {})
    if schema.get("type") == "OBJECT" and not properties:
        raise bad(f"{path}.properties", "should be non-empty for OBJECT type")
    if properties and schema.get("type") != "OBJECT":
        raise bad(f"{path}.properties", "only allowed for OBJECT type")
    for i, name in enumerate(schema.get("required", ())):
        if name not in properties:
            raise bad(f"{path}.required[{i}]", "property is not defined")
    for name, inner in properties.items():
        check_schema(f"{path}.properties[{name}]", inner)
