"""Turns and their traces."""

from __future__ import annotations

from typing import Any, Literal

from everturn.api.base import Body, View
from everturn.core.events import Problem
from everturn.core.gates import Gate
from everturn.core.messages import Message
from everturn.core.parts import Usage
from everturn.core.phases import Phase
from everturn.core.projections.stats import TurnStats
from everturn.core.projections.turn_trace import TraceSpan


class CancelTurn(Body, frozen=True, kw_only=True):
    """Cancel a turn; `hard` cancels its tools as well."""

    hard: bool = False


class TurnView(View, frozen=True, kw_only=True):
    """The present state of a turn, from its log."""

    session: str
    turn: str
    phase: Phase
    step: int
    messages: list[Message]
    gates: list[Gate]
    usage: Usage
    problem: Problem | None = None
    stats: TurnStats = TurnStats()


class TraceView(View, frozen=True, kw_only=True):
    """What a turn did and when: its spans by their starts, as far as its log goes. Times are in seconds since 1970."""

    session: str
    turn: str
    phase: Phase
    agent: str
    model: str
    answer: str  # the message; "": none has been started
    start: float
    end: float  # 0: it runs
    now: float  # by the clock of the server
    usage: Usage
    stats: TurnStats
    problem: Problem | None = None
    spans: list[TraceSpan]
    trace_id: str  # of the trace that is exported to OpenTelemetry; "" for roles below approver


SentPartKind = Literal["text", "reasoning", "notice", "file", "call", "result"]


class SentPart(View, frozen=True, kw_only=True):
    """A part of a message of a request: its text, the arguments of a call, or the media type of a file."""

    kind: SentPartKind
    text: str
    name: str  # of a tool, a file or a kind of notice
    call: str
    size: int  # characters, also of those that are not shown


class SentMessage(View, frozen=True, kw_only=True):
    """A message of a request."""

    role: str
    parts: list[SentPart]


class SentTool(View, frozen=True, kw_only=True):
    """A tool that a request offers."""

    name: str
    description: str
    schema: dict[str, Any]


class SentRequestView(View, frozen=True, kw_only=True):
    """The request of a step, before it is rendered for a provider. System prompt and parameters: null below approver."""

    step: int
    model: str
    system: str | None
    params: dict[str, Any] | None
    tools: list[SentTool]
    messages: list[SentMessage]
    left_out: list[str]  # plugins that may have changed it, and are not called again
