"""OpenAI Responses validation, input items: refuses parts of another role, calls without outputs, and lone
reasoning.
"""

from __future__ import annotations

from typing import Any

from everturn.testing.provider.faults import Refused, is_list, is_object
from everturn.testing.provider.server_tools import is_own_item
from everturn.testing.provider.signatures import is_sealed
from everturn.testing.provider.strict.openai import (
    check_arguments,
    check_name,
    empty,
    missing,
    too_long,
    wrong_type,
    wrong_value,
)

ROLES = ("assistant", "system", "developer", "user")
KINDS = ("message", "function_call", "function_call_output", "reasoning")
_MAX_CALL_ID = 64
_OUTPUT = ("output_text", "refusal")
_INPUT = ("input_text", "input_image", "input_file")
_PREFIX = {"message": "msg", "function_call": "fc", "function_call_output": "fc", "reasoning": "rs"}
# Accepted unchecked: items of tools that nothing here uses.
_UNCHECKED = ("item_reference", "custom_tool_call", "custom_tool_call_output")
# Items of tools that OpenAI runs, with the fields that the `openai` package requires of them in a request:
# `ResponseFunctionWebSearchParam` and the others of `ResponseInputItemParam`.
HOSTED: dict[str, tuple[str, ...]] = {
    "web_search_call": ("id", "action", "status"),
    "file_search_call": ("id", "queries", "status"),
    "code_interpreter_call": ("id", "code", "container_id", "outputs", "status"),
    "image_generation_call": ("id", "result", "status"),
    "mcp_call": ("id", "arguments", "name", "server_label"),
    "mcp_list_tools": ("id", "server_label", "tools"),
}


def check_items(items: list[Any], model: str, *, is_stored: bool) -> None:
    """Items are valid one by one, and together."""
    for i, item in enumerate(items):
        check_item(f"input[{i}]", item, model, is_stored=is_stored)
    check_pairs(items)
    check_followed(items)


def kind_of(item: dict[str, Any]) -> Any:
    """The type of an item; a message need not say it."""
    return item.get("type", "message" if "role" in item else None)


def check_item(param: str, item: Any, model: str, *, is_stored: bool) -> None:
    """One item, by its type."""
    if not is_object(item):
        raise wrong_type(param, "an object", item)
    kind = kind_of(item)
    if not isinstance(kind, str):
        raise missing(f"{param}.type") if kind is None else wrong_type(f"{param}.type", "a string", kind)
    if kind in HOSTED:
        check_hosted(param, item, model)
        return
    if not is_stored:
        check_no_id(item)
    elif kind in _PREFIX:
        check_id(param, item, _PREFIX[kind])
    if kind == "message":
        check_message(param, item)
    elif kind == "function_call":
        check_call(param, item)
    elif kind == "function_call_output":
        check_output(param, item)
    elif kind == "reasoning":
        check_reasoning(param, item, model)
    elif kind not in _UNCHECKED:
        raise wrong_value(f"{param}.type", kind, KINDS)


def check_hosted(param: str, item: dict[str, Any], model: str) -> None:
    """An item of a tool that OpenAI runs has its fields, its id among them, and goes back as it came."""
    for name in HOSTED[item["type"]]:
        if name not in item:
            raise missing(f"{param}.{name}")
    if not is_own_item(model, item):
        text = f"Item '{item['id']}' was modified, or is of another model (our own rule: its id signs it)."
        raise Refused(text, param, "invalid_value")


def check_no_id(item: dict[str, Any]) -> None:
    """An item that was not stored cannot be referenced."""
    id = item.get("id")
    if id is not None:
        text = (
            f"Item with id '{id}' not found. Items are not persisted when `store` is set to false. "
            "Try again with `store` set to true, or remove this item from your input."
        )
        raise Refused(text, "input")


def check_id(param: str, item: dict[str, Any], prefix: str) -> None:
    """A stored item has an id with the prefix of its type."""
    id = item.get("id")
    if id is not None and not (isinstance(id, str) and id.startswith(prefix)):
        text = f"Invalid '{param}.id': '{id}'. Expected an ID that begins with '{prefix}'."
        raise Refused(text, f"{param}.id", "invalid_value")


def check_message(param: str, item: dict[str, Any]) -> None:
    """A message has a role and content that this role may send."""
    role, content = item.get("role"), item.get("content")
    if role not in ROLES:
        raise missing(f"{param}.role") if role is None else wrong_value(f"{param}.role", role, ROLES)
    check_content(f"{param}.content", content, _OUTPUT if role == "assistant" else _INPUT)


