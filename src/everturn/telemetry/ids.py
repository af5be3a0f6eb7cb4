"""Trace and span ids: derived from the ids of sessions, turns, steps, calls and gates, so every process computes the same.

So a process that continues a turn adds to the trace of the process that began it, without any communication.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from msgspec import Struct

_PARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)


class SpanKey(Struct, frozen=True, omit_defaults=True):
    """Identifies a span: its trace id and its span id; and whether its trace is recorded."""

    trace: int
    span: int
    sampled: bool = True

    @property
    def traceparent(self) -> str:
        """The `traceparent` header of W3C Trace Context."""
        return f"00-{self.trace:032x}-{self.span:016x}-{int(self.sampled):02x}"


def _number(size: int, *names: str) -> int:
    # Prefixed with lengths, so that no two lists of names give the same text.
    text = "".join(f"{len(name)}:{name}" for name in ("everturn", *names))
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:size]) or 1  # 0 means none


def trace_id(session: str, turn: str) -> int:
    """The trace id of a root turn; its sub-agents are in the same trace."""
    return _number(16, "trace", session, turn)


def span_id(session: str, turn: str, kind: str, name: str = "") -> int:
    """The span id of a turn, or of a step, a call or a gate in it."""
    return _number(8, "span", session, turn, kind, name)


def span_of_turn(session: str, turn: str) -> SpanKey:
    """The span of a root turn, known even before it has begun: to link to it."""
    return SpanKey(trace_id(session, turn), span_id(session, turn, "turn"))


def read_traceparent(text: str) -> SpanKey | None:
    """Parse a `traceparent` header; None if it is invalid."""
    match = _PARENT.fullmatch(text.strip())
    if match is None or match["version"] == "ff" or (match["version"] == "00" and match["more"]):
        return None
    key = SpanKey(int(match["trace"], 16), int(match["span"], 16), bool(int(match["flags"], 16) & 1))
    return key if key.trace and key.span else None


def is_sampled(trace: int, ratio: float) -> bool:
    """Whether a trace is sampled at this ratio; every process decides the same for a trace."""
    return (trace & (2**64 - 1)) < ratio * 2**64
