"""Frames ⇄ messages, and ids → subjects. Pure.

A message is the age of its step in milliseconds, and the frames as JSON: `1250[{...}]`. The age is how far back a node
that comes late must look in the stream; 0 means that this message is where to begin. A message without frames closes
the turn.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final, cast

from msgspec.structs import replace

from everturn import wire
from everturn.core.deltas import (
    PARTS_LIMIT,
    UNSEEN,
    CallProgress,
    Delta,
    DriverGone,
    Frame,
    LogMoved,
    ReasoningDelta,
    TextDelta,
    merge,
)
from everturn.errors import UnreadableLog

LOOK_AGAIN: Final = LogMoved(2**63 - 1)
"""Read the log again, wherever you are: something may have been missed. A position beyond any."""

CLOSING: Final = b"0[]"
AGE_DIGITS = 10  # four months in milliseconds: more than any stream keeps, and dates can be reckoned with it
TOKEN_LIMIT = 180  # characters: a longer id goes by its hash, for a server bounds the line a subject stands in
_is_plain = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_is_odd = re.compile(r"[^A-Za-z0-9_-]")


def token(name: str) -> str:
    """A name as one token of a subject: no dot, wildcard or space of it means anything, and no two names are one."""
    if _is_plain(name) is None:
        name = "=" + _is_odd.sub(lambda odd: f"={odd[0].encode('utf-8', 'surrogatepass').hex()}=", name)
    if len(name) > TOKEN_LIMIT:
        return "==" + hashlib.sha256(name.encode()).hexdigest()
    return name


def resend_subject(prefix: str) -> str:
    """Where a node asks whoever drives a turn to send its step so far once more; the message is the turn's id."""
    return f"{prefix}.r"


def tidy(frames: Sequence[Frame]) -> list[Frame]:
    """Frames as they leave a process: deltas that go on are one, and what a tool said keeps its place."""
    if (whole := _in_one(frames)) is not None:
        return [whole]
    tidied: list[Frame] = []
    start = 0
    for at, frame in enumerate(frames):
        if type(frame) is CallProgress:
            tidied += merge(frames[start:at])
            tidied.append(frame)
            start = at + 1
    tidied += merge(frames[start:] if start else frames)
    return [frame for frame in tidied if type(frame) is not DriverGone]


def _in_one(frames: Sequence[Frame]) -> Frame | None:
    """What `merge` makes of text that goes on, which is what nearly all frames are; a third of its cost."""
    first = frames[0]
    kind = type(first)
    if kind is not TextDelta and kind is not ReasoningDelta:
        return None
    first = cast("TextDelta", first)
    turn, seq, part, at = first.turn, first.seq, first.part, first.offset
    texts: list[str] = []
    for frame in cast("Sequence[TextDelta]", frames):
        if type(frame) is not kind or frame.offset != at or frame.part != part or frame.seq != seq:
            return None
        text = frame.text
        texts.append(text)
        at += len(text)
    return kind(turn, seq, part, first.offset, "".join(texts))


def pack(frames: Sequence[Frame], age: int, limit: int) -> list[bytes]:
    """Write frames as messages, none longer than `limit`; what cannot be cut that small is left to the log."""
    data = b"%d%b" % (age, wire.dump_frames(frames))
    if len(data) <= limit:
        return [data]
    if len(frames) > 1:
        middle = len(frames) // 2
        pieces = frames[:middle], frames[middle:]
    elif isinstance(frames[0], Delta) and len(frames[0].text) > 1:
        pieces = _halves(frames[0])
    else:
        return []
    return [*pack(pieces[0], age, limit), *pack(pieces[1], max(age, 1), limit)]


def _halves(delta: Delta) -> tuple[list[Frame], list[Frame]]:
    middle = len(delta.text) // 2
    first = replace(delta, text=delta.text[:middle])
    second = replace(delta, text=delta.text[middle:], offset=delta.offset + middle)
    return [cast("Frame", first)], [cast("Frame", second)]


def age_of(data: bytes) -> int:
    """How many milliseconds before this message its step began.

    Raises:
        UnreadableLog: it is not a message of ours.
    """
    age, bracket, _ = data.partition(b"[")
    if not bracket or not age.isdigit() or len(age) > AGE_DIGITS:
        raise UnreadableLog("this is not a message of the live edge")
    return int(age)


def unpack(data: bytes) -> list[Frame]:
    """Read a message.

    Raises:
        UnreadableLog: it is not a message of ours.
    """
    at = data.find(b"[")
    return wire.load_frames(data[at:] if at > 0 else b"")


def sound(frames: Sequence[Frame], turn: str) -> list[Frame]:
    """The frames that a driver of this turn could have sent; whoever reaches the server can send others."""
    return [frame for frame in frames if _is_sound(frame, turn)]


def _is_sound(frame: Frame, turn: str) -> bool:
    if isinstance(frame, Delta):
        return (
            frame.turn == turn
            and 0 <= frame.part < PARTS_LIMIT
            and 0 <= frame.offset < LOOK_AGAIN.seq
            and 0 <= frame.seq < LOOK_AGAIN.seq
        )
    if isinstance(frame, LogMoved):
        return 0 <= frame.seq <= LOOK_AGAIN.seq
    return isinstance(frame, CallProgress) and frame.turn == turn


class Sieve:
    """Lets through what a channel has not been shown. One for a channel, where messages may come twice."""

    def __init__(self) -> None:
        self._step = self._moved = 0
        self._ends: dict[int, int] = {}

    def fresh(self, frames: Sequence[Frame]) -> list[Frame]:
        """What is new of these frames."""
        kept: list[Frame] = []
        for frame in frames:
            if isinstance(frame, Delta):
                if frame.seq == self._step and self._ends.get(frame.part) == frame.offset and frame.text:
                    self._ends[frame.part] += len(frame.text)  # what nearly every delta is like
                    kept.append(frame)
                elif (piece := self._new_of(frame)) is not None:
                    kept.append(cast("Frame", piece))
            elif isinstance(frame, LogMoved):
                if frame.seq > self._moved:
                    kept.append(frame)
                    if frame != LOOK_AGAIN:
                        self._moved = frame.seq
            elif isinstance(frame, CallProgress):
                kept.append(frame)
        return kept

    def _new_of(self, delta: Delta) -> Delta | None:
        if delta.seq != self._step:
            if delta.seq < self._step:
                return None
            self._step, self._ends = delta.seq, {}
            self._moved = max(self._moved, delta.seq)  # a step streams once the log has moved to its beginning
        have = self._ends.get(delta.part, UNSEEN)
        end = delta.offset + len(delta.text)
        if end <= have:
            return None
        if delta.offset > max(have, 0):
            # After a gap. Some reader may have seen more than this channel; and what fills the gap must still pass.
            return delta
        self._ends[delta.part] = end
        if delta.offset >= have:
            return delta
        return replace(delta, offset=have, text=delta.text[have - delta.offset :])
