"""Span types: spans independent of any library, and the state of an unfinished call."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from everturn.telemetry.ids import SpanKey
from everturn.telemetry.otel_names import Attributes, Value


class SpanEvent(Struct, frozen=True):
    """An event during a span."""

    name: str
    at: float


class Span(Struct, frozen=True, kw_only=True):
    """A span: a piece of work with start, end, parent and attributes."""

    name: str
    kind: Literal["internal", "client", "server"] = "internal"
    key: SpanKey
    parent: SpanKey | None = None
    start: float
    end: float
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanKey, ...] = ()
    failed: str = ""  # the kind of the problem
    caller: SpanKey | None = None  # the caller of the turn; if its trace is recorded, this span is in it


class OpenCall(Struct):
    """An unfinished call."""

    parent: str = ""  # the call whose tool requested this one
    tool: str = ""  # the registered name: the name that a model wrote may be anything
    start: float = 0.0
    ended: float = 0.0
    attributes: Attributes = field(default_factory=dict[str, Value])
    events: list[SpanEvent] = field(default_factory=list[SpanEvent])
