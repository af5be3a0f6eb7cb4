"""Anthropic Messages validation, tools: refuses invalid tools and tool choices."""

from __future__ import annotations

import re
from typing import Any

from everturn.testing.provider.faults import Refused, is_list, is_object
from everturn.testing.provider.strict.server_blocks import check_declaration

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def is_thinking(body: dict[str, Any]) -> bool:
    """Whether the request enables thinking."""
    wanted = body.get("thinking")
    return is_object(wanted) and wanted.get("type") in ("enabled", "adaptive")


def check_tools(body: dict[str, Any]) -> None:
    """Tools have unique names and schemas of objects; those that Anthropic runs have known types."""
    tools = body.get("tools")
    if tools is None:
        return
    if not is_list(tools):
        raise Refused("tools: Input should be a valid list")
    names: set[str] = set()
    for i, tool in enumerate(tools):
        if not is_object(tool):
            raise Refused(f"tools.{i}: Input should be a valid dictionary")
        name = tool.get("name")
        if tool.get("type", "custom") == "custom":
            if not isinstance(name, str):
                raise Refused(f"tools.{i}.custom.name: Field required")
            if not _NAME.fullmatch(name):
                raise Refused(f"tools.{i}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
            check_schema(f"tools.{i}.custom.input_schema", tool.get("input_schema"))
        else:
            check_declaration(f"tools.{i}", tool)
        if str(name) in names:
            raise Refused("tools: Tool names must be unique.")
        names.add(str(name))


def check_schema(path: str, schema: Any) -> None:
    """A schema is that of an object, and its properties have plain names."""
    if not is_object(schema):
        raise Refused(f"{path}: Field required")
    if "type" not in schema:
        raise Refused(f"{path}.type: Field required")
    if schema["type"] != "object":
        raise Refused(f"{path}.type: Input should be 'object'")
    if any(word in schema for word in ("oneOf", "allOf", "anyOf", "enum", "not")):
        raise Refused(f"{path}: input_schema does not support oneOf, allOf, or anyOf at the top level")
    properties = schema.get("properties")
    for name in properties if is_object(properties) else ():
        if not _PROPERTY.fullmatch(name):
            raise Refused(f"{path}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'")


def check_tool_choice(body: dict[str, Any]) -> None:
    """A tool choice is an object, names existing tools, and does not force a call while thinking is on."""
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not is_object(choice) or choice.get("type") not in ("auto", "any", "tool", "none"):
        raise Refused("tool_choice: Input tag found using 'type' does not match any of: 'any', 'auto', 'none', 'tool'")
    if not body.get("tools"):
        raise Refused("tool_choice: tool_choice may only be specified while providing tools.")
    if choice["type"] == "tool" and choice.get("name") not in [tool.get("name") for tool in body["tools"]]:
        raise Refused(f"tool_choice: Tool '{choice.get('name')}' not found in provided tools")
    if choice["type"] in ("any", "tool") and is_thinking(body):
        raise Refused("Thinking may not be enabled when tool_choice forces tool use.")
