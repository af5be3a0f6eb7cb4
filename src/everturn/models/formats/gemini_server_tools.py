"""Gemini, built-in tools: parts of the tools that Google runs, and grounding metadata, as parts; citations.

A tool shows itself in one of two ways. Code, and with `includeServerSideToolInvocations` every call, is a part of the
content, which goes back. Otherwise only the metadata of the candidate says what was searched or read; no request has a
place for that, so it is recorded and does not go back to Google.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from everturn.core.parts import Citation, Opaque, ProviderToolPart, ProviderToolState
from everturn.models.formats.provider_tools import first_line

Json = dict[str, Any]
# `toolType` of a call or response -> our name of the tool.
TOOL_TYPES: Final[Mapping[str, str]] = {
    "GOOGLE_SEARCH_WEB": "web_search",
    "GOOGLE_SEARCH_IMAGE": "web_search",
    "URL_CONTEXT": "web_fetch",
}
PARTS: Final = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
METADATA: Final = ("groundingMetadata", "urlContextMetadata")
MAX_CITATIONS: Final = 1_000  # of one answer: each takes a look at its text
_QUERY_KEYS: Final = ("queries", "query", "urls", "url")  # of the arguments of a call, what a title shows
_FETCHED: Final = "URL_RETRIEVAL_STATUS_SUCCESS"


def read_part(part: Json, issuer: str, code_id: str) -> ProviderToolPart:
    """A part of a built-in tool; `code_id` is for code that has no id of its own."""
    kind = next(name for name in PARTS if name in part)
    value = as_object(part[kind])
    id = str(value.get("id") or code_id)
    state, name, title, text = _READERS[kind](value)
    return ProviderToolPart(name, state, id, title, text, _sealed(part, issuer))


def _sealed(value: Json, issuer: str) -> Opaque:
    return Opaque(issuer, msgspec.json.encode(value).decode())


_Read = tuple[ProviderToolState, str, str, str]


def _code(value: Json) -> _Read:
    return "called", "code_execution", first_line(value.get("code")), ""


def _code_result(value: Json) -> _Read:
    outcome, output = str(value.get("outcome") or ""), str(value.get("output") or "")
    is_failed = outcome != "OUTCOME_OK"
    text = "\n".join(filter(None, (output, f"({outcome.removeprefix('OUTCOME_').lower()})" if is_failed else "")))
    return ("failed" if is_failed else "completed"), "code_execution", "", text


def _call(value: Json) -> _Read:
    args = as_object(value.get("args"))
    query = next((args[key] for key in _QUERY_KEYS if args.get(key)), args)
    title = ", ".join(map(str, cast("list[Any]", query))) if isinstance(query, list) else query
    return "called", _name(value), first_line(title), ""


def _response(value: Json) -> _Read:
    response = as_object(value.get("response"))
    error = response.get("error")
    return ("failed" if error else "completed"), _name(value), "", first_line(error) if error else ""


_READERS: Final = {
    "executableCode": _code,
    "codeExecutionResult": _code_result,
    "toolCall": _call,
    "toolResponse": _response,
}


def _name(value: Json) -> str:
    kind = str(value.get("toolType") or "")
    return TOOL_TYPES.get(kind, kind.lower())


def read_searches(metadata: Json, issuer: str) -> Iterator[tuple[ProviderToolPart, int]]:
    """Searches that only the grounding metadata reports, and how many: of the web, and of a data store (Vertex AI).

    A part has the queries, and the sources that were found.
    """
    chunks = as_list(metadata.get("groundingChunks"))
    retrieved = [chunk for chunk in chunks if as_object(chunk).get("retrievedContext")]
    web = [chunk for chunk in chunks if not as_object(chunk).get("retrievedContext")]
    searches = (("web_search", "webSearchQueries", web), ("file_search", "retrievalQueries", retrieved))
    for name, field, found in searches:
        queries = as_list(metadata.get(field))
        if queries or (name == "file_search" and found):
            text = "\n".join(" ".join(filter(None, (title, url))) for url, title in map(_source, found))
            sealed = _about("groundingMetadata", metadata, issuer)
            title = first_line(", ".join(map(str, queries)))
            yield ProviderToolPart(name, "completed", "", title, text, sealed), max(len(queries), 1)


def read_fetches(metadata: Json, issuer: str) -> Iterator[ProviderToolPart]:
    """Pages that only the metadata reports: one part for each URL."""
    for page in map(as_object, as_list(metadata.get("urlMetadata"))):
        status = str(page.get("urlRetrievalStatus") or "")
        state: ProviderToolState = "completed" if status == _FETCHED else "failed"
        text = "" if state == "completed" else status.removeprefix("URL_RETRIEVAL_STATUS_").lower()
        url = first_line(page.get("retrievedUrl"))
        yield ProviderToolPart("web_fetch", state, "", url, text, _about("urlContextMetadata", page, issuer))


def _about(name: str, metadata: Json, issuer: str) -> Opaque:
    return _sealed({name: metadata}, issuer)


def is_metadata(sealed: Json) -> bool:
    """Whether the content of a part is metadata, for which a request has no place."""
    return any(name in sealed for name in METADATA)


# Citations --------------------------------------------------------------------------------------------------------


def read_citations(metadata: Json, text: str, runs: Sequence[int]) -> Iterator[Citation]:
    """The sources of an answer's text, with ranges in characters of all of it.

    Google counts bytes of UTF-8 from the beginning of a part, and an answer that is streamed has no parts to count in.
    So a segment counts where its text is what it says: from the beginning of the answer, or of a run of text (`runs`:
    where those begin, in characters). One whose text is nowhere is left out.
    """
    places = _ByteOffsets(text, runs)
    sources = [_source(chunk) for chunk in as_list(metadata.get("groundingChunks"))]
    for support in map(as_object, as_list(metadata.get("groundingSupports"))[:MAX_CITATIONS]):
        found = places.find(as_object(support.get("segment")))
        for at in as_list(support.get("groundingChunkIndices")) if found is not None else ():
            if isinstance(at, int) and 0 <= at < len(sources) and found is not None:
                yield Citation(*found, *sources[at])


class _ByteOffsets:
    """Places in a text, given as bytes of its UTF-8."""

    def __init__(self, text: str, runs: Sequence[int]) -> None:
        self._data = text.encode("utf-8", "replace")
        self._starts: list[int] | None = None  # the byte at which each character begins
        if len(self._data) != len(text):
            self._starts, at = [], 0
            for character in text:
                self._starts.append(at)
                at += len(character.encode("utf-8", "replace"))
        self._runs = [self._byte(run) for run in runs]

    def find(self, segment: Json) -> tuple[int, int] | None:
        """The range of a segment in characters."""
        start, end, part = segment.get("startIndex") or 0, segment.get("endIndex"), segment.get("partIndex") or 0
        wanted = segment.get("text")
        if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end or not isinstance(part, int):
            return None
        if not isinstance(wanted, str) or not wanted:
            base = self._runs[part] if 0 < part < len(self._runs) else 0
            return self._range(base + start, base + end) if base + end <= len(self._data) else None
        data = wanted.encode("utf-8", "replace")
        for base in dict.fromkeys((0, *self._runs)):
            if self._data[base + start : base + end] == data:
                return self._range(base + start, base + end)
        at = self._data.find(data)
        is_only = at >= 0 and self._data.find(data, at + 1) < 0
        return self._range(at, at + len(data)) if is_only else None

    def _range(self, start: int, end: int) -> tuple[int, int]:
        return self._character(start), self._character(end)

    def _character(self, byte: int) -> int:
        """The character that a byte is in; the end of the text for the byte behind the last."""
        if self._starts is None:
            return byte
        return len(self._starts) if byte >= len(self._data) else bisect_right(self._starts, byte) - 1

    def _byte(self, character: int) -> int:
        if self._starts is None:
            return character
        return self._starts[character] if character < len(self._starts) else len(self._data)


def _source(chunk: object) -> tuple[str, str]:
    """The URL and title of a source: of the web, of a document, or of a map."""
    given = as_object(chunk)
    found = as_object(given.get("web") or given.get("retrievedContext") or given.get("maps"))
    return str(found.get("uri") or ""), str(found.get("title") or "")


def as_object(value: object) -> Json:
    """A JSON object; an empty one for anything else."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """A JSON array; an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []
