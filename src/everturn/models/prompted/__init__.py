"""Prompted tool calling: gives tools to a model without native tool calls, `PromptedModel(model, "json")`.

    request → request without tools → the model → its text → chunks with calls

It describes the tools in the system prompt and parses calls from the streamed text. The turn sees what it sees of any
model: the same parts, gates and history. So a conversation can continue natively, or in another tool format.

    tool_format  what a tool format is
    json         calls as one JSON object
    xml          calls in tags
    blocks       calls in delimited blocks, for long text
    request      a request with the tools in its system prompt
    response     where in a text a call begins, and where it only looks like one
    json_calls   a call that is a JSON object
    text_reader  streamed text for parsers
    grammar      grammars for constrained decoding
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from everturn.core.chunks import CallChunk, Chunk, FinishChunk, OpaqueChunk, RetryChunk, TextChunk
from everturn.core.continuation import continued_text
from everturn.core.file_uploads import AccountUploads, uploads_of
from everturn.core.modality import Modality, ProviderToolMix, modality_of, provider_tool_mix, provider_tools_of
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError, ModelError
from everturn.models.formats.think_tags import ThinkTagReader
from everturn.models.load import load
from everturn.models.prices import ModelFacts, facts_of
from everturn.models.prompted.blocks import BlocksFormat
from everturn.models.prompted.json import JsonFormat
from everturn.models.prompted.request import build_prompted_request
from everturn.models.prompted.response import AnswerParser
from everturn.models.prompted.tool_format import OfferedTools, ToolFormat
from everturn.models.prompted.xml import XmlFormat
from everturn.models.structured_output import OutputReader, as_object_text, read_output

log = logging.getLogger(__name__)

TOOL_FORMATS: Final[Mapping[str, ToolFormat]] = {
    tool_format.name: tool_format for tool_format in (JsonFormat(), XmlFormat(), BlocksFormat())
}
NATIVE = "native"
FALLBACK: Final = "json"  # the format for a model that turns out to have no native tool calls
DecodingConstraint = Literal["", "schema", "grammar"]
"""Constrained decoding of a server: none, a JSON schema for the whole answer, or also a grammar."""
_OWN_CALLS = 1_000_000  # slots of calls that a model makes natively all the same: separate from those in its text


class PromptedModel:
    """A model whose tools are described in the prompt, and whose calls are parsed from its text.

    `tool_format` is `json`, `xml`, `blocks`, or `native` to change nothing; a turn can choose another one with
    `params={"tool_format": …}`. If the server has constrained decoding (`decoding_constraint`), it is used, unless a turn has
    `params={"constrained_decoding": False}`.

    With `falls_back`, `native` holds until the server refuses tools: that request is sent again with prompted calls (`json`),
    and so are all later ones of this process.
    """

    def __init__(
        self,
        model: Model,
        tool_format: str = "json",
        decoding_constraint: DecodingConstraint = "",
        *,
        name: str = "",
        falls_back: bool = False,
    ) -> None:
        if tool_format not in TOOL_FORMATS and tool_format != NATIVE:
            raise ConfigError(_no_such(tool_format))
        # A name of its own, or a suspended turn of the bare model would find this one.
        self._name = name or f"{model.name}@{tool_format}"
        self._model, self._tool_format = model, tool_format
        self._decoding_constraint: DecodingConstraint = decoding_constraint
        self._falls_back = falls_back and tool_format == NATIVE

    @property
    def name(self) -> str:
        """The name that a UI shows: the model's own, and the tool format."""
        return self._name

    @property
    def modality(self) -> Modality:
        """What the model is for."""
        return modality_of(self._model)

    @property
    def uploads(self) -> tuple[AccountUploads, ...]:
        """The accounts to which it uploads files."""
        return uploads_of(self._model)

    @property
    def provider_tools(self) -> frozenset[str]:
        """The tools that its provider can run; none where tools are described in the prompt."""
        return provider_tools_of(self._model) if self._tool_format == NATIVE else frozenset()

    @property
    def provider_tool_mix(self) -> ProviderToolMix:
        """What such a tool can be beside in a request."""
        return provider_tool_mix(self._model)

    def __repr__(self) -> str:
        """The model's own words for itself."""
        return f"<Prompted {self._tool_format} {self._model!r}>"

    async def facts(self) -> ModelFacts:
        """Return the model's price and context window, where they are known."""
        return await facts_of(self._model)

    def load(self) -> None:
        """Import what the first request needs."""
        load(self._model)

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Send the request, in the tool format of this turn."""
        params = dict(request.params)
        wanted = params.pop("tool_format", None)
        if self._falls_back and not wanted and request.tools:
            return self._stream_or_fall_back(request)
        return self._stream(request, wanted or self._tool_format)

    async def _stream_or_fall_back(self, request: ModelRequest) -> AsyncGenerator[Sequence[Chunk]]:
        """Send the request with native tools, and with prompted ones if the server refuses them."""
        batches = self._stream(request, NATIVE)
        try:
            async for batch in batches:
                yield batch
            return
        except ModelError as error:
            if not error.refuses_tools:
                raise
            log.warning("%s has no native tool calls; it is prompted to call tools (%s)", self.name, FALLBACK)
            self._tool_format, self._falls_back = FALLBACK, False
            yield (RetryChunk(2, 2, 0.0, error.kind, str(error)),)
        finally:
            await _close(batches)
        batches = self._stream(request, FALLBACK)
        try:
            async for batch in batches:
                yield batch
        finally:
            await _close(batches)

    def _stream(self, request: ModelRequest, name: object) -> AsyncIterator[Sequence[Chunk]]:
        params = dict(request.params)
        params.pop("tool_format", None)
        may_constrain = params.pop("constrained_decoding", True)
        if name == NATIVE:
            return self._model.stream(
                request if len(params) == len(request.params) else replace(request, params=params)
            )
        if not isinstance(name, str) or name not in TOOL_FORMATS:
            return _refuse(_no_such(name))
        if not request.tools and not any(message.role == "tool" for message in request.messages):
            return self._model.stream(replace(request, params=params))  # no tools, and none in the history
        tool_format = TOOL_FORMATS[name]
        offer, params = _offer(request, params, self._constraint_for(tool_format) if may_constrain else "")
        key = ""
        if offer.schema is not None:  # values that are objects can be told from text around them
            schema, key = as_object_text(offer.schema)
            offer = replace(offer, schema=schema)
        if offer.is_constrained:
            params |= tool_format.constrain(offer)
        prompted = build_prompted_request(request, tool_format, offer, params)
        if not offer.tools:
            return self._model.stream(prompted)  # nothing is parsed as a call
        before = "" if offer.is_constrained else continued_text(request) or ""
        answer = self._read(prompted, tool_format.answer(offer), before)
        return answer if offer.schema is None else read_output(OutputReader(key), answer)

    def _constraint_for(self, tool_format: ToolFormat) -> DecodingConstraint:
        """Return the constraint for this tool format: a schema suffices only if the whole answer is JSON."""
        return (
            self._decoding_constraint
            if tool_format.constrains_answers or self._decoding_constraint == "grammar"
            else ""
        )

    async def _read(self, request: ModelRequest, answer: AnswerParser, before: str) -> AsyncGenerator[Sequence[Chunk]]:
        reader = _PromptedReader(answer, before)
        batches = self._model.stream(request)
        try:
            async for batch in batches:
                yield reader.feed(batch)
        except ModelError:
            yield reader.end()  # the text that was held back had been received
            raise
        finally:
            await _close(batches)
        yield reader.end()


class _PromptedReader:
    """Replaces calls in the text of a model with call chunks."""

    def __init__(self, answer: AnswerParser, before: str = "") -> None:
        self._answer, self._thinking = answer, ThinkTagReader()
        self._is_over = False
        # A text that is continued may end within a code fence: then what follows is no call. It is parsed again, and
        # what was shown of it is skipped.
        self._skipped = len(before)
        if before:
            chunks: list[Chunk] = []
            answer.feed(before, chunks)
            self._skip(chunks)

    def feed(self, batch: Sequence[Chunk]) -> list[Chunk]:
        out: list[Chunk] = []
        for chunk in batch:
            match chunk:
                case TextChunk():
                    self._text(chunk, out)
                case CallChunk() | OpaqueChunk():
                    out.append(replace(chunk, slot=chunk.slot + _OWN_CALLS))
                case FinishChunk():
                    out += self.end()
                    is_over = chunk.reason == "stop" or (chunk.reason == "length" and self._answer.is_dropped)
                    is_called = self._answer.calls and is_over
                    out.append(replace(chunk, reason="tool_calls") if is_called else chunk)
                case _:
                    out.append(chunk)
        return self._skip(out) if self._skipped else out

    def _skip(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Leave out the text that was shown before; it may have been held back, and come after the first pieces."""
        out: list[Chunk] = []
        for chunk in chunks:
            if isinstance(chunk, TextChunk):
                text, self._skipped = chunk.text[self._skipped :], max(self._skipped - len(chunk.text), 0)
                if text:
                    out.append(TextChunk(text))
            else:
                self._skipped = 0 if isinstance(chunk, CallChunk) else self._skipped  # blanks before a call are dropped
                out.append(chunk)
        return out

    def _text(self, chunk: TextChunk, out: list[Chunk]) -> None:
        if self._thinking.is_over:
            self._answer.feed(chunk.text, out)
            return
        split: list[Chunk] = []
        self._thinking.feed(chunk.text, split)
        self._pass(split, out)

    def _pass(self, chunks: Sequence[Chunk], out: list[Chunk]) -> None:
        for chunk in chunks:
            if isinstance(chunk, TextChunk):
                self._answer.feed(chunk.text, out)
            else:
                out.append(chunk)

    def end(self) -> list[Chunk]:
        """End the text."""
        out: list[Chunk] = []
        if not self._is_over:
            self._is_over = True
            split: list[Chunk] = []
            self._thinking.end(split)
            self._pass(split, out)
            self._answer.end(out)
        return out


