"""Model stream: reads chunks, assembles them into parts, and publishes deltas to readers.

This is the hot path: each chunk makes one delta and stores one piece, and nothing is copied; a part is joined once, at
its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol, cast

from msgspec.structs import replace

from everturn import failpoints, wire
from everturn.core.canonical_json import replace_surrogates
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
from everturn.core.continuation import continued_text, drop_echo
from everturn.core.deltas import CallDelta, CallProgress, Delta, Frame, ReasoningDelta, TextDelta
from everturn.core.events import FileUploadChanged, Problem, RequestRetried
from everturn.core.parts import (
    Citation,
    FilePart,
    Finish,
    Opaque,
    ProviderToolPart,
    ReasoningPart,
    StreamedPart,
    TextPart,
    ToolPart,
    Usage,
)
from everturn.core.ports import Clock
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError, TurnClosed
from everturn.running.active_turn import ActiveTurn
from everturn.running.hook_contexts import HookContext
from everturn.running.plugin_table import is_task_cancelled
from everturn.running.session_uploads import SessionUploads
from everturn.turn.provider_wait import show_wait
from everturn.turn.usage_estimate import estimate_usage, needs_token_count

PIECES_BEFORE_JOIN = 1024  # pieces of a part before they are joined


class OpenPart:
    """A part that is still growing."""

    __slots__ = ("call", "citations", "file", "given", "kind", "loose", "name", "opaque", "pieces", "provider", "size")

    def __init__(self, kind: type[Chunk], call: str = "") -> None:
        self.kind, self.call, self.name, self.given = kind, call, "", ""
        self.pieces: list[str] = []
        self.loose = PIECES_BEFORE_JOIN  # when there are this many, they are joined
        self.size = 0
        self.opaque: Opaque | None = None
        self.file: FilePart | None = None  # once its bytes are stored
        self.provider: ProviderToolPart | None = None
        self.citations: tuple[Citation, ...] = ()

    def gather(self) -> None:
        """Join the last pieces, so that a long part is held in few large strings."""
        self.pieces[self.loose - PIECES_BEFORE_JOIN :] = ["".join(self.pieces[self.loose - PIECES_BEFORE_JOIN :])]
        self.loose = len(self.pieces) + PIECES_BEFORE_JOIN

    def close(self) -> StreamedPart:
        if self.file is not None:
            return self.file
        if self.provider is not None:
            return self.provider
        text = "".join(self.pieces)
        if self.kind is CallChunk:
            return ToolPart(self.call, self.name, text, provider_id=self.given, opaque=self.opaque)
        if self.kind is TextChunk:
            size = len(text)
            return TextPart(
                text, self.opaque, tuple(made for made in self.citations if 0 <= made.start <= made.end <= size)
            )
        return ReasoningPart(text, self.opaque)


class StepAssembly:
    """The parts of one step as they arrive. `seq` is the position of the step's start, or of its last retry, in the log."""

    shows_unchecked = False  # what readers are shown is what it has

    def __init__(self, turn: str, step: int, seq: int) -> None:
        self._turn, self._step, self.seq = turn, step, seq
        self._parts: list[OpenPart] = []
        self._last: OpenPart | None = None  # the text or reasoning part that still grows
        self._slots: dict[int, int] = {}  # a call's slot -> its part
        self.unstored_files: list[tuple[OpenPart, FileChunk]] = []  # files whose bytes are not stored yet
        self.retries: list[RetryChunk] = []  # retries that are not written yet
        self.wait: WaitChunk | None = None  # the news of a wait that readers have not been told
        self.model = ""  # the model that writes it, if another than the turn's (a fallback)
        self.first_chunk_at = 0.0
        self.usage = Usage()
        self.finish: Finish | None = None

    @property
    def text(self) -> str:
        """The text of this step so far."""
        return "".join(piece for part in self._parts if part.kind is TextChunk for piece in part.pieces)

    def feed(self, chunks: Sequence[Chunk]) -> list[Frame]:
        """Add chunks, and return their deltas."""
        frames: list[Frame] = []
        turn, seq, parts = self._turn, self.seq, self._parts
        for chunk in chunks:
            kind = type(chunk)
            if kind is TextChunk or kind is ReasoningChunk:
                text = cast("TextChunk", chunk).text  # compared by identity: isinstance costs more
                if not text:
                    continue
                if not text.isascii():
                    text = replace_surrogates(text)
                part = self._last
                if part is None or part.kind is not kind:
                    part = self._last = OpenPart(kind)
                    parts.append(part)
                delta = TextDelta if kind is TextChunk else ReasoningDelta
                frames.append(delta(turn, seq, len(parts) - 1, part.size, text))
                part.pieces.append(text)
                part.size += len(text)
            elif kind is CallChunk:
                frames.append(self._grow_call(cast("CallChunk", chunk)))
            else:
                self._feed_other(chunk)
                if kind is ProviderToolChunk:
                    frames.append(_show_provider_tool(turn, cast("ProviderToolChunk", chunk).part))
        if parts and len(parts[-1].pieces) >= parts[-1].loose:
            parts[-1].gather()
        return frames

    def _grow_call(self, chunk: CallChunk) -> CallDelta:
        self._last = None
        text = chunk.arguments
        if not text.isascii():
            text = replace_surrogates(text)
        index = self._slots.get(chunk.slot)
        if index is None:
            index = self._slots[chunk.slot] = len(self._parts)
            # Everturn's own id: providers repeat theirs, leave them blank, or use them in two branches at once.
            self._parts.append(OpenPart(CallChunk, f"{self._turn}-{self._step}-{len(self._slots)}"))
        part = self._parts[index]
        if chunk.name and not part.name:
            part.name = replace_surrogates(chunk.name)
        if chunk.id and not part.given:
            part.given = replace_surrogates(chunk.id)
        delta = CallDelta(self._turn, self.seq, index, part.size, text, part.call, part.name)
        part.pieces.append(text)
        part.size += len(text)
        return delta

    def _feed_other(self, chunk: Chunk) -> None:
        match chunk:
            case OpaqueChunk():
                self._seal(chunk)
                self._last = None  # a part with an opaque payload does not grow: the next part has its own
            case TextEndChunk():
                self._last = None
            case CitationChunk(citation=citation):
                self._cite(_clean_citation(citation), self._parts if chunk.in_answer else self._parts[-1:])
            case ProviderToolChunk(is_started=True):
                pass
            case ProviderToolChunk(part=made):
                self._last = None
                self._parts.append(OpenPart(ProviderToolChunk))
                self._parts[-1].provider = _clean_provider_part(made)
            case FileChunk():
                self._last = OpenPart(FileChunk)
                self._parts.append(self._last)
                self.unstored_files.append((self._last, chunk))
            case RetryChunk():
                if self._parts:
                    raise ModelError("a model may retry a request only before its first content", kind="model")
                self.retries.append(chunk)
            case WaitChunk():
                self.wait = chunk
            case UsageChunk(usage=usage):
                self.usage = usage.clamped()
            case FinishChunk(reason=reason):
                # These two are reserved for the runtime.
                self.finish = "other" if reason in ("cancelled", "error") else reason
            case _:
                pass

    def _cite(self, citation: Citation, parts: Sequence[OpenPart]) -> None:
        """Add a citation to the last text part or, of several, to every one that its range touches."""
        at = 0
        for part in parts:
            if part.kind is not TextChunk:
                continue
            start, end = max(citation.start - at, 0), min(citation.end - at, part.size)
            if len(parts) == 1:
                part.citations = (*part.citations, citation)
            elif start < end:
                part.citations = (*part.citations, replace(citation, start=start, end=end))
            at += part.size

    def _seal(self, chunk: OpaqueChunk) -> None:
        if chunk.part == "call":
            if (index := self._slots.get(chunk.slot)) is not None:
                self._parts[index].opaque = chunk.opaque
            return
        kind = TextChunk if chunk.part == "text" else ReasoningChunk
        last = self._parts[-1] if self._parts else None
        if last is None or (chunk.part != "last" and (last.kind is not kind or last.opaque is not None)):
            self._parts.append(OpenPart(kind))
        self._parts[-1].opaque = chunk.opaque

    async def write_retries(self, run: ActiveTurn) -> float:
        """Write the retries that were announced, and return the seconds until the last of them.

        Deltas then start at the event: a reader that has read the log up to there expects them at that position.
        """
        seconds = 0.0
        while self.retries:
            chunk = self.retries[0]
            seconds = max(chunk.seconds, 0.0)
            retried = RequestRetried(
                turn=self._turn,
                at=run.now(),
                step=self._step,
                attempt=chunk.attempt,
                attempts=chunk.attempts,
                problem=Problem(chunk.kind, replace_surrogates(chunk.reason)),
                seconds=seconds,
                model=replace_surrogates(chunk.model),
            )
            self.seq = await run.commit([retried])
            self.model = retried.model or self.model
            del self.retries[0]
        return seconds

    def open_parts(self) -> Sequence[OpenPart]:
        """The parts so far, as they grow."""
        return self._parts

    async def store_files(self, put_blob: Callable[[bytes], Awaitable[str]]) -> None:
        """Store the bytes of the files that arrived as blobs."""
        while self.unstored_files:
            part, chunk = self.unstored_files[0]
            blob = await put_blob(chunk.data)
            part.file = FilePart(
                blob, replace_surrogates(chunk.media_type), len(chunk.data), replace_surrogates(chunk.name)
            )
            del self.unstored_files[0]

    def parts(self) -> tuple[StreamedPart, ...]:
        """The parts so far, joined; a file that is not stored yet is left out."""
        unstored = [part for part, _ in self.unstored_files]
        return tuple(part.close() for part in self._parts if part not in unstored)


