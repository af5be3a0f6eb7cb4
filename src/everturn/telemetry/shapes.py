"""What a span is, before any library sees it, and what is kept of a call until it is over."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from everturn.telemetry.ids import Place
from everturn.telemetry.naming import Attributes, Value


class Moment(Struct, frozen=True):
    """Something that happened in the time of a span."""

    name: str
    at: float


class Span(Struct, frozen=True, kw_only=True):
    """A piece of work, from when to when, and what it was a part of."""

    name: str
    kind: Literal["internal", "client", "server"] = "internal"
    place: Place
    parent: Place | None = None
    start: float
    end: float
    attributes: Attributes
    moments: tuple[Moment, ...] = ()
    links: tuple[Place, ...] = ()
    failed: str = ""  # the kind of the problem


class CallSoFar(Struct):
    """A call that is not over."""

    parent: str = ""  # the call whose tool made this one
    tool: str = ""  # as it is registered: the name a model wrote may be anything
    start: float = 0.0
    ended: float = 0.0
    attributes: Attributes = field(default_factory=dict[str, Value])
    moments: list[Moment] = field(default_factory=list[Moment])