def _offer(
    request: ModelRequest, params: dict[str, Any], decoding_constraint: DecodingConstraint
) -> tuple[OfferedTools, dict[str, Any]]:
    """Return the tools that may be called, and the remaining parameters."""
    choice = params.pop("tool_choice", "auto")
    is_single = params.pop("parallel_tool_calls", True) is False
    tools = [] if choice == "none" else request.tools
    schema = params.pop("output_schema", None) if tools else None
    if tools:
        params.pop("output_mode", None)  # the prompt is the only one there is
    if not isinstance(choice, str) or (choice != "required" and choice not in {tool.name for tool in tools}):
        choice = "auto"
    return OfferedTools(
        tools, choice, schema, is_single, bool(tools and decoding_constraint), decoding_constraint == "grammar"
    ), params


async def _close(batches: AsyncIterator[Sequence[Chunk]]) -> None:
    if (aclose := getattr(batches, "aclose", None)) is not None:
        await aclose()


async def _refuse(reason: str) -> AsyncIterator[Sequence[Chunk]]:
    raise ModelError(reason, kind="request")
    yield ()  # makes this a generator: it raises when it is read, as every stream does


def _no_such(tool_format: object) -> str:
    return f"there is no tool_format called {tool_format!r}; there are: {NATIVE}, {', '.join(TOOL_FORMATS)}"


__all__ = ["NATIVE", "TOOL_FORMATS", "DecodingConstraint", "OfferedTools", "PromptedModel", "ToolFormat"]
