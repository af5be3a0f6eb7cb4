"""Codec of the buses between processes: frames as messages, and ids as subjects. Pure.

A message is the age of its step in milliseconds, and the frames as JSON: `1250[{...}]`. The age tells how far back in the
stream a late reader must look; 0 means that it can begin with this message. A message without frames closes the turn.
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
    LogAdvanced,
    ReasoningDelta,
    TextDelta,
    merge_frames,
)
from everturn.errors import UnreadableLog

READ_LOG: Final = LogAdvanced(2**63 - 1)
"""Tells readers to read the log again, wherever they are: something may have been missed. Its position is beyond any."""

CLOSE_MESSAGE: Final = b"0[]"
AGE_DIGITS = 10  # four months in milliseconds: more than any stream keeps, and within the range of dates
TOKEN_LIMIT = (
    180  # characters: a longer id is replaced by its hash, because a server bounds the length of a protocol line
)
_is_plain = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_is_odd = re.compile(r"[^A-Za-z0-9_-]")


def subject_token(name: str) -> str:
    """A name as one token of a subject. Dots, wildcards and spaces are escaped, and distinct names stay distinct."""
    if _is_plain(name) is None:
        name = "=" + _is_odd.sub(lambda odd: f"={odd[0].encode('utf-8', 'surrogatepass').hex()}=", name)
    if len(name) > TOKEN_LIMIT:
        return "==" + hashlib.sha256(name.encode()).hexdigest()
    return name


def resend_subject(prefix: str) -> str:
    """The subject on which a node asks a turn's driver to send the step so far again; the message is the turn's id."""
    return f"{prefix}.r"


def announcement_subject(prefix: str, topic: str) -> str:
    """The subject of the announcements of a topic."""
    return f"{prefix}.a.{subject_token(topic)}"


def merge_for_send(frames: Sequence[Frame]) -> list[Frame]:
    """Merge frames before they leave a process: adjacent deltas become one, and progress reports keep their place."""
    if (single := _merge_contiguous(frames)) is not None:
        return [single]
    merged: list[Frame] = []
    start = 0
    for at, frame in enumerate(frames):
        if type(frame) is CallProgress:
            merged += merge_frames(frames[start:at])
            merged.append(frame)
            start = at + 1
    merged += merge_frames(frames[start:] if start else frames)
    return [frame for frame in merged if type(frame) is not DriverGone]


def _merge_contiguous(frames: Sequence[Frame]) -> Frame | None:
    """A fast path of `merge` for contiguous text, which is what nearly all frames are; a third of its cost."""
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
    """Encode frames as messages, none longer than `limit`; a frame that cannot be split is left to the log."""
    data = b"%d%b" % (age, wire.dump_frames(frames))
    if len(data) <= limit:
        return [data]
    if len(frames) > 1:
        middle = len(frames) // 2
        halves = frames[:middle], frames[middle:]
    elif isinstance(frames[0], Delta) and len(frames[0].text) > 1:
        halves = _split_delta(frames[0])
    else:
        return []
    return [*pack(halves[0], age, limit), *pack(halves[1], max(age, 1), limit)]


def _split_delta(delta: Delta) -> tuple[list[Frame], list[Frame]]:
    middle = len(delta.text) // 2
    first = replace(delta, text=delta.text[:middle])
    second = replace(delta, text=delta.text[middle:], offset=delta.offset + middle)
    return [cast("Frame", first)], [cast("Frame", second)]


def age_of(data: bytes) -> int:
    """How many milliseconds before this message its step began.

    Raises:
        UnreadableLog: this is not a message of ours.
    """
    age, bracket, _ = data.partition(b"[")
    if not bracket or not age.isdigit() or len(age) > AGE_DIGITS:
        raise UnreadableLog("this is not a message of the bus")
    return int(age)


def unpack(data: bytes) -> list[Frame]:
    """Decode a message.

    Raises:
        UnreadableLog: this is not a message of ours.
    """
    at = data.find(b"[")
    return wire.load_frames(data[at:] if at > 0 else b"")


def plausible_frames(frames: Sequence[Frame], turn: str) -> list[Frame]:
    """The frames that a driver of this turn could have sent; any client of the server can send others."""
    return [frame for frame in frames if _is_sound(frame, turn)]


def _is_sound(frame: Frame, turn: str) -> bool:
    if isinstance(frame, Delta):
        return (
            frame.turn == turn
            and 0 <= frame.part < PARTS_LIMIT
            and 0 <= frame.offset < READ_LOG.seq
            and 0 <= frame.seq < READ_LOG.seq
        )
    if isinstance(frame, LogAdvanced):
        return 0 <= frame.seq <= READ_LOG.seq
    return isinstance(frame, CallProgress) and frame.turn == turn


class DuplicateFilter:
    """Drops frames that a channel has already received. There is one per channel, because messages may come twice."""

    def __init__(self) -> None:
        self._step = self._moved = 0
        self._ends: dict[int, int] = {}

    def fresh(self, frames: Sequence[Frame]) -> list[Frame]:
        """What is new of these frames."""
        new_frames: list[Frame] = []
        for frame in frames:
            if isinstance(frame, Delta):
                if frame.seq == self._step and self._ends.get(frame.part) == frame.offset and frame.text:
                    self._ends[frame.part] += len(frame.text)  # the common case
                    new_frames.append(frame)
                elif (piece := self._new_of(frame)) is not None:
                    new_frames.append(cast("Frame", piece))
            elif isinstance(frame, LogAdvanced):
                if frame.seq > self._moved:
                    new_frames.append(frame)
                    if frame != READ_LOG:
                        self._moved = frame.seq
            elif isinstance(frame, CallProgress):
                new_frames.append(frame)
        return new_frames

    def _new_of(self, delta: Delta) -> Delta | None:
        if delta.seq != self._step:
            if delta.seq < self._step:
                return None
            self._step, self._ends = delta.seq, {}
            self._moved = max(self._moved, delta.seq)  # a step streams once the log has moved to its beginning
        seen = self._ends.get(delta.part, UNSEEN)
        end = delta.offset + len(delta.text)
        if end <= seen:
            return None
        if delta.offset > max(seen, 0):
            # After a gap. A reader may have seen more than this channel; and what fills the gap must still pass.
            return delta
        self._ends[delta.part] = end
        if delta.offset >= seen:
            return delta
        return replace(delta, offset=seen, text=delta.text[seen - delta.offset :])
