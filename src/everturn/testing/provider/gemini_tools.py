"""Built-in tools of Gemini: parts and grounding metadata of the tools that the provider runs itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from everturn.core.canonical_json import encode_canonical, parse_object
from everturn.testing.provider.faults import is_list, is_object
from everturn.testing.provider.gemini_signatures import is_third, signature
from everturn.testing.provider.progress import either
from everturn.testing.provider.script import Cite, HostedTool, Item

Json = dict[str, Any]
# Names in scripts -> the field of the declaration, and the type of a call; code has parts of its own.
BUILT_IN = {
    "web_search": ("googleSearch", "GOOGLE_SEARCH_WEB"),
    "web_fetch": ("urlContext", "URL_CONTEXT"),
    "bash_code_execution": ("codeExecution", ""),
    "file_search": ("retrieval", ""),  # of Vertex AI: only metadata reports it
}
DECLARED_BY = {kind: field for field, kind in BUILT_IN.values() if kind}
FIELDS = tuple(field for field, _ in BUILT_IN.values())
_VERSIONS = {"enterpriseWebSearch": "googleSearch"}  # another version of a tool
CALLS = {"toolCall": "toolResponse", "executableCode": "codeExecutionResult"}


def place_built_in(model: str, items: Sequence[Item], body: Json) -> list[Item]:
    """The items with ids for built-in tools; those that the request does not declare are left out."""
    declared, open_ids, shows_calls = _declared(body), _open_ids(body), _shows_calls(body)
    placed: list[Item] = []
    number = 1000 * len(list(_parts(body)))
    for item in items:
        if not isinstance(item, HostedTool):
            placed.append(item)
        elif item.name not in BUILT_IN or BUILT_IN[item.name][0] not in declared:
            continue
        elif item.part == "result":
            kind = _kind(item.name)
            if (id := next((id for id, found in open_ids.items() if found == kind), "")) and is_third(model):
                open_ids.pop(id)
                placed.append(replace(item, id=id))
        else:
            number += 1
            parts = ("call", "result") if item.part == "both" else ("call",)
            id = f"server-{number}" if shows_calls or item.name == "bash_code_execution" else ""
            placed += [replace(item, id=id, part=part) for part in parts]
    return placed


def _kind(name: str) -> str:
    return "executableCode" if name == "bash_code_execution" else BUILT_IN[name][1]


def _declared(body: Json) -> set[str]:
    tools = body.get("tools")
    fields = {field for tool in (tools if is_list(tools) else ()) if is_object(tool) for field in tool}
    return {_VERSIONS.get(field, field) for field in fields}


def _shows_calls(body: Json) -> bool:
    config = either(body, "toolConfig")
    return is_object(config) and either(config, "includeServerSideToolInvocations") is True


def _parts(body: Json) -> Iterator[Json]:
    contents = body.get("contents")
    for content in contents if is_list(contents) else ():
        parts = content.get("parts") if is_object(content) else None
        yield from (part for part in (parts if is_list(parts) else ()) if is_object(part))


def _open_ids(body: Json) -> dict[str, str]:
    """The calls without a result in a request: id -> kind."""
    found: dict[str, str] = {}
    for part in _parts(body):
        for call, result in CALLS.items():
            if is_object(made := either(part, call)) and made.get("id"):
                found[str(made["id"])] = str(made.get("toolType") or call)
            if is_object(made := either(part, result)):
                found.pop(str(made.get("id")), None)
    return found


def tool_part(item: HostedTool, model: str) -> Json | None:
    """A part of the content; None where only the metadata reports a call."""
    third = is_third(model)
    id: Json = {"id": item.id} if third else {}
    arguments = parse_object(item.arguments) or {}
    if item.name == "bash_code_execution":
        if item.part == "call":
            part: Json = {"executableCode": {**id, "language": "PYTHON", "code": str(arguments.get("command", ""))}}
        else:
            outcome = "OUTCOME_FAILED" if item.error else "OUTCOME_OK"
            part = {"codeExecutionResult": {**id, "outcome": outcome, "output": item.error or item.output}}
    elif not third or not item.id:  # an id is given only where the request asks for calls
        return None
    elif item.part == "call":
        part = {"toolCall": {**id, "toolType": BUILT_IN[item.name][1], "args": arguments}}
    else:
        found = {"error": item.error} if item.error else {"found": item.output}
        part = {"toolResponse": {**id, "toolType": BUILT_IN[item.name][1], "response": found}}
    return {**part, "thoughtSignature": signature(model, encode_canonical(part))} if third else part


class Grounding:
    """The metadata of an answer: what was searched and read, and which of its text is from where."""

    def __init__(self) -> None:
        self._queries: list[str] = []
        self._retrievals: list[str] = []
        self._pages: list[Json] = []
        self._chunks: list[Json] = []
        self._supports: list[Json] = []

    def add_tool(self, item: HostedTool) -> None:
        """A search or a page."""
        arguments = parse_object(item.arguments) or {}
        if item.part == "call" and item.name == "web_search":
            self._queries.append(str(arguments.get("query", "")))
        elif item.part == "result" and item.name == "web_search":
            for number, url in enumerate(filter(None, item.output.splitlines()), 1):
                self._chunks.append({"web": {"uri": url, "title": f"Result {number}"}})
        elif item.part == "call" and item.name == "file_search":
            self._retrievals.append(str(arguments.get("query", "")))
        elif item.part == "result" and item.name == "file_search":
            self._chunks.append({"retrievedContext": {"uri": item.output, "title": "a.txt"}})
        elif item.part == "result" and item.name == "web_fetch":
            status = "URL_RETRIEVAL_STATUS_ERROR" if item.error else "URL_RETRIEVAL_STATUS_SUCCESS"
            self._pages.append({"retrievedUrl": "https://example.com/", "urlRetrievalStatus": status})

    def add_citation(self, item: Cite, start: int, end: int) -> None:
        """A source of the bytes from `start` to `end` of the answer's text."""
        segment: Json = {"endIndex": end, "text": item.text, **({"startIndex": start} if start else {})}
        self._supports.append({"segment": segment, "groundingChunkIndices": [len(self._chunks)]})
        self._chunks.append({"web": {"uri": item.url, "title": item.title}})

    def metadata(self) -> Json:
        """The fields of the candidate."""
        named = (
            ("webSearchQueries", self._queries),
            ("retrievalQueries", self._retrievals),
            ("groundingChunks", self._chunks),
            ("groundingSupports", self._supports),
        )
        grounding = {name: value for name, value in named if value}
        return {
            **({"groundingMetadata": grounding} if grounding else {}),
            **({"urlContextMetadata": {"urlMetadata": self._pages}} if self._pages else {}),
        }
