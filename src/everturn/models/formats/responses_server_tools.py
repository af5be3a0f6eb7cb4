"""OpenAI Responses, hosted tools: output items of the tools that OpenAI runs, as parts; annotations as citations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from everturn.core.parts import Citation, Opaque, ProviderToolPart, ProviderToolState
from everturn.models.formats.provider_tools import first_line

Json = dict[str, Any]
# The type of an item -> our name of the tool.
ITEMS: Final[Mapping[str, str]] = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_execution",
    "image_generation_call": "image_generation",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcp",
}
# What a request has to ask for, so that an item says what was found.
INCLUDES: Final[Mapping[str, str]] = {
    "web_search": "web_search_call.action.sources",
    "file_search": "file_search_call.results",
    "code_execution": "code_interpreter_call.outputs",
}


def read_item(item: Json, issuer: str) -> ProviderToolPart:
    """An item of a hosted tool as a part. An image is a file of its own, so its item does not go back."""
    kind = str(item["type"])
    is_failed = item.get("status") in ("failed", "incomplete") or bool(item.get("error"))
    state: ProviderToolState = "failed" if is_failed else "completed"
    title, text = _READERS[kind](item)
    error = item.get("error")
    if error and not text:
        text = first_line(cast("Json", error).get("message") if isinstance(error, dict) else error)
    sealed = None if kind == "image_generation_call" else Opaque(issuer, msgspec.json.encode(item).decode())
    return ProviderToolPart(ITEMS[kind], state, str(item.get("id") or ""), title, text, sealed)


def fee_of(item: Json) -> str:
    """The field of the usage that counts an item, if it costs a fee: a page that is opened after a search costs none."""
    if item.get("status") in ("failed", "incomplete"):
        return ""
    if item["type"] == "web_search_call":
        return "web_searches" if _object(item.get("action")).get("type", "search") == "search" else ""
    return "file_searches" if item["type"] == "file_search_call" else ""


def _search(item: Json) -> tuple[str, str]:
    action = _object(item.get("action"))
    query = action.get("query") or action.get("url") or ", ".join(map(str, _list(action.get("queries"))))
    sources = [_object(source) for source in _list(action.get("sources"))]
    return first_line(query), "\n".join(str(source["url"]) for source in sources if source.get("url"))


def _files(item: Json) -> tuple[str, str]:
    found = [_object(result) for result in _list(item.get("results"))]
    lines = [f"{result.get('filename') or result.get('file_id') or ''}: {result.get('text') or ''}" for result in found]
    return first_line(", ".join(map(str, _list(item.get("queries"))))), "\n".join(lines)


def _code(item: Json) -> tuple[str, str]:
    outputs = [_object(output) for output in _list(item.get("outputs"))]
    return first_line(item.get("code")), "\n".join(str(o.get("logs") or o.get("url") or "") for o in outputs)


def _image(item: Json) -> tuple[str, str]:
    return first_line(item.get("revised_prompt")), ""


def _mcp(item: Json) -> tuple[str, str]:
    label = str(item.get("server_label") or "")
    if item["type"] == "mcp_list_tools":
        tools = [str(_object(tool).get("name") or "") for tool in _list(item.get("tools"))]
        return label, ", ".join(tools)
    return first_line(f"{label}.{item.get('name')} {item.get('arguments') or ''}"), str(item.get("output") or "")


_READERS: Final = {
    "web_search_call": _search,
    "file_search_call": _files,
    "code_interpreter_call": _code,
    "image_generation_call": _image,
    "mcp_call": _mcp,
    "mcp_list_tools": _mcp,
}


def read_annotation(raw: Json) -> Citation:
    """An annotation of a text as a citation; one of a file has a place and no range."""
    at = raw.get("index")
    start, end = raw.get("start_index", at), raw.get("end_index", at)
    source = raw.get("url") or raw.get("file_id") or ""
    title = raw.get("title") or raw.get("filename") or ""
    return Citation(start if isinstance(start, int) else 0, end if isinstance(end, int) else 0, str(source), str(title))


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