def _show_provider_tool(turn: str, part: ProviderToolPart) -> CallProgress:
    """Show that the provider runs a tool, or that it is done: the request waits for it as for a rate limit."""
    text = f"{part.name} {part.title}".strip() if part.state == "called" else ""
    return CallProgress(turn, "", replace_surrogates(text))


def _clean_citation(citation: Citation) -> Citation:
    return replace(
        citation,
        source=replace_surrogates(citation.source),
        title=replace_surrogates(citation.title),
        quote=replace_surrogates(citation.quote),
    )


def _clean_provider_part(part: ProviderToolPart) -> ProviderToolPart:
    return replace(
        part,
        name=replace_surrogates(part.name),
        id=replace_surrogates(part.id),
        title=replace_surrogates(part.title),
        text=replace_surrogates(part.text),
    )


class AnswerDraft:
    """The answer that is being streamed, as `on_stream_chunk` sees it: it can be read, and refuses assignment."""

    __slots__ = ("_assembly",)

    def __init__(self, assembly: StepAssembly) -> None:
        object.__setattr__(self, "_assembly", assembly)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._assembly, name)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: readers have been shown what has arrived."""
        raise AttributeError(
            f"message.{name} cannot be assigned in on_stream_chunk: the answer is still arriving, and its readers have "
            "seen what there is; change a message in on_message_append, or add one in on_after_request with "
            "ctx.append_message(…)"
        )


class StreamTimeout:
    """Timeouts of a stream: until the first chunk, between two chunks, and in total. It cancels the reading task."""

    def __init__(self, clock: Clock, first: float, idle: float, total: float) -> None:
        self._now, self._later, self._idle = clock.now, clock.call_later, idle
        self._task = asyncio.current_task()
        self._first = self._limit = first
        self._last = clock.now()
        self._end = self._last + total
        self._waiting_since = 0.0
        self.cancellations = 0
        self.is_paused = False
        self._timer = clock.call_later(min(first, idle, total), self._look)

    def reset(self) -> None:
        """Record a chunk. It only reads the clock; the timer checks by itself."""
        self._last = self._now()
        self._limit = self._idle

    def wait_for_retry(self, seconds: float) -> None:
        """Allow the wait before another attempt, which then has the time of a first chunk again."""
        self._last = self._now() + seconds
        self._limit = self._first
        self._end += seconds

    def wait_for_limit(self, is_over: bool) -> None:
        """Do not count the time that a request waits for a rate limit: it is not sent yet."""
        now = self._now()
        if self._waiting_since:
            self._end += now - self._waiting_since
        self._waiting_since = 0.0 if is_over else now
        self._last, self._limit = now, self._first

    def _look(self) -> None:
        remaining = self._idle if self.is_paused else min(self._last + self._limit, self._end) - self._now()
        if remaining > 0:
            self._timer = self._later(min(remaining, self._idle), self._look)
        elif self._task is not None:
            self.cancellations += 1
            self._task.cancel()
            self._timer = self._later(self._idle, self._look)  # again, for a model that swallowed the cancellation

    def undo_cancellations(self) -> bool:
        """Undo its own cancellations; False if the task was also cancelled by other code."""
        assert self._task is not None
        remaining = 0
        for _ in range(self.cancellations):
            remaining = self._task.uncancel()
        return remaining == 0

    @property
    def is_over(self) -> bool:
        """Whether the total time has passed."""
        return self._now() >= self._end

    def stop(self) -> None:
        """Stop watching."""
        self._timer.cancel()


class StreamFilter(Protocol):
    """What stands between a model's stream and everything that reads it."""

    def received_parts(self) -> tuple[StreamedPart, ...]:
        """What the model wrote so far."""
        ...

    def filter(
        self, batches: AsyncIterator[Sequence[Chunk]], watchdog: StreamTimeout
    ) -> AsyncIterator[Sequence[Chunk]]:
        """Pass on what may be seen; an empty batch says that the stream is alive."""
        ...