def check_content(param: str, content: Any, allowed: tuple[str, ...]) -> None:
    """Content is a string or parts of the allowed types."""
    if isinstance(content, str):
        return
    if content is None:
        raise missing(param)
    if not is_list(content):
        raise wrong_type(param, "one of an array of objects or string", content)
    if not content:
        raise empty(param)
    for k, part in enumerate(content):
        kind = part.get("type") if is_object(part) else None
        if kind not in allowed:
            raise missing(f"{param}[{k}].type") if kind is None else wrong_value(f"{param}[{k}].type", kind, allowed)
        check_part(f"{param}[{k}]", kind, part)


def check_part(param: str, kind: str, part: dict[str, Any]) -> None:
    """A part carries what its type says."""
    if kind == "input_image":
        url = part.get("image_url")
        if not isinstance(part.get("file_id"), str) and not (
            isinstance(url, str) and url.startswith(("data:image/", "https://"))
        ):
            text = f"Invalid '{param}.image_url'. Expected a valid URL, but got a value with an invalid format."
            raise Refused(text, f"{param}.image_url", "invalid_value")
    elif kind == "input_file":
        if not any(isinstance(part.get(word), str) for word in ("file_id", "file_url", "file_data")):
            raise missing(f"{param}.file_data")
        if isinstance(part.get("file_data"), str) and not isinstance(part.get("filename"), str):
            raise missing(f"{param}.filename")
    else:
        word = "refusal" if kind == "refusal" else "text"
        if not isinstance(part.get(word), str):
            raise missing(f"{param}.{word}")


def _check_call_id(param: str, item: dict[str, Any]) -> None:
    id = item.get("call_id")
    if not isinstance(id, str) or not id:
        raise missing(f"{param}.call_id")
    if len(id) > _MAX_CALL_ID:
        raise too_long(f"{param}.call_id", _MAX_CALL_ID, id)


def check_call(param: str, item: dict[str, Any]) -> None:
    """A call has an id, a name and arguments."""
    _check_call_id(param, item)
    check_name(f"{param}.name", item.get("name"))
    check_arguments(f"{param}.arguments", item.get("arguments"))


def check_output(param: str, item: dict[str, Any]) -> None:
    """An output names its call and is a string or parts."""
    _check_call_id(param, item)
    check_content(f"{param}.output", item.get("output"), _INPUT)


def check_reasoning(param: str, item: dict[str, Any], model: str) -> None:
    """Reasoning has a summary, possibly an empty one, and is sent back unchanged."""
    summary = item.get("summary")
    if not is_list(summary):
        raise missing(f"{param}.summary")
    for k, part in enumerate(summary):
        if not is_object(part) or part.get("type") != "summary_text":
            raise wrong_value(f"{param}.summary[{k}].type", part, ["summary_text"])
    sealed = item.get("encrypted_content")
    if sealed is None:
        return
    if not isinstance(sealed, str) or not is_sealed("enc", model, sealed):
        shown = f"{str(sealed)[:4]}...{str(sealed)[-4:]}"
        text = (
            f"The encrypted content {shown} could not be verified. "
            "Reason: Encrypted content could not be decrypted or parsed."
        )
        raise Refused(text, None, "invalid_encrypted_content")


def check_pairs(items: list[dict[str, Any]]) -> None:
    """Every call has one output after it, and every output a call before it."""
    open_ids: dict[str, bool] = {}
    for item in items:
        kind = item.get("type")
        if kind == "function_call":
            id = item["call_id"]
            if id in open_ids:
                raise Refused(f"Duplicate function call found with call_id {id}.", "input")
            open_ids[id] = True
        elif kind == "function_call_output":
            id = item["call_id"]
            if id not in open_ids:
                raise Refused(f"No tool call found for function call output with call_id {id}.", "input")
            if not open_ids[id]:
                raise Refused(f"Duplicate function call output found with call_id {id}.", "input")
            open_ids[id] = False
    for id, is_open in open_ids.items():
        if is_open:
            raise Refused(f"No tool output found for function call {id}.", "input")


def check_followed(items: list[dict[str, Any]]) -> None:
    """Reasoning precedes what it led to."""
    alone: tuple[int, dict[str, Any]] | None = None
    for i, item in enumerate([*items, {}]):
        kind = kind_of(item)
        if kind == "reasoning":
            alone = alone or (i, item)
            continue
        is_output = kind in ("function_call", "custom_tool_call", *HOSTED) or (
            kind == "message" and item.get("role") == "assistant"
        )
        if alone is not None and not is_output:
            at, reasoning = alone
            name = reasoning.get("id") or f"input[{at}]"
            text = f"Item '{name}' of type 'reasoning' was provided without its required following item."
            raise Refused(text, "input")
        alone = None
