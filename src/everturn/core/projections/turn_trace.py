"""Turn trace: what a turn did and when, as spans that people read. Folded from its events, also while it runs. Pure.

Every span has an id that is the same in each fold of the same log, and the id of its parent: calls are below the step
that asked for them, gates, waits, tool steps and sub-agent runs below their call, retries below their step. The span of a
call begins when its permission is first asked about, `active_at` says when its tool began; that of a step begins when
its request is written down, `active_at` says when its first content arrived. In between lie people, rate limits and networks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from everturn.core import events as e
from everturn.core.parts import CacheCollapse, ToolPart, Usage

SpanKind = Literal["step", "retry", "call", "gate", "wait", "tool_step", "subagent", "late", "compaction", "mark"]
"""What a span is about; a `mark` has no duration: a restart, a limit, a refusal, a handoff."""


class TraceSpan(Struct, gc=False, omit_defaults=True, repr_omit_defaults=True, kw_only=True):
    """A span of a turn. `end` is 0 while it lasts."""

    id: str
    kind: SpanKind
    name: str  # the model of a step, the tool of a call, the kind of a gate, wait, error or mark
    start: float
    end: float = 0.0
    parent: str = ""  # the span that it belongs to; "": the turn
    active_at: float = 0.0  # of a step its first content, of a call the start of its tool; 0: not yet, or never
    state: str = ""  # how it ended
    text: str = ""  # why, for people
    number: int = 0  # of a step, an attempt or a compaction
    by: str = ""  # who answered a gate
    usage: Usage | None = None
    cache: CacheCollapse | None = None  # of a step whose request missed the provider's prompt cache
    session: str = ""  # of a sub-agent run, like `turn`
    turn: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it lasts."""
        return not self.end


