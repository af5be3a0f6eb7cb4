"""Ids of sessions, turns, steps, calls and gates → ids of traces and spans: the same in every process, at any time.

So whoever goes on with a turn adds to the trace of who began it, without having been told anything.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from msgspec import Struct

_PARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)


class Place(Struct, frozen=True):
    """A span's place: which trace, and which span of it."""

    trace: int
    span: int

    @property
    def traceparent(self) -> str:
        """As W3C Trace Context writes it in a header."""
        return f"00-{self.trace:032x}-{self.span:016x}-01"


def _number(size: int, *names: str) -> int:
    # Lengths in front: no two lists of names make the same text.
    text = "".join(f"{len(name)}:{name}" for name in ("everturn", *names))
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:size]) or 1  # 0 means none


def trace_id(session: str, turn: str) -> int:
    """The trace of a turn at the top; its sub-turns are in the same."""
    return _number(16, "trace", session, turn)


def span_id(session: str, turn: str, kind: str, name: str = "") -> int:
    """The span of a turn, or of a step, a call or a gate in it."""
    return _number(8, "span", session, turn, kind, name)


def place_of_turn(session: str, turn: str) -> Place:
    """Where a turn at the top is found, even before it has begun: to link to it."""
    return Place(trace_id(session, turn), span_id(session, turn, "turn"))


def read_traceparent(text: str) -> Place | None:
    """The place a caller named; None where it is not one as W3C has it."""
    found = _PARENT.fullmatch(text.strip())
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found["more"]):
        return None
    place = Place(int(found["trace"], 16), int(found["span"], 16))
    return place if place.trace and place.span else None


def is_sampled(trace: int, ratio: float) -> bool:
    """Whether a trace is kept, when this part of all is; every process says the same of a trace."""
    return (trace & (2**64 - 1)) < ratio * 2**64
