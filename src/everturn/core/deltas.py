"""The live edge: what is shown while a step streams, and how a reader sees every character exactly once.

A delta belongs to the step that began at `seq` in the log, and starts at `offset` inside part number `part`. Because a
finished step holds the same characters, a reader that missed deltas (it came late, it was slow, the driver died) is
given the missing rest out of the log: `Reader` is that rule, and it is pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.events import Entry, Event, StepFinished, StepInterrupted, StepRestarted, StepStarted
from everturn.core.parts import FilePart, ReasoningPart, StreamedPart, TextPart

CURSOR_LIMIT = 65_536  # characters of a cursor
PARTS_LIMIT = 256
"""Parts of a step that are shown while they stream. A cursor counts each of them, and every message has one: of a step
with more parts, the others are shown when it ends."""
UNSEEN = -1  # nothing of a part was shown, not even that it is there


class Delta(Struct, frozen=True, gc=False, tag=True):
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


class CallProgress(Struct, frozen=True, gc=False, tag=True):
    """What a running tool says of itself; shown when it happens, and to nobody later."""

    turn: str
    call: str
    text: str


class LogMoved(Struct, frozen=True, gc=False, tag=True):
    """The log reached `seq`: read on there."""

    seq: int


class DriverGone(Struct, frozen=True, gc=False, tag=True):
    """Nobody drives this turn any more in the process that did; its log is intact."""

    text: str


Frame = TextDelta | ReasoningDelta | CallDelta | CallProgress | LogMoved | DriverGone
Shown = Event | Delta | CallProgress
"""What a reader of a turn is shown: log events, and deltas between them."""


class Cursor(Struct, frozen=True):
    """A place in a turn: the last event seen and, inside a step that streams, how much of each part."""

    seq: int = 0
    offsets: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Write it as `12:0,345`, or `12` between steps."""
        return f"{self.seq}:{','.join(map(str, self.offsets))}" if self.offsets else str(self.seq)

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read what `str` wrote; anything else is the beginning, for a cursor comes from strangers."""
        if len(text) > CURSOR_LIMIT:  # what is left of a cursor that was cut is another one, and one that lies
            return cls()
        seq, _, offsets = text.partition(":")
        try:
            seen = tuple(_number(one, UNSEEN) for one in offsets.split(",")) if offsets else ()
            return cls(_number(seq, 0), seen) if len(seen) <= PARTS_LIMIT else cls()
        except ValueError:
            return cls()


def _number(text: str, least: int) -> int:
    """A number of a cursor, which comes from strangers."""
    if len(text) > 20:
        raise ValueError(text)
    return min(max(int(text), least), 2**63 - 1)


def merge(frames: Sequence[Frame]) -> list[Frame]:
    """Frames that were shown before, for those who come later: the deltas of a part in one where they go on.

    Progress is left out, for it is shown when it happens.
    """
    merged: list[Frame] = []
    run: list[Delta] = []
    for frame in (*frames, None):
        if run and not (isinstance(frame, Delta) and _goes_on(run[-1], frame)):
            whole = replace(run[-1], offset=run[0].offset, text="".join(delta.text for delta in run))
            merged.append(cast("Frame", whole))
            run = []
        if isinstance(frame, Delta):
            run.append(frame)
        elif isinstance(frame, LogMoved | DriverGone):
            merged.append(frame)
    return merged


def _goes_on(before: Delta, delta: Delta) -> bool:
    return (
        type(before) is type(delta)
        and (before.seq, before.part) == (delta.seq, delta.part)
        and before.offset + len(before.text) == delta.offset
    )


def rest(turn: str, seq: int, parts: Sequence[StreamedPart], seen: Sequence[int]) -> Iterator[Delta]:
    """The deltas of a finished step that a reader has not seen yet."""
    for at, part in enumerate(parts):
        shown = seen[at] if at < len(seen) else UNSEEN
        have = max(shown, 0)
        match part:
            case TextPart(text=text):
                if have < len(text):
                    yield TextDelta(turn, seq, at, have, text[have:])
            case ReasoningPart(text=text):
                if have < len(text):
                    yield ReasoningDelta(turn, seq, at, have, text[have:])
            case FilePart():
                pass  # it is shown whole, by the event that ends its step
            case _:
                if have < len(part.arguments) or shown == UNSEEN:
                    yield CallDelta(turn, seq, at, have, part.arguments[have:], part.call, part.name)


class Reader:
    """Turns log entries and deltas, in whatever pieces they come, into what one reader of a turn is shown."""

    def __init__(self, turn: str, cursor: Cursor | None = None) -> None:
        cursor = cursor or Cursor()
        self.turn = turn
        self.seq = cursor.seq
        # Deltas flow only between a step's start and its end, so a cursor with offsets stands at that start.
        self._step = cursor.seq
        self._seen = list(cursor.offsets)

    @property
    def cursor(self) -> Cursor:
        """Where this reader is; another one can go on from here, on any node."""
        return Cursor(self.seq, tuple(self._seen))

    def entry(self, entry: Entry) -> Iterator[Shown]:
        """Show an entry of the log, and before it what was missed of the step it ends."""
        if entry.seq <= self.seq:
            return
        event = entry.event
        match event:
            case StepStarted() | StepRestarted():
                self._step, self._seen = entry.seq, []
            case StepFinished(parts=parts) | StepInterrupted(parts=parts):
                for delta in rest(self.turn, self._step, parts, tuple(self._seen)):
                    self._note(delta)
                    yield delta
                self._seen = []
            case _:
                pass
        self.seq = entry.seq
        yield event

    def _note(self, delta: Delta) -> None:
        if delta.part >= PARTS_LIMIT:
            return
        while len(self._seen) <= delta.part:
            self._seen.append(UNSEEN)
        self._seen[delta.part] = delta.offset + len(delta.text)

    def delta(self, delta: Delta) -> Delta | None:
        """Show a delta, or the part of it that is new; None when it is old, void, or after a gap."""
        if delta.seq != self._step or self.seq != self._step or delta.part >= PARTS_LIMIT:
            return None
        seen, part = self._seen, delta.part
        if part < len(seen) and seen[part] == delta.offset and delta.text:  # what nearly every delta is like
            seen[part] += len(delta.text)
            return delta
        shown = seen[part] if part < len(seen) else UNSEEN
        have = max(shown, 0)
        end = delta.offset + len(delta.text)
        if delta.offset > have or (end <= have and shown != UNSEEN):
            return None
        self._note(delta)
        return delta if delta.offset == have else replace(delta, offset=have, text=delta.text[have - delta.offset :])