class _Fold:
    """The spans of one turn so far, in the order of their starts."""

    def __init__(self) -> None:
        self.spans: dict[str, TraceSpan] = {}
        self.model, self.step, self.marks, self.is_over = "", "", 0, False
        self._written: dict[str, tuple[str, str]] = {}  # calls that a model wrote: name, and the span of the step

    def apply(self, event: e.TurnEvent) -> None:  # noqa: C901 - one line for each event
        match event:
            case e.TurnStarted():
                self.model = event.options.model
            case e.AgentSwitched():
                self.model = event.options.model or self.model
                self._mark("handoff" if event.call else "agent", event.at, event.agent)
            case e.AnswerStarted():
                self.model = event.message.by or self.model
            case e.StepStarted():
                self.step = f"step:{event.step}"
                state = "closing" if event.closing else ""
                self._open(self.step, "step", self.model, event.at, number=event.step, text=state)
            case e.StepRestarted():
                self._mark("restarted", event.at, parent=f"step:{event.step}")
            case e.RequestRetried():
                self._retried(event)
            case e.StepFinished() | e.StepInterrupted():
                self._finish_step(event)
            case e.OutputRejected():
                self._mark("output rejected", event.at, event.problem, parent=f"step:{event.step}")
                self._end(f"step:{event.step}", event.at, "rejected")
            case e.InputRefused():
                self._mark("input refused", event.at, event.by)
            case e.LimitReached():
                self._mark("limit", event.at, event.text)
            case e.CompactionStarted() | e.CompactionFinished() | e.CompactionFailed():
                self._compaction(event)
            case e.GateOpened() | e.GateResolved():
                self._gate(event)
            case e.TurnCompleted() | e.TurnFailed() | e.TurnCancelled():
                self.is_over = True
                for span in self.spans.values():
                    self._end(span.id, event.at, "unanswered" if span.kind == "gate" else "")
            case _:
                self._apply_to_call(event)

    def _apply_to_call(self, event: e.TurnEvent) -> None:
        match event:
            case e.NestedCallRequested():
                self._written[event.call] = event.name, f"call:{event.parent}"
                self._call(event.call, event.at)
            case e.PermissionDecided():
                span = self._call(event.call, event.at, event.tool)
                span.text = span.text if event.allowed else event.why
            case e.CallStarted():
                span = self._call(event.call, event.at, event.tool)
                span.active_at = span.active_at or event.at
            case e.SubagentStarted():
                name = f"subagent:{event.child}"
                parent = self._call(event.call, event.at).id
                self._open(name, "subagent", "", event.at, parent, number=event.number)
                self.spans[name].session, self.spans[name].turn = event.session, event.child
            case e.ToolStepStarted():
                parent = self._call(event.call, event.at).id
                self._open(f"tool_step:{event.call}:{event.name}", "tool_step", event.name, event.at, parent)
            case e.ToolStepFinished():
                state = "failed" if event.failed else "completed"
                self._end(f"tool_step:{event.call}:{event.name}", event.at, state)
            case e.WaitStarted():
                parent = self._call(event.call, event.at).id
                self._open(f"wait:{event.call}:{event.wait}", "wait", event.kind, event.at, parent, text=event.wait)
            case e.WaitFinished():
                state = "timed_out" if event.timed_out else "completed"
                self._end(f"wait:{event.call}:{event.wait}", event.at, state)
            case e.CallFinished():
                self._finish_call(event)
            case e.LateResultReceived():
                self._late(event)
            case _:
                pass

    def _open(
        self, id: str, kind: SpanKind, name: str, at: float, parent: str = "", *, number: int = 0, text: str = ""
    ) -> None:
        if id not in self.spans or not self.spans[id].is_open:
            self.spans[id] = TraceSpan(id=id, kind=kind, name=name, start=at, parent=parent, number=number, text=text)

    def _end(self, id: str, at: float, state: str) -> None:
        span = self.spans.get(id)
        if span is not None and span.is_open:
            span.end, span.state = max(at, span.start), state or span.state

    def _mark(self, name: str, at: float, text: str = "", *, parent: str = "") -> None:
        self.marks += 1
        id = f"mark:{self.marks}"
        self.spans[id] = TraceSpan(id=id, kind="mark", name=name, start=at, end=at, parent=parent, text=text)

    def _retried(self, event: e.RequestRetried) -> None:
        step = f"step:{event.step}"
        id = f"retry:{event.step}:{event.attempt}"
        self.spans[id] = TraceSpan(
            id=id,
            kind="retry",
            name=event.problem.kind,
            start=event.at,
            end=event.at + event.seconds,
            parent=step,
            text=event.problem.text,
            number=event.attempt,
            state=event.model,
        )

    def _finish_step(self, event: e.StepFinished | e.StepInterrupted) -> None:
        id = f"step:{event.step}"
        self._open(id, "step", self.model, event.at, number=event.step)
        span = self.spans[id]
        span.name = event.model or span.name
        span.active_at, span.usage = event.first_chunk_at, event.usage
        if isinstance(event, e.StepInterrupted):
            span.text = event.problem.text if event.problem is not None else span.text
        else:
            span.text = event.warning or event.refused or span.text
            span.cache = event.cache
        self._end(id, event.at, event.finish)
        for retry in self.spans.values():  # a wait that a cancel cut short
            if retry.kind == "retry" and retry.parent == id:
                retry.end = min(retry.end, max(event.at, retry.start))
        for part in event.parts:
            if isinstance(part, ToolPart):
                self._written[part.call] = part.name, id

    def _call(self, call: str, at: float, tool: str = "") -> TraceSpan:
        id = f"call:{call}"
        if id not in self.spans:
            name, parent = self._written.get(call, ("", self.step))
            self.spans[id] = TraceSpan(id=id, kind="call", name=tool or name, start=at, parent=parent)
        span = self.spans[id]
        span.name = tool or span.name
        return span

    def _gate(self, event: e.GateOpened | e.GateResolved) -> None:
        if isinstance(event, e.GateResolved):
            id = f"gate:{event.gate}"
            if id in self.spans:
                self.spans[id].by = event.resolution.by
            self._end(id, event.at, "allowed" if event.resolution.allowed else "denied")
            return
        gate = event.gate
        parent = self._call(gate.call, event.at, gate.tool).id if gate.call else self.step
        self._open(f"gate:{gate.id}", "gate", gate.kind, event.at, parent, text=gate.why)

    def _finish_call(self, event: e.CallFinished) -> None:
        span = self._call(event.call, event.at)
        for below in self.spans.values():
            if below.parent == span.id and below.kind in ("gate", "wait", "tool_step", "subagent"):
                self._end(below.id, event.at, "unanswered" if below.kind == "gate" else event.state)
        self._end(span.id, event.at, event.state)
        if event.spent is not None:
            span.usage = event.spent.usage

    def _late(self, event: e.LateResultReceived) -> None:
        call = self._call(event.call, event.at)
        id = f"late:{event.call}"
        self.spans[id] = TraceSpan(
            id=id, kind="late", name=call.name, start=call.end or event.at, end=event.at, parent=call.id
        )

    def _compaction(self, event: e.CompactionStarted | e.CompactionFinished | e.CompactionFailed) -> None:
        id = f"compaction:{event.number}"
        if isinstance(event, e.CompactionStarted):
            self._open(id, "compaction", event.why, event.at, number=event.number)
            return
        is_failed = isinstance(event, e.CompactionFailed)
        if id in self.spans:
            self.spans[id].usage = event.usage
            self.spans[id].text = event.problem.text if isinstance(event, e.CompactionFailed) else ""
        self._end(id, event.at, "failed" if is_failed else "completed")


def trace_spans(entries: Iterable[e.Entry | e.Event]) -> list[TraceSpan]:
    """Fold a turn's events into its spans, by their starts. What was not finished when the log ends has no end."""
    folded = _Fold()
    for entry in entries:
        event = entry.event if isinstance(entry, e.Entry) else entry
        if isinstance(event, e.TurnEvent):
            folded.apply(event)
    return list(folded.spans.values())
