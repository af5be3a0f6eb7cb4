"""Live deltas: the pieces of a step that is still streaming, and a reader that shows every character exactly once.

A delta belongs to the step that began at `seq` in the log (or whose request was last retried there), and starts at `offset` inside part number `part`. A finished
step holds the same characters, so a reader that missed deltas (it came late, it was slow, the driver died) takes the
missing rest from the log. `TurnReader` implements that rule without I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.events import Entry, Event, RequestRetried, StepFinished, StepInterrupted, StepRestarted, StepStarted
from everturn.core.parts import FilePart, ProviderToolPart, ReasoningPart, StreamedPart, TextPart

CURSOR_LIMIT = 65_536  # characters of a cursor
PARTS_LIMIT = 256
"""Parts of a step that are shown while they stream. A cursor has an offset for each of them, and every sent message
carries a cursor. Further parts are shown when the step ends."""
SEQ_LIMIT = 2**63 - 1
UNSEEN = -1  # nothing of a part was shown, not even that it exists


class Delta(Struct, frozen=True, gc=False, tag=True, repr_omit_defaults=True):
    """A piece of a part that is still streaming."""

    turn: str
    seq: int
    part: int
    offset: int
    text: str


class TextDelta(Delta, frozen=True, gc=False, tag=True):
    """A piece of text."""


class ReasoningDelta(Delta, frozen=True, gc=False, tag=True):
    """A piece of reasoning."""


class CallDelta(Delta, frozen=True, gc=False, tag=True):
    """A piece of a call's arguments; `text` may be empty when only the name is known."""

    call: str
    name: str


class CallProgress(Struct, frozen=True, gc=False, tag=True, repr_omit_defaults=True):
    """Progress of a running tool; shown when it happens, and never stored or repeated.

    Without a call it is about the model request of the current step: what it waits for, or "" when it waits no more.
    """

    turn: str
    call: str
    text: str


class LogAdvanced(Struct, frozen=True, gc=False, tag=True):
    """The log reached `seq`: read on there."""

    seq: int


class DriverGone(Struct, frozen=True, gc=False, tag=True):
    """The process that drove this turn has stopped driving it; the log is intact."""

    text: str


Frame = TextDelta | ReasoningDelta | CallDelta | CallProgress | LogAdvanced | DriverGone
TurnItem = Event | Delta | CallProgress
"""What a reader of a turn shows: log events, and deltas between them."""


class Cursor(Struct, frozen=True):
    """A position in a turn: the last event seen and, inside a streaming step, the offset in each part."""

    seq: int = 0
    offsets: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Write it as `12:0,345`, or `12` between steps."""
        return f"{self.seq}:{','.join(map(str, self.offsets))}" if self.offsets else str(self.seq)

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Parse what `str` wrote. Invalid text gives the beginning: cursors are untrusted input."""
        if len(text) > CURSOR_LIMIT:  # a truncated cursor would be another, wrong cursor
            return cls()
        seq, _, offsets = text.partition(":")
        try:
            seen = tuple(parse_cursor_number(offset, UNSEEN) for offset in offsets.split(",")) if offsets else ()
            return cls(parse_cursor_number(seq, 0), seen) if len(seen) <= PARTS_LIMIT else cls()
        except ValueError:
            return cls()


def parse_cursor_number(text: str, least: int) -> int:
    """A number of a cursor, which is untrusted input."""
    if len(text) > 20:
        raise ValueError(text)
    return min(max(int(text), least), SEQ_LIMIT)


def merge_frames(frames: Sequence[Frame]) -> list[Frame]:
    """Compact published frames for late subscribers: contiguous deltas of a part become one.

    Progress is left out, as it is shown only when it happens.
    """
    merged: list[Frame] = []
    run: list[Delta] = []
    for frame in (*frames, None):
        if run and not (isinstance(frame, Delta) and _is_contiguous(run[-1], frame)):
            whole = replace(run[-1], offset=run[0].offset, text="".join(delta.text for delta in run))
            merged.append(cast("Frame", whole))
            run = []
        if isinstance(frame, Delta):
            run.append(frame)
        elif isinstance(frame, LogAdvanced | DriverGone):
            merged.append(frame)
    return merged