async def stream_step(
    run: ActiveTurn, request: ModelRequest, assembly: StepAssembly, check: StreamFilter | None = None
) -> None:
    """Read a step's stream to its end, through a check if there is one.

    Raises:
        ModelError: the stream failed, timed out, or ended without a `FinishChunk`.
    """
    settings, clock = run.setup.settings, run.setup.clock
    listeners = run.setup.hooks["on_stream_chunk"]
    publish, turn, feed = run.setup.bus.publish, run.turn, assembly.feed
    watchdog = StreamTimeout(clock, settings.first_chunk_timeout, settings.idle_timeout, settings.step_timeout)
    batches: AsyncIterator[Sequence[Chunk]] | None = None
    try:
        failpoints.hit_failpoint("model.request")
        batches = _open_stream(run, request)
        batches = batches if check is None else check.filter(batches, watchdog)
        async for batch in batches:
            watchdog.reset()
            if run.is_closed:
                raise TurnClosed(f"turn {turn} has ended; its model stream was abandoned")
            frames = feed(batch)
            if assembly.unstored_files or assembly.retries or assembly.wait is not None:
                frames = await _write_first(run, assembly, frames, watchdog)
            if frames:
                assembly.first_chunk_at = assembly.first_chunk_at or clock.now()
                publish(turn, frames)
                failpoints.hit_failpoint("model.chunk")
            if listeners:
                watchdog.is_paused = True
                await _call_listeners(run, listeners, batch, assembly)
                watchdog.is_paused = False
                watchdog.reset()
    except TypeError as error:
        # A common mistake in a first model adapter.
        raise ModelError(
            f"a model's `stream` is an async generator of batches (lists) of chunks: {error}", kind="model"
        ) from error
    except asyncio.CancelledError:
        if not is_task_cancelled():
            raise ModelError("the model's stream was cancelled from within", kind="model") from None
        if not watchdog.cancellations or run.is_cancelled or not watchdog.undo_cancellations():
            raise
        failure = "took too long" if watchdog.is_over else "fell silent"
        raise ModelError(f"the model's stream {failure} and was given up", kind="stalled", retryable=True) from None
    finally:
        watchdog.stop()
        if not (assembly.usage.input or assembly.usage.output) and needs_token_count(run):
            received = assembly.parts() if check is None else check.received_parts()
            assembly.usage = estimate_usage(assembly.usage, request, received)
        await close_stream(batches)
    failpoints.hit_failpoint("model.end")
    if assembly.finish is None:
        raise ModelError("the model's stream ended without finishing", kind="truncated", retryable=True)


