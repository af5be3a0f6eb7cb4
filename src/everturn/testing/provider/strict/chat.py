"""OpenAI Chat Completions validation: refuses the requests that it refuses, with its messages.

Each rule is a small function that raises `Refused`; the rules of single families of models are in `families`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everturn.testing.provider.faults import Refused, is_list, is_object
from everturn.testing.provider.strict.families import check_family, fields_of_family
from everturn.testing.provider.strict.openai import (
    check_arguments,
    check_fields,
    check_function,
    check_json_schema,
    check_name,
    check_prompt_cache,
    check_stream,
    check_tools_list,
    empty,
    missing,
    too_long,
    wrong_type,
    wrong_value,
)
from everturn.testing.provider.strict.schemas import check_openai_schema

FIELDS = frozenset(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages "
    "metadata modalities model n parallel_tool_calls prediction presence_penalty prompt_cache_key "
    "prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream "
    "stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options".split()
)
ROLES = ("system", "assistant", "user", "tool", "developer")
_MAX_ID = 40
_STRING_OR_ARRAY = "one of a string or array of objects"


def check_chat(body: dict[str, Any], headers: Mapping[str, str]) -> None:
    """Raise `Refused` for a body that the real one would refuse."""
    model: str = body["model"]
    check_fields(body, FIELDS | fields_of_family(model))
    check_stream(body)
    check_prompt_cache(body)
    check_tools(body)
    check_limits(body)
    check_response_format(body)
    check_messages(body, is_id_long=model.startswith("kimi-"))
    check_family(model, body)


def check_tools(body: dict[str, Any]) -> None:
    """Tools are functions with unique names."""
    names: set[str] = set()
    for i, tool in enumerate(check_tools_list(body)):
        param = f"tools[{i}]"
        kind = tool.get("type") if is_object(tool) else None
        if kind is None:
            raise missing(f"{param}.type")
        if kind not in ("function", "custom"):
            raise wrong_value(f"{param}.type", kind, ("function", "custom"))
        check_function(f"{param}.{kind}", tool.get(kind), names)


def check_limits(body: dict[str, Any]) -> None:
    """Only one of two names for the same limit."""
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        text = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        raise Refused(text, "max_tokens", "invalid_parameter_combination")


def check_response_format(body: dict[str, Any]) -> None:
    """A response format is text, any JSON, or JSON of a schema."""
    wanted = body.get("response_format")
    if wanted is None:
        return
    kind = wanted.get("type") if is_object(wanted) else None
    if kind not in ("text", "json_object", "json_schema"):
        raise wrong_value("response_format.type", kind, ("json_object", "json_schema", "text"))
    if kind == "json_schema":
        check_json_schema("response_format.json_schema", wanted.get("json_schema"), check_openai_schema)


def check_messages(body: dict[str, Any], *, is_id_long: bool = False) -> None:
    """Messages have a role and content, and every call is answered at once, exactly once."""
    messages = body.get("messages")
    if not is_list(messages):
        raise missing("messages") if messages is None else wrong_type("messages", "an array of objects", messages)
    if not messages:
        raise empty("messages")
    open_calls: dict[str, int | None] = {}  # id of a call -> the message that answers it
    for i, message in enumerate(messages):
        if not is_object(message):
            raise wrong_type(f"messages[{i}]", "an object", message)
        role = message.get("role")
        if role == "tool":
            check_result(i, message, open_calls)
            continue
        if open_calls:
            check_answered(i, open_calls)
            open_calls = {}
        if role == "assistant":
            open_calls = check_assistant(i, message, is_id_long=is_id_long)
        elif role in ROLES:
            check_content(f"messages[{i}].content", message.get("content"), role)
        else:
            raise missing(f"messages[{i}].role") if role is None else wrong_value(f"messages[{i}].role", role, ROLES)
    check_answered(len(messages), open_calls)


def check_answered(i: int, open_calls: dict[str, int | None]) -> None:
    """All calls have their results before the next message."""
    open_ids = [id for id, answer in open_calls.items() if answer is None]
    if open_ids:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(open_ids)
        )
        raise Refused(text, f"messages.[{i}].role")


def check_result(i: int, message: dict[str, Any], open_calls: dict[str, int | None]) -> None:
    """A tool message answers an earlier call that has no answer yet."""
    id = message.get("tool_call_id")
    if not isinstance(id, str):
        raise missing(f"messages[{i}].tool_call_id")
    if id not in open_calls:
        text = (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        )
        raise Refused(text, f"messages.[{i}].role")
    before = open_calls[id]
    if before is not None:
        text = (
            f"Invalid parameter: Duplicate value for 'tool_call_id' of '{id}', in messages[{before}] and messages[{i}]."
        )
        raise Refused(text, f"messages.[{i}].tool_call_id")
    open_calls[id] = i
    check_content(f"messages[{i}].content", message.get("content"), "tool")


def check_assistant(i: int, message: dict[str, Any], *, is_id_long: bool) -> dict[str, int | None]:
    """An assistant message has text, calls, or both."""
    calls, content = message.get("tool_calls"), message.get("content")
    if content is not None:
        check_content(f"messages[{i}].content", content, "assistant")
    elif calls is None and not isinstance(message.get("refusal"), str):
        raise Refused("Invalid value for 'content': expected a string, got null.", f"messages.[{i}].content")
    if calls is None:
        return {}
    param = f"messages[{i}].tool_calls"
    if not is_list(calls):
        raise wrong_type(param, "an array of objects", calls)
    if not calls:
        raise empty(param)
    ids: dict[str, int | None] = {}
    for k, call in enumerate(calls):
        id = check_call(f"{param}[{k}]", call, is_id_long=is_id_long)
        if id in ids:
            raise Refused(f"Invalid '{param}': duplicate tool call id '{id}'.", f"{param}[{k}].id", "invalid_value")
        ids[id] = None
    return ids


def check_call(param: str, call: Any, *, is_id_long: bool) -> str:
    """A call has an id, a name and arguments."""
    if not is_object(call):
        raise wrong_type(param, "an object", call)
    id, function = call.get("id"), call.get("function")
    if not isinstance(id, str) or not id:
        raise missing(f"{param}.id")
    if len(id) > _MAX_ID and not is_id_long:
        raise too_long(f"{param}.id", _MAX_ID, id)
    if call.get("type") != "function":
        raise (
            missing(f"{param}.type") if "type" not in call else wrong_value(f"{param}.type", call["type"], ["function"])
        )
    if not is_object(function):
        raise missing(f"{param}.function")
    check_name(f"{param}.function.name", function.get("name"))
    check_arguments(f"{param}.function.arguments", function.get("arguments"))
    return id


# ---------------------------------------------------------------------------------------------------- parts

_PARTS = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
}


def check_content(param: str, content: Any, role: str) -> None:
    """Content is a string, or parts that this role may send."""
    if isinstance(content, str):
        return
    if content is None:
        raise Refused("Invalid value for 'content': expected a string, got null.", param)
    if not is_list(content):
        raise wrong_type(param, _STRING_OR_ARRAY, content)
    if not content:
        raise empty(param)
    allowed = _PARTS.get(role, ("text",))
    for k, part in enumerate(content):
        kind = part.get("type") if is_object(part) else None
        if kind is None:
            raise missing(f"{param}[{k}].type")
        if kind == "image_url" and role != "user":
            text = (
                f"Invalid '{param}[{k}]'. Image URLs are only allowed for messages with role 'user', "
                f"but this message with role '{role}' contains an image URL."
            )
            raise Refused(text, param, "invalid_value")
        if kind not in allowed:
            raise wrong_value(f"{param}[{k}].type", kind, allowed)
        check_part(f"{param}[{k}]", kind, part.get(kind))


def check_part(param: str, kind: str, value: Any) -> None:
    """A part carries what its type says."""
    if kind in ("text", "refusal"):
        if not isinstance(value, str):
            raise missing(f"{param}.{kind}") if value is None else wrong_type(f"{param}.{kind}", "a string", value)
        return
    if not is_object(value):
        raise missing(f"{param}.{kind}")
    if kind == "image_url":
        url = value.get("url")
        if not isinstance(url, str) or not url.startswith(("data:image/", "https://")):
            text = "Invalid image URL. Expected a valid URL, but got a value with an invalid format."
            raise Refused(f"Invalid '{param}.image_url.url'. {text}", f"{param}.image_url.url", "invalid_value")
    elif kind == "input_audio":
        if value.get("format") not in ("wav", "mp3"):
            raise wrong_value(f"{param}.input_audio.format", value.get("format"), ("wav", "mp3"))
        if not isinstance(value.get("data"), str):
            raise missing(f"{param}.input_audio.data")
    elif not isinstance(value.get("file_id"), str):
        for word in ("file_data", "filename"):
            if not isinstance(value.get(word), str):
                raise missing(f"{param}.file.{word}")
