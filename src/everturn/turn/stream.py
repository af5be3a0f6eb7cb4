"""Chunks → parts and, on the way, deltas for whoever watches. This is the hot path: per chunk one delta is made, one
piece is kept, and nothing is copied; a part is joined once, at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, cast

from everturn import faults
from everturn.core.canonical import clean
from everturn.core.chunks import (
    CallChunk,
    Chunk,
    FileChunk,
    FinishChunk,
    OpaqueChunk,
    ReasoningChunk,
    TextChunk,
    UsageChunk,
)
from everturn.core.deltas import CallDelta, Frame, ReasoningDelta, TextDelta
from everturn.core.parts import FilePart, Finish, Opaque, ReasoningPart, StreamedPart, TextPart, ToolPart, Usage
from everturn.core.ports import Clock
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError, TurnClosed
from everturn.turn.contexts import Context
from everturn.turn.estimating import counts_tokens, estimated
from everturn.turn.hookup import is_cancelling
from everturn.turn.run import Run

PIECES = 1024  # of a part, kept one by one before they are joined


class _Open:
    """A part that is still growing."""

    __slots__ = ("call", "file", "given", "kind", "loose", "name", "opaque", "pieces", "size")

    def __init__(self, kind: type[Chunk], call: str = "") -> None:
        self.kind, self.call, self.name, self.given = kind, call, "", ""
        self.pieces: list[str] = []
        self.loose = PIECES  # when there are this many, they are joined
        self.size = 0
        self.opaque: Opaque | None = None
        self.file: FilePart | None = None  # once its bytes are kept

    def gather(self) -> None:
        """Join the pieces that came last, so that a long part is kept in pages and not in crumbs."""
        self.pieces[self.loose - PIECES :] = ["".join(self.pieces[self.loose - PIECES :])]
        self.loose = len(self.pieces) + PIECES

    def close(self) -> StreamedPart:
        if self.file is not None:
            return self.file
        text = "".join(self.pieces)
        if self.kind is CallChunk:
            return ToolPart(self.call, self.name, text, given=self.given, opaque=self.opaque)
        return (TextPart if self.kind is TextChunk else ReasoningPart)(text, self.opaque)


class Assembly:
    """The parts of one step as they arrive. `seq` is where the step began in the log."""

    def __init__(self, turn: str, step: int, seq: int) -> None:
        self._turn, self._step, self._seq = turn, step, seq
        self._parts: list[_Open] = []
        self._last: _Open | None = None  # the text or reasoning that goes on growing
        self._slots: dict[int, int] = {}  # a call's slot -> its part
        self.unkept: list[tuple[_Open, FileChunk]] = []  # files whose bytes nobody has kept yet
        self.usage = Usage()
        self.finish: Finish | None = None

    @property
    def text(self) -> str:
        """The text of this step so far."""
        return "".join(piece for part in self._parts if part.kind is TextChunk for piece in part.pieces)

    def feed(self, chunks: Sequence[Chunk]) -> list[Frame]:
        """Take chunks in, and say what they show."""
        frames: list[Frame] = []
        turn, seq, parts = self._turn, self._seq, self._parts
        for chunk in chunks:
            kind = type(chunk)
            if kind is TextChunk or kind is ReasoningChunk:
                text = cast("TextChunk", chunk).text  # told apart by identity: isinstance costs more
                if not text:
                    continue
                if not text.isascii():
                    text = clean(text)
                part = self._last
                if part is None or part.kind is not kind:
                    part = self._last = _Open(kind)
                    parts.append(part)
                delta = TextDelta if kind is TextChunk else ReasoningDelta
                frames.append(delta(turn, seq, len(parts) - 1, part.size, text))
                part.pieces.append(text)
                part.size += len(text)
            elif kind is CallChunk:
                frames.append(self._grow_call(cast("CallChunk", chunk)))
            else:
                self._feed_other(chunk)
        if parts and len(parts[-1].pieces) >= parts[-1].loose:
            parts[-1].gather()
        return frames

    def _grow_call(self, chunk: CallChunk) -> CallDelta:
        self._last = None
        text = chunk.arguments
        if not text.isascii():
            text = clean(text)
        at = self._slots.get(chunk.slot)
        if at is None:
            at = self._slots[chunk.slot] = len(self._parts)
            # Our own id: providers repeat theirs, leave them blank, or use them in two branches at once.
            self._parts.append(_Open(CallChunk, f"{self._turn}-{self._step}-{len(self._slots)}"))
        part = self._parts[at]
        if chunk.name and not part.name:
            part.name = clean(chunk.name)
        if chunk.id and not part.given:
            part.given = clean(chunk.id)
        delta = CallDelta(self._turn, self._seq, at, part.size, text, part.call, part.name)
        part.pieces.append(text)
        part.size += len(text)
        return delta

    def _feed_other(self, chunk: Chunk) -> None:
        match chunk:
            case OpaqueChunk():
                self._seal(chunk)
                self._last = None  # what is sealed does not grow: the next thought has a seal of its own
            case FileChunk():
                self._last = _Open(FileChunk)
                self._parts.append(self._last)
                self.unkept.append((self._last, chunk))
            case UsageChunk(usage=usage):
                self.usage = usage.clamped()
            case FinishChunk(reason=reason):
                # These two are ours to say: a model that says them means something else.
                self.finish = "other" if reason in ("cancelled", "error") else reason
            case _:
                pass

    def _seal(self, chunk: OpaqueChunk) -> None:
        if chunk.part == "call":
            if (at := self._slots.get(chunk.slot)) is not None:
                self._parts[at].opaque = chunk.opaque
            return
        kind = TextChunk if chunk.part == "text" else ReasoningChunk
        last = self._parts[-1] if self._parts else None
        if last is None or (chunk.part != "last" and (last.kind is not kind or last.opaque is not None)):
            self._parts.append(_Open(kind))
        self._parts[-1].opaque = chunk.opaque

    async def keep(self, put_blob: Callable[[bytes], Awaitable[str]]) -> None:
        """Keep the bytes of the files that came, and only their names here."""
        while self.unkept:
            part, chunk = self.unkept[0]
            blob = await put_blob(chunk.data)
            part.file = FilePart(blob, clean(chunk.media_type), len(chunk.data), clean(chunk.name))
            del self.unkept[0]

    def parts(self) -> tuple[StreamedPart, ...]:
        """What has arrived so far, joined; a file that is not kept has not arrived."""
        lost = [part for part, _ in self.unkept]
        return tuple(part.close() for part in self._parts if part not in lost)


class Watchdog:
    """Ends a stream that is silent for too long, until its first chunk or between any two, or never ends at all."""

    def __init__(self, clock: Clock, first: float, idle: float, total: float) -> None:
        self._now, self._later, self._idle = clock.now, clock.call_later, idle
        self._task = asyncio.current_task()
        self._limit = first
        self._last = clock.now()
        self._end = self._last + total
        self.bites = 0
        self.is_off = False
        self._timer = clock.call_later(min(first, idle, total), self._look)

    def heard(self) -> None:
        """Something came: reading the clock is all it costs, the timer finds out by itself."""
        self._last = self._now()
        self._limit = self._idle

    def _look(self) -> None:
        left = self._idle if self.is_off else min(self._last + self._limit, self._end) - self._now()
        if left > 0:
            self._timer = self._later(min(left, self._idle), self._look)
        elif self._task is not None:
            self.bites += 1
            self._task.cancel()
            self._timer = self._later(self._idle, self._look)  # a model that swallowed it is told again

    def forgive(self) -> bool:
        """Take the cancellations back that were its own; false if somebody else cancelled, too."""
        assert self._task is not None
        left = 0
        for _ in range(self.bites):
            left = self._task.uncancel()
        return left == 0

    @property
    def is_over(self) -> bool:
        """Whether all the time there was has passed."""
        return self._now() >= self._end

    def off(self) -> None:
        """Stop watching."""
        self._timer.cancel()


async def stream(run: Run, request: ModelRequest, assembly: Assembly) -> None:
    """Read a step's stream to its end.

    Raises:
        ModelError: it failed, fell silent, or ended without saying that it was finished.
    """
    settings, clock = run.setup.settings, run.setup.clock
    listeners = run.setup.hooks["on_stream_chunk"]
    publish, turn, feed = run.setup.bus.publish, run.turn, assembly.feed
    watchdog = Watchdog(clock, settings.first_chunk_timeout, settings.idle_timeout, settings.step_timeout)
    batches: AsyncIterator[Sequence[Chunk]] | None = None
    try:
        faults.hit("model.request")
        batches = run.model.stream(request)
        async for batch in batches:
            watchdog.heard()
            if run.is_closed:
                raise TurnClosed(f"turn {turn} is over; its model was left behind")
            frames = feed(batch)
            if assembly.unkept:  # before anything after them is shown, for parts are counted
                watchdog.is_off = True  # a slow disk is not a silent model, and neither is a slow plugin
                await assembly.keep(run.setup.store.put_blob)
                watchdog.is_off = False
                watchdog.heard()
            if frames:
                publish(turn, frames)
                faults.hit("model.chunk")
            if listeners:
                watchdog.is_off = True
                await _tell(run, listeners, batch, assembly)
                watchdog.is_off = False
                watchdog.heard()
    except TypeError as error:
        # Likely the first mistake of whoever writes a model.
        raise ModelError(
            f"a model's `stream` is an async generator of batches (lists) of chunks: {error}", kind="model"
        ) from error
    except asyncio.CancelledError:
        if not is_cancelling():
            raise ModelError("the model's stream was cancelled from within", kind="model") from None
        if not watchdog.bites or run.is_cancelled or not watchdog.forgive():
            raise
        what = "took too long" if watchdog.is_over else "fell silent"
        raise ModelError(f"the model's stream {what} and was given up", kind="stalled", retryable=True) from None
    finally:
        watchdog.off()
        if not (assembly.usage.input or assembly.usage.output) and counts_tokens(run):
            assembly.usage = estimated(assembly.usage, request, assembly.parts())
        await _close(batches)
    faults.hit("model.end")
    if assembly.finish is None:
        raise ModelError("the model's stream ended without finishing", kind="truncated", retryable=True)


async def _tell(
    run: Run, listeners: Sequence[tuple[str, Callable[..., Any]]], batch: Sequence[Chunk], assembly: Assembly
) -> None:
    ctx = Context(run)
    for chunk in batch:
        for plugin, method in listeners:
            await run.call_hook(plugin, "on_stream_chunk", method, ctx, chunk, assembly)


async def _close(batches: AsyncIterator[Sequence[Chunk]] | None) -> None:
    """Close the stream at once: left to the garbage collector, the provider would go on writing."""
    aclose = getattr(batches, "aclose", None)
    if aclose is not None:
        await aclose()
