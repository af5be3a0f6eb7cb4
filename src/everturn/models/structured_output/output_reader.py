"""Output reader: makes the JSON of the answer the text of the stream, in whichever mode the model was asked for it.

In mode `tool` the arguments of the output tool become the text, and the finish reason "stop": nobody above sees a call.
What the model says before that call is reasoning. It is held back until it is known what follows, for what was streamed
as text cannot be taken back. Calls of ordinary tools stay calls.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from everturn.core.chunks import CallChunk, Chunk, FinishChunk, OpaqueChunk, ReasoningChunk, TextChunk
from everturn.errors import ModelError
from everturn.models.structured_output.json_text import JsonTextFilter


class OutputReader:
    """Reads the chunks of one answer. `key` is that of the wrapper, if there is one, and `tool` the output tool."""

    def __init__(self, key: str = "", tool: str = "") -> None:
        self._key, self._tool = key, tool
        self._text = JsonTextFilter(key)
        self._held: list[Chunk] = []  # text that may stand before a call
        self._slots: dict[int, bool] = {}  # slots of calls -> whether the call is an answer
        self._answer = -1  # the slot that is the answer
        self._has_calls = self._has_text = self._is_over = False

    def feed(self, batch: Sequence[Chunk]) -> list[Chunk]:
        """Read a batch."""
        out: list[Chunk] = []
        for chunk in batch:
            match chunk:
                case TextChunk():
                    self._say(chunk, out)
                case CallChunk():
                    self._call(chunk, out)
                case OpaqueChunk():
                    self._opaque(chunk, out)
                case FinishChunk():
                    out += self.end()
                    is_answer = self._answer >= 0 and not self._has_calls and chunk.reason == "tool_calls"
                    out.append(replace(chunk, reason="stop") if is_answer else chunk)
                case _:
                    out.append(chunk)
        return out

    def end(self) -> list[Chunk]:
        """End the answer: what was held back is passed on."""
        out: list[Chunk] = []
        if self._is_over:
            return out
        self._is_over = True
        if self._answer >= 0:
            self._pass(self._text.end(), out)
            if not self._has_text:
                out.append(TextChunk("{}"))  # some send nothing for an object without properties
            return out
        for chunk in self._held:  # no call followed: the model has written its answer instead
            if isinstance(chunk, TextChunk) and not self._has_calls:
                self._pass(self._text.feed(chunk.text), out)
            else:
                out.append(chunk)
        self._held = []
        self._pass(self._text.end(), out)
        return out

    def _say(self, chunk: TextChunk, out: list[Chunk]) -> None:
        if not self._tool:
            self._pass(self._text.feed(chunk.text), out)
        elif self._answer < 0:
            self._held.append(chunk)

    def _call(self, chunk: CallChunk, out: list[Chunk]) -> None:
        if chunk.slot not in self._slots:
            is_answer = self._slots[chunk.slot] = bool(self._tool) and chunk.name == self._tool
            if is_answer and self._answer < 0:
                self._answer = chunk.slot
                out += [ReasoningChunk(held.text) for held in self._held if isinstance(held, TextChunk) and held.text]
            elif not is_answer:
                self._has_calls = True
                out += self._held
                if not self._text.has_begun and self._answer < 0:
                    self._pass(self._text.end(), out)
                    self._text = JsonTextFilter(self._key)
            self._held = self._held if is_answer and self._answer != chunk.slot else []
        if chunk.slot == self._answer:
            self._pass(self._text.feed(chunk.arguments), out)
        elif not self._slots[chunk.slot]:  # a second answer is dropped
            out.append(chunk)

    def _opaque(self, chunk: OpaqueChunk, out: list[Chunk]) -> None:
        """Drop the payload of the output tool's call: there is no call that it could be sent back with."""
        if chunk.part == "call" and self._slots.get(chunk.slot):
            return
        if chunk.part == "last" and self._answer >= 0 and not self._has_calls:
            return
        if self._held and chunk.part in ("last", "text"):
            self._held.append(chunk)
        else:
            out.append(chunk)

    def _pass(self, text: str, out: list[Chunk]) -> None:
        if text:
            self._has_text = True
            out.append(TextChunk(text))


async def read_output(
    reader: OutputReader | None, batches: AsyncGenerator[Sequence[Chunk]]
) -> AsyncGenerator[Sequence[Chunk]]:
    """Read the batches of a stream. What was held back of one that breaks off had been received, and is passed on."""
    async with aclosing(batches):
        try:
            async for batch in batches:
                yield batch if reader is None else reader.feed(batch)
        except ModelError:
            if reader is not None and (held := reader.end()):
                yield held
            raise
    if reader is not None and (held := reader.end()):
        yield held