def _is_contiguous(before: Delta, delta: Delta) -> bool:
    return (
        type(before) is type(delta)
        and (before.seq, before.part) == (delta.seq, delta.part)
        and before.offset + len(before.text) == delta.offset
    )


def missing_deltas(turn: str, seq: int, parts: Sequence[StreamedPart], seen: Sequence[int]) -> Iterator[Delta]:
    """The deltas of a finished step that a reader has not seen yet."""
    for index, part in enumerate(parts):
        shown = seen[index] if index < len(seen) else UNSEEN
        have = max(shown, 0)
        match part:
            case TextPart(text=text):
                if have < len(text):
                    yield TextDelta(turn, seq, index, have, text[have:])
            case ReasoningPart(text=text):
                if have < len(text):
                    yield ReasoningDelta(turn, seq, index, have, text[have:])
            case FilePart() | ProviderToolPart():
                pass  # the event that ends its step shows it whole
            case _:
                if have < len(part.arguments) or shown == UNSEEN:
                    yield CallDelta(turn, seq, index, have, part.arguments[have:], part.call, part.name)


class StreamingStep:
    """A streaming step: where it started, and the offset shown of each of its parts."""

    __slots__ = ("seen", "start")

    def __init__(self, start: int, seen: Iterable[int] = ()) -> None:
        self.start, self.seen = start, list(seen)

    def note(self, delta: Delta) -> None:
        """Record that a delta was shown."""
        if delta.part >= PARTS_LIMIT:
            return
        while len(self.seen) <= delta.part:
            self.seen.append(UNSEEN)
        self.seen[delta.part] = delta.offset + len(delta.text)

    def show(self, delta: Delta) -> Delta | None:
        """Show a delta, or the part of it that is new; None if it is old, of another step, or after a gap."""
        if delta.seq != self.start or delta.part >= PARTS_LIMIT:
            return None
        seen, part = self.seen, delta.part
        if part < len(seen) and seen[part] == delta.offset and delta.text:  # the common case
            seen[part] += len(delta.text)
            return delta
        shown = seen[part] if part < len(seen) else UNSEEN
        have = max(shown, 0)
        end = delta.offset + len(delta.text)
        if delta.offset > have or (end <= have and shown != UNSEEN):
            return None
        self.note(delta)
        return delta if delta.offset == have else replace(delta, offset=have, text=delta.text[have - delta.offset :])


_STEP_STARTS = frozenset((StepStarted, StepRestarted, RequestRetried))  # deltas count from these


class TurnReader:
    """Turns log entries and deltas, in whatever pieces they arrive, into what one reader of a turn shows."""

    def __init__(self, turn: str, cursor: Cursor | None = None, is_log_only: bool = False) -> None:
        cursor = cursor or Cursor()
        self.turn = turn
        self._is_log_only = is_log_only  # it shows no deltas
        self.seq = cursor.seq
        # Deltas exist only between a step's start (or its last retry) and its end: a cursor with offsets points there.
        self._step = StreamingStep(cursor.seq, cursor.offsets)

    @property
    def cursor(self) -> Cursor:
        """The position of this reader; another reader can continue from it, on any node."""
        return Cursor(self.seq, tuple(self._step.seen))

    def entry(self, entry: Entry) -> Iterable[TurnItem]:
        """Show an entry of the log, and before it the missed rest of the step that it ends."""
        if entry.seq <= self.seq:
            return ()
        event = entry.event
        kind = type(event)
        if not self._is_log_only:
            if kind in _STEP_STARTS:
                self._step = StreamingStep(entry.seq)
            elif isinstance(event, StepFinished | StepInterrupted):
                return self._end_step(entry, event)
        self.seq = entry.seq
        return (event,)

    def _end_step(self, entry: Entry, event: StepFinished | StepInterrupted) -> Iterator[TurnItem]:
        for delta in missing_deltas(self.turn, self._step.start, event.parts, tuple(self._step.seen)):
            self._step.note(delta)
            yield delta
        self._step = StreamingStep(self._step.start)
        self.seq = entry.seq
        yield event

    def delta(self, delta: Delta) -> Delta | None:
        """Show a delta, or the part of it that is new; None if it is old, of another step, or after a gap."""
        return self._step.show(delta) if self.seq == self._step.start and not self._is_log_only else None
