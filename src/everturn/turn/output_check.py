"""Output check: shows what a model writes to the `on_output` hooks before it is committed.

The check stands between the model's stream and everything that reads it. With a buffer it holds chunks back and lets
go only of those that have passed, so that deltas, other hooks, stored files and the log see nothing else. The buffer of
a step is the largest that any plugin asks for:

- `step`: all chunks wait for the end of the stream. Every plugin then checks each part whole.
- `sentence`: text and reasoning pass sentence by sentence. From the first call or file on, the rest of the step waits
  for its end.
- `none`: chunks flow. Each part is checked at the end; if a plugin changes or refuses it, readers are told to drop
  what they saw of the step (`StepRestarted`).
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from everturn.core.chunks import (
    CallChunk,
    Chunk,
    CitationChunk,
    FileChunk,
    FinishChunk,
    OpaqueChunk,
    ProviderToolChunk,
    ReasoningChunk,
    RetryChunk,
    TextChunk,
    TextEndChunk,
    UsageChunk,
    WaitChunk,
)
from everturn.core.hooks import OutputBuffer, OutputKind
from everturn.core.parts import FilePart, ProviderToolPart, ReasoningPart, StreamedPart, TextPart, Usage
from everturn.running.active_turn import ActiveTurn
from everturn.running.guardrail_contexts import check_output
from everturn.turn.stream import OpenPart, StepAssembly, StreamTimeout, close_stream

_SENTENCE_END: Final = re.compile(
    r"(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019)\]]*\s+|[\u3002\uff01\uff1f]+[\u201d\u2019\u300d\u300f\uff09]*\s*|\n+"
)


class _Refused(Exception):
    """A plugin refused the step."""


class OutputCheck:
    """The check of one step; as a partial step it has only what has passed."""

    def __init__(self, run: ActiveTurn, step: int, assembly: StepAssembly) -> None:
        self._run, self._step, self._assembly = run, step, assembly
        buffers = run.setup.hooks.output_buffers
        self._buffer: OutputBuffer = max(buffers.values(), key=("none", "sentence", "step").index)
        early = buffers if self._buffer == "step" else [name for name in buffers if buffers[name] == "sentence"]
        self._early: Final = frozenset(early)  # plugins that check before anything is let go
        self._late: Final = frozenset(buffers) - self._early  # plugins that check at the end of the step
        self._held = self._hold()  # parts that wait for the end of the step
        self._is_holding = self._buffer == "step"
        self._pending = ""  # the rest of the text or reasoning that streams, without a whole sentence
        self._kind: type[TextChunk] | type[ReasoningChunk] = TextChunk  # of that rest
        # Of which kind the last part was changed, so that a signature of it is void.
        self._changed: set[type[TextChunk] | type[ReasoningChunk]] = set()
        self._has_changed_text = False
        self._answer_citations: list[CitationChunk] = []  # whose ranges count in all text: they wait for all of it
        self._finish: FinishChunk | None = None
        self.refusal: tuple[str, str] | None = None  # its text, and the plugin

    def _hold(self) -> StepAssembly:
        return StepAssembly(self._run.turn, self._step, 0)

    # As a partial step -----------------------------------------------------------------------------------------------

    @property
    def usage(self) -> Usage:
        """The token usage so far."""
        return self._assembly.usage

    @property
    def model(self) -> str:
        """The model that writes it, if another than the turn's."""
        return self._assembly.model

    @property
    def first_chunk_at(self) -> float:
        """When its first content arrived; 0: nothing did."""
        return self._assembly.first_chunk_at

    @property
    def shows_unchecked(self) -> bool:
        """Whether readers were shown what has not passed every plugin."""
        return bool(self._late) and bool(self._assembly.parts())

    def parts(self) -> tuple[StreamedPart, ...]:
        """The parts that have passed every plugin."""
        return () if self._late else self._assembly.parts()

    def received_parts(self) -> tuple[StreamedPart, ...]:
        """What the model wrote so far, for an estimate of its tokens."""
        return (*self._assembly.parts(), *self._held.parts())

    # While it streams ------------------------------------------------------------------------------------------------

    async def filter(
        self, batches: AsyncIterator[Sequence[Chunk]], watchdog: StreamTimeout
    ) -> AsyncIterator[Sequence[Chunk]]:
        """Pass the batches of a stream on, as far as they have passed; an empty one says that the stream is alive."""
        try:
            async for batch in batches:
                if self._buffer == "none":
                    yield batch
                    continue
                watchdog.is_paused = True  # a slow plugin is not a silent model
                released = await self._feed(batch)
                watchdog.is_paused = False
                yield released
            if self._finish is not None:
                watchdog.is_paused = True
                released = [*await self._flush(), *await self._release_held()]
                released += [] if self._has_changed_text else self._answer_citations
                released.append(self._finish)
                watchdog.is_paused = False
                yield released
        except _Refused:  # the rest of the stream is not read
            watchdog.is_paused = False
            yield [FinishChunk("stop")]
        finally:
            await close_stream(batches)

    async def _feed(self, batch: Sequence[Chunk]) -> list[Chunk]:
        released: list[Chunk] = []
        for chunk in batch:
            match chunk:
                case UsageChunk() | RetryChunk() | WaitChunk() | ProviderToolChunk(is_started=True):
                    released.append(chunk)
                case FinishChunk():
                    self._finish = chunk
                case CitationChunk(in_answer=True):
                    self._answer_citations.append(chunk)
                case _ if self._is_holding:
                    self._held.feed((chunk,))
                case TextChunk(text=text) | ReasoningChunk(text=text):
                    if type(chunk) is not self._kind:
                        released += await self._flush()
                        self._kind = type(chunk)
                        self._changed.discard(self._kind)
                    self._pending += text
                    released += await self._release_sentences()
                case OpaqueChunk(part="last" | "text" | "reasoning"):
                    released += await self._seal(chunk)
                case CitationChunk() | TextEndChunk() | ProviderToolChunk():
                    released += await self._flush()
                    if not (isinstance(chunk, CitationChunk) and TextChunk in self._changed):
                        released.append(chunk)
                    self._changed.discard(TextChunk) if isinstance(chunk, TextEndChunk) else None
                case CallChunk() | FileChunk() | OpaqueChunk():
                    released += await self._flush()
                    self._is_holding = True
                    self._held.feed((chunk,))
        return released

    async def _release_sentences(self) -> list[Chunk]:
        start, released = 0, list[Chunk]()
        for end in _SENTENCE_END.finditer(self._pending):
            if end.end() < len(self._pending):  # otherwise more of the same end may follow
                released.append(await self._check_sentence(self._pending[start : end.end()]))
                start = end.end()
        self._pending = self._pending[start:]
        return released

    async def _check_sentence(self, text: str) -> Chunk:
        checked = await self._check("text" if self._kind is TextChunk else "reasoning", text)
        if checked != text:
            self._changed.add(self._kind)
            self._has_changed_text = self._has_changed_text or self._kind is TextChunk
        return self._kind(checked)

    async def _flush(self) -> list[Chunk]:
        """End the part that streams, and let its rest go."""
        rest, self._pending = self._pending, ""
        return [await self._check_sentence(rest)] if rest else []

    async def _seal(self, chunk: OpaqueChunk) -> list[Chunk]:
        released = await self._flush()
        kind = {"text": TextChunk, "reasoning": ReasoningChunk}.get(chunk.part, self._kind)
        if kind in self._changed:  # it would sign what is no longer there
            self._changed.discard(kind)
        else:
            released.append(chunk)
        return released

    async def _check(self, kind: OutputKind, text: str, tool: str = "") -> str:
        checked, self.refusal = await check_output(self._run, self._early, self._step, kind, tool, text)
        if self.refusal is not None:
            raise _Refused
        return checked

    async def _release_held(self) -> list[Chunk]:
        """Check the parts that were held back, and make chunks of them again."""
        released: list[Chunk] = []
        held, self._held = self._held, self._hold()
        files = {id(part): chunk for part, chunk in held.unstored_files}
        for slot, part in enumerate(held.open_parts()):
            if (file := files.get(id(part))) is not None:
                released.append(file)
                continue
            if part.provider is not None:
                released.append(ProviderToolChunk(part.provider))
                continue
            text = "".join(part.pieces)
            checked = await self._check(_KINDS[part.kind], text, part.name) if text else text
            self._has_changed_text = self._has_changed_text or (part.kind is TextChunk and checked != text)
            released += _chunks_of(part, slot, checked, checked != text)
        return released

    # At the end of the step ------------------------------------------------------------------------------------------

    async def conclude(self) -> tuple[tuple[StreamedPart, ...], bool]:
        """The parts to commit, and whether readers must drop what they saw of the step."""
        shown = self._assembly.parts()
        parts: list[StreamedPart] = []
        for part in shown if self.refusal is None and self._late else ():
            checked, self.refusal = await self._check_part(part)
            if self.refusal is not None:
                break
            parts.append(checked)
        if self.refusal is not None:
            return (TextPart(self.refusal[0]),), bool(shown)
        return (tuple(parts), tuple(parts) != shown) if self._late else (shown, False)

    async def _check_part(self, part: StreamedPart) -> tuple[StreamedPart, tuple[str, str] | None]:
        if isinstance(part, FilePart | ProviderToolPart):
            return part, None
        is_text = isinstance(part, TextPart | ReasoningPart)
        text = part.text if is_text else part.arguments
        if not text:
            return part, None
        kind: OutputKind = "text" if isinstance(part, TextPart) else "reasoning" if is_text else "arguments"
        tool = "" if is_text else part.name
        checked, refusal = await check_output(self._run, self._late, self._step, kind, tool, text)
        if checked == text:
            return part, refusal
        if is_text:
            changed = replace(part, text=checked, opaque=None)
            return replace(changed, citations=()) if isinstance(changed, TextPart) else changed, refusal
        return replace(part, arguments=checked, opaque=None), refusal


_KINDS: Final[dict[type[Chunk], OutputKind]] = {
    TextChunk: "text",
    ReasoningChunk: "reasoning",
    CallChunk: "arguments",
}


def _chunks_of(part: OpenPart, slot: int, text: str, is_changed: bool) -> Iterator[Chunk]:
    """The chunks that make a part; one that was changed loses its provider's payload, which may sign the old text."""
    opaque = None if is_changed else part.opaque
    if part.kind is CallChunk:
        yield CallChunk(slot, text, part.name, part.given)
        if opaque is not None:
            yield OpaqueChunk(opaque, "call", slot)
        return
    is_text = part.kind is TextChunk
    if text:
        yield TextChunk(text) if is_text else ReasoningChunk(text)
    if is_text and not is_changed:
        yield from map(CitationChunk, part.citations)
    if opaque is not None:
        yield OpaqueChunk(opaque, "last" if text else "text" if is_text else "reasoning")
