"""Spans of a turn, computed from its log. Pure, so that every process computes the same spans from the same log.

A span is created when its work is over, from events alone. So a span that one process began and did not live to end is
created by the process that continues. It has names, kinds and ids only, unless `content` is set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from everturn.core import events as e
from everturn.core.gates import Gate
from everturn.core.options import TurnOptions
from everturn.telemetry.ids import SpanKey, read_traceparent, span_id, trace_id
from everturn.telemetry.otel_names import (
    Attributes,
    content_of_message,
    content_of_output,
    content_of_parts,
    content_text,
    provider_and_model,
    usage_attributes,
)
from everturn.telemetry.span_types import OpenCall, Span, SpanEvent

FAILED_STATES: Final = ("failed", "outcome_unknown")


def trace_of(session: str, turn: str, options: TurnOptions) -> tuple[int, SpanKey | None]:
    """The trace id of a turn, and its caller: the caller's trace if that is recorded, else that of the root turn."""
    caller = read_traceparent(options.trace) if options.trace else None
    if caller is not None and caller.sampled:
        return caller.trace, caller
    above = options.lineage
    return trace_id(above.session, above.turn) if above is not None else trace_id(session, turn), caller


class TurnTrace:
    """The trace of one turn, as far as its log was read."""

    def __init__(self, session: str, turn: str, content: bool = False) -> None:
        self.session, self.turn, self.seq, self.is_over = session, turn, 0, False
        self.key = SpanKey(trace_id(session, turn), span_id(session, turn, "turn"))
        self._content = content
        self._parent: SpanKey | None = None
        self._caller: SpanKey | None = None
        self._start, self._agent, self._model = 0.0, "", ""
        self._common_attributes: Attributes = {"gen_ai.conversation.id": session, "everturn.turn.id": turn}
        self._moments: list[SpanEvent] = []
        self._steps: dict[int, tuple[float, bool, list[SpanEvent]]] = {}
        self._calls: dict[str, OpenCall] = {}
        self._gates: dict[str, tuple[Gate, float]] = {}
        self._finished_steps = 0  # steps
        self._input_id, self._input = "", Attributes()

    def apply(self, entry: e.Entry) -> list[Span]:  # noqa: C901 - one line for each event
        """Apply an event, and return the spans that it ends. An entry that was seen before does nothing."""
        if entry.seq <= self.seq:
            return []
        self.seq, event = entry.seq, entry.event
        match event:
            case e.TurnStarted():
                self._begin(event)
            case e.InputRefused():
                self._refuse(event)
            case e.AnswerStarted():
                self._model = event.message.by or self._model
            case e.StepStarted():
                self._steps[event.step] = (event.at, event.closing, [])
            case e.StepRestarted():
                if event.step in self._steps:
                    self._steps[event.step][2].append(SpanEvent("restarted", event.at))
            case e.RequestRetried():
                if event.step in self._steps:
                    text = f"retried ({event.problem.kind}), attempt {event.attempt}"
                    self._steps[event.step][2].append(SpanEvent(text, event.at))
            case e.StepFinished() | e.StepInterrupted():
                return self._step(event)
            case e.GateOpened():
                self._gates[event.gate.id] = (event.gate, event.at)
            case e.GateResolved():
                return self._gate(event.gate, event.at, "allowed" if event.resolution.allowed else "denied")
            case e.NestedCallRequested():
                self._call(event.call).parent = event.parent
            case e.PermissionDecided():
                self._permission_decided(event)
            case e.CallStarted():
                self._call_started(event)
            case e.SubagentStarted():
                self._call(event.call).attributes["everturn.below.session"] = event.session
            case e.CallSuspended():
                self._call(event.call).events.append(SpanEvent("paused", event.at))
            case e.CallResumed():
                self._call(event.call).events.append(SpanEvent("resumed", event.at))
            case e.CallFinished():
                return self._finish_call(event)
            case e.LateResultReceived():
                return self._late(event)
            case e.CompactionStarted():
                self._moments.append(SpanEvent(f"compaction started: {event.why}", event.at))
            case e.CompactionFinished():
                self._moments.append(SpanEvent("compaction finished", event.at))
            case e.CompactionFailed():
                self._moments.append(SpanEvent(f"compaction failed: {event.problem.kind}", event.at))
            case e.LimitReached():
                self._moments.append(SpanEvent(f"limit reached: {event.limit}", event.at))
            case e.TurnSuspended():
                self._moments.append(SpanEvent("suspended", event.at))
            case e.TurnCompleted() | e.TurnFailed() | e.TurnCancelled():
                return self._end(event)
            case _:
                pass
        return []

    def _begin(self, event: e.TurnStarted) -> None:
        options = event.options
        self._start, self._agent, self._model = event.at, options.agent, options.model
        trace, self._caller = trace_of(self.session, self.turn, options)
        self.key = SpanKey(trace, self.key.span)
        if (above := options.lineage) and above.by[2]:  # a sub-agent's turn is a child of the call that started it
            session, turn, call = above.by
            self._parent = SpanKey(trace, span_id(session, turn, "call", call))
        elif above is None and self._caller is not None and self._caller.sampled:
            self._parent = self._caller
        self._input_id = event.input.id if event.input is not None else ""
        if self._content and event.input is not None:
            self._input["gen_ai.input.messages"] = content_of_message(event.input)

    def _refuse(self, event: e.InputRefused) -> None:
        self._moments.append(SpanEvent(f"input refused by {event.by}", event.at))
        if event.message == self._input_id:  # no model reads it, and no operator's screen shows it
            self._input.clear()

    def _inner(self, kind: str, name: str) -> SpanKey:
        return SpanKey(self.key.trace, span_id(self.session, self.turn, kind, name))

    def _call(self, call: str) -> OpenCall:
        return self._calls.setdefault(call, OpenCall())

    def _step(self, event: e.StepFinished | e.StepInterrupted) -> list[Span]:
        start, closing, moments = self._steps.pop(event.step, (event.at, False, []))
        provider, model = provider_and_model(event.model or self._model)
        self._finished_steps += 1
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.request.stream": True,
            "gen_ai.response.finish_reasons": (event.finish,),
            **usage_attributes(event.usage),
            **self._common_attributes,
            "everturn.step": event.step,
        }
        if closing:
            attributes["everturn.step.closing"] = True
        if isinstance(event, e.StepFinished) and event.cache is not None:
            attributes["everturn.cache.collapse"] = event.cache.cause
            attributes["everturn.cache.missed_tokens"] = event.cache.missed
        failed = ""
        if isinstance(event, e.StepInterrupted) and event.finish == "error":
            failed = attributes["error.type"] = event.problem.kind if event.problem else "error"
        if self._content:
            attributes["gen_ai.output.messages"] = content_of_parts(event.parts, event.finish)
        return [
            Span(
                name=f"chat {model}",
                kind="client",
                key=self._inner("step", str(event.step)),
                parent=self.key,
                start=start,
                end=event.at,
                attributes=attributes,
                events=tuple(moments),
                failed=failed,
                caller=self._caller,
            )
        ]

    def _permission_decided(self, event: e.PermissionDecided) -> None:
        call = self._call(event.call)
        if event.identity:  # otherwise the tool is unknown, and its name is a model's invention
            call.tool = event.tool
        call.attributes["everturn.call.allowed"] = event.allowed

    def _call_started(self, event: e.CallStarted) -> None:
        call = self._call(event.call)
        call.tool, call.start = event.tool, call.start or event.at
        call.attributes["everturn.call.read_only"] = event.read_only
        call.attributes["everturn.call.idempotent"] = event.idempotent
        if self._content:
            call.attributes["gen_ai.tool.call.arguments"] = content_text(event.arguments)

    def _finish_call(self, event: e.CallFinished) -> list[Span]:
        call = self._call(event.call)
        tool = call.tool or "unknown"
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.call,
            **self._common_attributes,
            **call.attributes,
            "everturn.call.state": event.state,
        }
        if self._content:
            attributes["gen_ai.tool.call.result"] = content_of_output(event.output)
        failed = event.state if event.state in FAILED_STATES else ""
        if failed:
            attributes["error.type"] = failed
        waiting = [name for name, (gate, _) in self._gates.items() if gate.call == event.call]
        gates = [span for name in waiting for span in self._gate(name, event.at, "unanswered")]
        call.ended = event.at
        return [
            *gates,
            Span(
                name=f"execute_tool {tool}",
                key=self._inner("call", event.call),
                parent=self._inner("call", call.parent) if call.parent else self.key,
                start=call.start or event.at,
                end=event.at,
                attributes=attributes,
                events=tuple(call.events),
                failed=failed,
                caller=self._caller,
            ),
        ]

    def _late(self, event: e.LateResultReceived) -> list[Span]:
        call = self._call(event.call)
        attributes: Attributes = {
            "gen_ai.tool.name": call.tool or "unknown",
            "gen_ai.tool.call.id": event.call,
            **self._common_attributes,
        }
        return [
            Span(
                name=f"late_result {call.tool or 'unknown'}",
                key=self._inner("late", event.call),
                parent=self._inner("call", event.call),
                start=call.ended or event.at,
                end=event.at,
                attributes=attributes,
                caller=self._caller,
            )
        ]

    def _gate(self, name: str, at: float, resolution: str) -> list[Span]:
        if name not in self._gates:
            return []
        gate, opened = self._gates.pop(name)
        call = self._calls.get(gate.call)
        attributes: Attributes = {
            "everturn.gate.id": name,
            "everturn.gate.kind": gate.kind,
            "everturn.gate.resolution": resolution,
            "gen_ai.tool.call.id": gate.call,
            **self._common_attributes,
        }
        # A gate that opens while its tool runs is a child of the call; before that, the call has no span yet.
        is_within = call is not None and call.start > 0 and not call.ended
        return [
            Span(
                name=f"gate {gate.kind}",
                key=self._inner("gate", name),
                parent=self._inner("call", gate.call) if is_within else self.key,
                start=opened,
                end=at,
                attributes=attributes,
                caller=self._caller,
            )
        ]

    def _end(self, event: e.Terminal) -> list[Span]:
        self.is_over = True
        spans = [span for name in list(self._gates) for span in self._gate(name, event.at, "unanswered")]
        provider, model = provider_and_model(self._model)
        outcome = type(event).__name__.removeprefix("Turn").lower()
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            **self._common_attributes,
            **usage_attributes(event.usage),
            "everturn.outcome": outcome,
            "everturn.steps": self._finished_steps,
            "everturn.calls": sum(1 for call in self._calls.values() if call.start),
            **self._input,
        }
        if self._agent:
            attributes["gen_ai.agent.name"] = self._agent
        failed = event.problem.kind if isinstance(event, e.TurnFailed) else ""
        if failed:
            attributes["error.type"] = failed
        turn = Span(
            name=f"invoke_agent {self._agent}".rstrip(),
            key=self.key,
            parent=self._parent,
            start=self._start or event.at,
            end=event.at,
            attributes=attributes,
            events=tuple(self._moments),
            # A caller's span that is not recorded cannot be a parent: the turn would hang in the air.
            links=(self._caller,) if self._caller is not None and self._parent is None else (),
            failed=failed,
            caller=self._caller,
        )
        return [*spans, turn]


def spans_of(session: str, entries: Iterable[e.Entry], content: bool = False) -> list[Span]:
    """All spans of a log, as far as it goes."""
    traces: dict[str, TurnTrace] = {}
    spans: list[Span] = []
    for entry in entries:
        if isinstance(entry.event, e.TurnEvent):
            turn = entry.event.turn
            spans += traces.setdefault(turn, TurnTrace(session, turn, content)).apply(entry)
    return spans
