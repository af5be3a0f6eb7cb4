"""Anthropic Messages, server tools: content blocks of the tools that Anthropic runs, as parts; citations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from everturn.core.parts import Citation, Opaque, ProviderToolPart, ProviderToolState
from everturn.models.formats.provider_tools import first_line

Json = dict[str, Any]
CALL: Final = "server_tool_use"
# The name in a call -> our name of the tool.
CALL_NAMES: Final[Mapping[str, str]] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_execution": "code_execution",
    "bash_code_execution": "code_execution",
    "text_editor_code_execution": "code_execution",
    "tool_search_tool_regex": "tool_search",
    "tool_search_tool_bm25": "tool_search",
}
# The type of a result -> our name of the tool.
RESULTS: Final[Mapping[str, str]] = {
    "web_search_tool_result": "web_search",
    "web_fetch_tool_result": "web_fetch",
    "code_execution_tool_result": "code_execution",
    "bash_code_execution_tool_result": "code_execution",
    "text_editor_code_execution_tool_result": "code_execution",
    "tool_search_tool_result": "tool_search",
}
_ASKED: Final = ("query", "url", "code", "command", "path", "pattern")  # of the input of a call, what a title shows


def read_call(block: Json, issuer: str) -> ProviderToolPart:
    """A call of a server tool as a part."""
    value = block.get("input")
    arguments: Json = cast("Json", value) if isinstance(value, dict) else {}
    name = str(block.get("name") or "")
    title = next((first_line(arguments[key]) for key in _ASKED if arguments.get(key)), first_line(arguments))
    return ProviderToolPart(
        CALL_NAMES.get(name, name), "called", str(block.get("id") or ""), title, "", _sealed(block, issuer)
    )


def read_result(block: Json, issuer: str) -> ProviderToolPart:
    """A result of a server tool as a part."""
    kind, content = str(block.get("type")), block.get("content")
    state, text = _result_text(content)
    id = str(block.get("tool_use_id") or "")
    return ProviderToolPart(RESULTS.get(kind, kind), state, id, "", text, _sealed(block, issuer))


def _sealed(block: Json, issuer: str) -> Opaque:
    return Opaque(issuer, msgspec.json.encode(block).decode())


def _result_text(content: Any) -> tuple[ProviderToolState, str]:
    if isinstance(content, list):
        results = [cast("Json", each) for each in cast("list[Any]", content) if isinstance(each, dict)]
        return "completed", "\n".join(_source(each) for each in results)
    result: Json = cast("Json", content) if isinstance(content, dict) else {}
    if error := result.get("error_code"):
        return "failed", str(error)
    if "stdout" in result or "stderr" in result:
        text = "\n".join(str(result[key]) for key in ("stdout", "stderr") if result.get(key))
        code = result.get("return_code")
        return ("failed" if code else "completed"), f"{text}\n(exit code {code})".strip() if code else text
    if result.get("url"):
        inner: Any = result.get("content")
        return "completed", _source({**(inner if isinstance(inner, dict) else {}), "url": result["url"]})
    if isinstance(result.get("content"), str):
        return "completed", result["content"]
    return "completed", ""


def _source(result: Json) -> str:
    return " ".join(str(result[key]) for key in ("title", "url") if result.get(key))


def read_citation(raw: Json, size: int) -> Citation:
    """A citation of a text block of this size: the API cites whole blocks."""
    source = raw.get("url") or raw.get("source") or raw.get("file_id") or ""
    title = raw.get("title") or raw.get("document_title") or ""
    return Citation(0, size, str(source), str(title), str(raw.get("cited_text") or ""))
