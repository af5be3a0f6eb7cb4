"""OpenAI Responses validation: refuses the requests that it refuses, with its messages: fields and tools.

`items` checks the input items and how they belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everturn.testing.provider.faults import Refused, is_json_integer, is_list, is_object
from everturn.testing.provider.server_tools import HOSTED_AS
from everturn.testing.provider.strict.items import check_items
from everturn.testing.provider.strict.openai import (
    check_fields,
    check_function,
    check_json_schema,
    check_prompt_cache,
    check_stream,
    check_tools_list,
    missing,
    wrong_type,
    wrong_value,
)
from everturn.testing.provider.strict.schemas import check_openai_schema

FIELDS = frozenset(
    "background context_management conversation include input instructions max_output_tokens max_tool_calls metadata "
    "model parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning "
    "safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p "
    "truncation user".split()
)
INCLUDES = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
_HOSTED = (
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "custom",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "namespace",
    "shell",
    "tool_search",
    "web_search",
    "web_search_preview",
)
_MIN_OUTPUT = 16


def check_openai(body: dict[str, Any], headers: Mapping[str, str]) -> None:
    """Raise `Refused` for a request that the real one would refuse."""
    check_fields(body, FIELDS)
    check_stream(body)
    check_prompt_cache(body)
    check_tools(body)
    check_limit(body)
    check_include(body)
    check_format(body)
    check_instructions(body)
    check_memory(body)
    items = body.get("input")
    if items is None:
        raise missing("input")
    if isinstance(items, str):
        return
    if not is_list(items):
        raise wrong_type("input", "one of a string or array of input items", items)
    check_items(items, body["model"], is_stored=body.get("store") is not False)
    check_hosted_declared(body, items)


_DECLARED = {item: tool for tool, item in HOSTED_AS.values()} | {"mcp_list_tools": "mcp"}
_REQUIRED = {"file_search": "vector_store_ids", "code_interpreter": "container", "mcp": "server_label"}


def check_hosted_declared(body: dict[str, Any], items: list[Any]) -> None:
    """Our own rule: an item of a tool that OpenAI runs is sent only where the tool is declared."""
    declared = [tool.get("type") for tool in check_tools_list(body)]
    for i, item in enumerate(items):
        if (wanted := _DECLARED.get(str(item.get("type")))) and wanted not in declared:
            raise Refused(f"input[{i}]: {item['type']}, but the request does not declare {wanted}", f"input[{i}]")


def is_encrypted(body: dict[str, Any]) -> bool:
    """Whether the request asks for encrypted reasoning."""
    include = body.get("include")
    return is_list(include) and "reasoning.encrypted_content" in include


def check_tools(body: dict[str, Any]) -> None:
    """Functions are described flat, with unique names; the tools that OpenAI runs have known types."""
    names: set[str] = set()
    for i, tool in enumerate(check_tools_list(body)):
        kind = tool.get("type") if is_object(tool) else None
        if kind is None:
            raise missing(f"tools[{i}].type")
        if kind == "function":
            check_function(f"tools[{i}]", tool, names)
        elif kind not in _HOSTED:
            raise wrong_value(f"tools[{i}].type", kind, ("function", *_HOSTED))
        elif (field := _REQUIRED.get(kind)) and field not in tool:
            raise missing(f"tools[{i}].{field}")


def check_limit(body: dict[str, Any]) -> None:
    """The token limit has a minimum."""
    limit = body.get("max_output_tokens")
    if limit is None:
        return
    if not is_json_integer(limit):
        raise wrong_type("max_output_tokens", "an integer", limit)
    if limit < _MIN_OUTPUT:
        text = (
            "Invalid 'max_output_tokens': integer below minimum value. "
            f"Expected a value >= {_MIN_OUTPUT}, but got {limit} instead."
        )
        raise Refused(text, "max_output_tokens", "integer_below_min_value")


def check_include(body: dict[str, Any]) -> None:
    """`include` has only documented values."""
    include = body.get("include")
    if include is None:
        return
    if str(body.get("model")).startswith("gpt-4") and is_encrypted(body):
        raise Refused("Encrypted content is not supported with this model.")
    if not is_list(include):
        raise wrong_type("include", "an array of strings", include)
    for i, name in enumerate(include):
        if name not in INCLUDES:
            raise wrong_value(f"include[{i}]", name, INCLUDES)


def check_format(body: dict[str, Any]) -> None:
    """The format of the text is text, any JSON, or JSON of a schema."""
    text = body.get("text")
    wanted = text.get("format") if is_object(text) else None
    if wanted is None:
        return
    kind = wanted.get("type") if is_object(wanted) else None
    if kind not in ("text", "json_object", "json_schema"):
        raise wrong_value("text.format.type", kind, ("json_object", "json_schema", "text"))
    if kind == "json_schema":
        check_json_schema("text.format", wanted, check_openai_schema)


def check_instructions(body: dict[str, Any]) -> None:
    """Instructions are a string."""
    instructions = body.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        raise wrong_type("instructions", "a string", instructions)


def check_memory(body: dict[str, Any]) -> None:
    """This provider stores no response, so none can be continued."""
    before = body.get("previous_response_id")
    if before is not None:
        text = f"Previous response with id '{before}' not found."
        raise Refused(text, "previous_response_id", "previous_response_not_found")
    if body.get("conversation") is not None:
        raise Refused("Conversation not found.", "conversation")
