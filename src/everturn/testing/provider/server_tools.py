"""Server tools of the provider: calls and results of tools that it runs itself, as blocks of Anthropic
Messages and items of OpenAI Responses.

The id of a call signs its name and input, and results and citations carry sealed values, so that `strict.server_blocks`
recognizes what was changed on its way back.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from everturn.core.canonical_json import encode_canonical, parse_object
from everturn.testing.provider.faults import Format, is_list, is_object
from everturn.testing.provider.gemini_tools import place_built_in
from everturn.testing.provider.media.png import draw_png
from everturn.testing.provider.script import Cite, HostedTool, Item
from everturn.testing.provider.signatures import seal_reasoning, sign

# Names in calls -> the name of the tool that a request declares.
DECLARED_AS = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_execution": "code_execution",
    "bash_code_execution": "code_execution",
    "text_editor_code_execution": "code_execution",
}
# The same names -> the type that a request of Responses declares, and the type of the item.
HOSTED_AS = {
    "web_search": ("web_search", "web_search_call"),
    "file_search": ("file_search", "file_search_call"),
    "bash_code_execution": ("code_interpreter", "code_interpreter_call"),
    "image_generation": ("image_generation", "image_generation_call"),
    "mcp": ("mcp", "mcp_call"),
}
HOSTED_ITEMS = tuple(item for _, item in HOSTED_AS.values())


def place_server_tools(format: Format, model: str, items: Sequence[Item], body: dict[str, Any]) -> list[Item]:
    """The items with ids for the tools that the provider runs; those that the request does not declare are left out."""
    if format == "responses":
        return _place_hosted(model, items, body)
    if format == "gemini":
        return place_built_in(model, items, body)
    placed: list[Item] = []
    open_ids = open_server_calls(body)
    number = 1000 * len(list(_blocks(body))) + len(server_ids(body))  # new, also where earlier ones were left out
    for item in items:
        if not isinstance(item, HostedTool | Cite):
            placed.append(item)
        elif isinstance(item, Cite):
            placed.append(item)
        elif format != "messages":
            continue
        elif not is_declared(body, item.name):
            continue
        elif item.part == "result":
            id = next((id for id, name in open_ids.items() if name == item.name), "")
            if id:
                open_ids.pop(id)
                placed.append(replace(item, id=id))
        else:
            id = make_server_id(model, f"{number}", item.name, item.arguments)
            number += 1
            parts = ("call", "result") if item.part == "both" else ("call",)
            placed += [replace(item, id=id, part=part) for part in parts]
    return placed


def _place_hosted(model: str, items: Sequence[Item], body: dict[str, Any]) -> list[Item]:
    """The same for Responses, where a call and its result are one item."""
    tools, input_items = body.get("tools"), body.get("input")
    declared = [tool.get("type") for tool in tools if is_object(tool)] if is_list(tools) else []
    count = len(input_items) if is_list(input_items) else 0
    placed: list[Item] = []
    for item in items:
        if not isinstance(item, HostedTool):
            placed.append(item)
        elif item.part != "result" and item.name in HOSTED_AS and HOSTED_AS[item.name][0] in declared:
            made = hosted_item(item)
            placed.append(replace(item, part="both", id=make_item_id(model, made, count + len(placed))))
    return placed


def hosted_item(item: HostedTool) -> dict[str, Any]:
    """An item of Responses, without its id."""
    arguments, kind = _object(item.arguments), HOSTED_AS[item.name][1]
    made: dict[str, Any] = {"type": kind, "status": "failed" if item.error else "completed"}
    lines = [line for line in item.output.splitlines() if line]
    match kind:
        case "web_search_call":
            sources = [{"type": "url", "url": line} for line in lines]
            return {**made, "action": {"type": "search", "query": arguments.get("query", ""), "sources": sources}}
        case "file_search_call":
            results = [{"file_id": "file_1", "filename": "a.txt", "score": 0.5, "text": line} for line in lines]
            return {**made, "queries": [arguments.get("query", "")], "results": results}
        case "code_interpreter_call":
            logs = [{"type": "logs", "logs": item.output}]
            return {**made, "code": arguments.get("command", ""), "container_id": "cntr_1", "outputs": logs}
        case "image_generation_call":
            return {**made, "result": base64.b64encode(draw_png(item.output.encode())).decode(), "output_format": "png"}
        case _:
            made.pop("status")
            error = {"type": "http_error", "code": 500, "message": item.error} if item.error else None
            call = {"name": "look", "arguments": item.arguments, "server_label": "docs"}
            return {**made, **call, "output": item.output, "error": error}


_PREFIXES = {"web_search_call": "ws", "file_search_call": "fs", "code_interpreter_call": "ci", "mcp_call": "mcp"}


def make_item_id(model: str, item: dict[str, Any], number: int) -> str:
    """An id that signs an item."""
    prefix = _PREFIXES.get(item["type"], "ig")
    return f"{prefix}_{number}_{sign(model, f'{number} {encode_canonical(item)}')[4:36]}"


def is_own_item(model: str, item: dict[str, Any]) -> bool:
    """Whether this provider made an item, and it was not changed."""
    id = str(item.get("id"))
    number = id.split("_")[1] if id.count("_") == 2 else ""
    bare = {key: value for key, value in item.items() if key != "id"}
    return number.isdecimal() and hmac.compare_digest(id, make_item_id(model, bare, int(number)))


def is_declared(body: dict[str, Any], name: str) -> bool:
    """Whether a request declares the tool of a call, and does not forbid calls."""
    tools, choice = body.get("tools"), body.get("tool_choice")
    if is_object(choice) and choice.get("type") == "none":
        return False
    wanted = DECLARED_AS.get(name, name)
    return is_list(tools) and any(
        is_object(tool) and tool.get("name") == wanted and str(tool.get("type", "")).startswith(f"{wanted}_20")
        for tool in tools
    )


def _blocks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    messages = body.get("messages")
    for message in messages if is_list(messages) else ():
        content = message.get("content") if is_object(message) else None
        for block in content if is_list(content) else ():
            if is_object(block):
                yield block


def server_ids(body: dict[str, Any]) -> list[str]:
    """The ids of the calls in a request."""
    return [str(block.get("id")) for block in _blocks(body) if block.get("type") == "server_tool_use"]


def open_server_calls(body: dict[str, Any]) -> dict[str, str]:
    """The calls without a result in a request: id -> name."""
    calls = {
        str(block.get("id")): str(block.get("name"))
        for block in _blocks(body)
        if block.get("type") == "server_tool_use"
    }
    for block in _blocks(body):
        calls.pop(str(block.get("tool_use_id")), None)
    return calls


def make_server_id(model: str, number: str, name: str, arguments: str) -> str:
    """An id that signs the name and the input of a call."""
    canonical = encode_canonical(_object(arguments))
    return f"srvtoolu_{number}_{sign(model, f'{number} {name} {canonical}')[4:28]}"


def is_own_id(model: str, id: str, name: str, arguments: dict[str, Any]) -> bool:
    """Whether this provider made the call with this id."""
    number = id.removeprefix("srvtoolu_").partition("_")[0]
    return hmac.compare_digest(id, make_server_id(model, number, name, encode_canonical(arguments)))


def _object(text: str) -> dict[str, Any]:
    return parse_object(text) or {}


def call_block(item: HostedTool) -> dict[str, Any]:
    """The beginning of a call; its input is streamed."""
    return {"type": "server_tool_use", "id": item.id, "name": item.name, "input": {}}


def result_block(item: HostedTool, model: str) -> dict[str, Any]:
    """A result, whole."""
    return {"type": f"{item.name}_tool_result", "tool_use_id": item.id, "content": _content(item, model)}


def _content(item: HostedTool, model: str) -> Any:
    kind = f"{item.name}_tool_result"
    if item.error:
        return {"type": f"{kind}_error", "error_code": item.error}
    if item.name == "web_search":
        lines = [line for line in item.output.splitlines() if line]
        return [
            {
                "type": "web_search_result",
                "title": f"Result {n}",
                "url": line,
                "encrypted_content": seal_reasoning("web", model, line),
                "page_age": None,
            }
            for n, line in enumerate(lines, 1)
        ]
    if item.name == "web_fetch":
        source = {"type": "text", "media_type": "text/plain", "data": item.output}
        document = {"type": "document", "source": source, "title": "A page"}
        return {"type": "web_fetch_result", "url": "https://example.com/", "content": document}
    result: dict[str, Any] = {"stdout": item.output, "stderr": "", "return_code": 0, "content": []}
    return {"type": f"{item.name}_result", **result}


def citation(item: Cite, model: str) -> dict[str, Any]:
    """The citation of a text."""
    return {
        "type": "web_search_result_location",
        "cited_text": item.quote,
        "encrypted_index": seal_reasoning("idx", model, item.url),
        "title": item.title,
        "url": item.url,
    }