def _open_stream(run: ActiveTurn, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
    request.sender = run.sender
    if request.files and wire.can_write(FileUploadChanged):  # otherwise files are sent inline
        run.uploads = run.uploads or SessionUploads(run)
        request.uploads = run.uploads
    batches, text = run.model.stream(request), continued_text(request)
    return batches if text is None else drop_echo(batches, text)


async def _write_first(
    run: ActiveTurn, assembly: StepAssembly, frames: list[Frame], watchdog: StreamTimeout
) -> list[Frame]:
    """Write the files and retries of a batch before its deltas are published, and return those."""
    if assembly.wait is not None:
        wait, assembly.wait = assembly.wait, None
        await show_wait(run, wait, watchdog)
        return frames
    watchdog.is_paused = True  # a slow disk is not a silent model, and neither is a slow plugin
    if assembly.unstored_files:  # before later parts are published, because parts are numbered
        await assembly.store_files(run.setup.store.put_blob)
    seconds = await assembly.write_retries(run) if assembly.retries else None
    watchdog.is_paused = False
    if seconds is None:
        watchdog.reset()
        return frames
    watchdog.wait_for_retry(seconds)
    return [replace(frame, seq=assembly.seq) for frame in frames if isinstance(frame, Delta)]


async def _call_listeners(
    run: ActiveTurn, listeners: Sequence[tuple[str, Callable[..., Any]]], batch: Sequence[Chunk], assembly: StepAssembly
) -> None:
    ctx, draft = HookContext(run), AnswerDraft(assembly)
    for chunk in batch:
        for plugin, method in listeners:
            await run.call_hook(plugin, "on_stream_chunk", method, ctx, chunk, draft)


async def close_stream(batches: AsyncIterator[Sequence[Chunk]] | None) -> None:
    """Close the stream at once: left to the garbage collector, the provider would continue to generate."""
    aclose = getattr(batches, "aclose", None)
    if aclose is not None:
        await aclose()
