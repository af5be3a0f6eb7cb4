"""The log of a turn → its spans: a pure function, so that any process makes the same of the same log.

A span is made when what it tells of is over, out of nothing but events. One that a process began and did not live to
end is therefore made by the process that goes on. Names, kinds and ids only, unless `content` is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from everturn.core import events as e
from everturn.core.asking import Gate
from everturn.telemetry.ids import Place, span_id, trace_id
from everturn.telemetry.naming import (
    Attributes,
    provider_and_model,
    shown,
    shown_input,
    shown_output,
    shown_parts,
    usage_attributes,
)
from everturn.telemetry.shapes import CallSoFar, Moment, Span

FAILED_STATES: Final = ("failed", "outcome_unknown")


class TurnTrace:
    """One turn, as far as its log was seen."""

    def __init__(self, session: str, turn: str, content: bool = False) -> None:
        self.session, self.turn, self.seq, self.is_over = session, turn, 0, False
        self.place = Place(trace_id(session, turn), span_id(session, turn, "turn"))
        self._content = content
        self._parent: Place | None = None
        self._start, self._agent, self._model = 0.0, "", ""
        self._about: Attributes = {"gen_ai.conversation.id": session, "everturn.turn.id": turn}
        self._moments: list[Moment] = []
        self._steps: dict[int, tuple[float, bool, list[Moment]]] = {}
        self._calls: dict[str, CallSoFar] = {}
        self._gates: dict[str, tuple[Gate, float]] = {}
        self._done = 0  # steps
        self._input: Attributes = {}

    def see(self, entry: e.Entry) -> list[Span]:  # noqa: C901 - one line for each event
        """Take note of an event, and give the spans that it ends. An entry that was seen before is nothing new."""
        if entry.seq <= self.seq:
            return []
        self.seq, event = entry.seq, entry.event
        match event:
            case e.TurnStarted():
                self._begin(event)
            case e.AnswerOpened():
                self._model = event.message.by or self._model
            case e.StepStarted():
                self._steps[event.step] = (event.at, event.closing, [])
            case e.StepRestarted():
                if event.step in self._steps:
                    self._steps[event.step][2].append(Moment("restarted", event.at))
            case e.StepFinished() | e.StepInterrupted():
                return self._step(event)
            case e.GateOpened():
                self._gates[event.gate.id] = (event.gate, event.at)
            case e.GateAnswered():
                return self._gate(event.gate, event.at, "allowed" if event.verdict.allowed else "denied")
            case e.CallMade():
                self._call(event.call).parent = event.parent
            case e.CallJudged():
                self._judged(event)
            case e.CallStarted():
                self._started(event)
            case e.CallBelow():
                self._call(event.call).attributes["everturn.below.session"] = event.session
            case e.CallPaused():
                self._call(event.call).moments.append(Moment("paused", event.at))
            case e.CallResumed():
                self._call(event.call).moments.append(Moment("resumed", event.at))
            case e.CallSettled():
                return self._settled(event)
            case e.LateArrived():
                return self._late(event)
            case e.LimitReached():
                self._moments.append(Moment(f"limit reached: {event.limit}", event.at))
            case e.TurnParked():
                self._moments.append(Moment("parked", event.at))
            case e.TurnCompleted() | e.TurnFailed() | e.TurnCancelled():
                return self._end(event)
            case _:
                pass
        return []

    def _begin(self, event: e.TurnStarted) -> None:
        options = event.options
        self._start, self._agent, self._model = event.at, options.agent, options.model
        if above := options.above:  # a sub-turn is a part of the call that asked for it, in the trace at the top
            self.place = Place(trace_id(above.session, above.turn), self.place.span)
            session, turn, call = above.by
            if call:
                self._parent = Place(self.place.trace, span_id(session, turn, "call", call))
        if self._content and event.input is not None:
            self._input["gen_ai.input.messages"] = shown_input(event.input)

    def _inner(self, kind: str, name: str) -> Place:
        return Place(self.place.trace, span_id(self.session, self.turn, kind, name))

    def _call(self, call: str) -> CallSoFar:
        return self._calls.setdefault(call, CallSoFar())

    def _step(self, event: e.StepFinished | e.StepInterrupted) -> list[Span]:
        start, closing, moments = self._steps.pop(event.step, (event.at, False, []))
        provider, model = provider_and_model(self._model)
        self._done += 1
        made: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.request.stream": True,
            "gen_ai.response.finish_reasons": (event.finish,),
            **usage_attributes(event.usage),
            **self._about,
            "everturn.step": event.step,
        }
        if closing:
            made["everturn.step.closing"] = True
        failed = ""
        if isinstance(event, e.StepInterrupted) and event.finish == "error":
            failed = made["error.type"] = event.problem.kind if event.problem else "error"
        if self._content:
            made["gen_ai.output.messages"] = shown_parts(event.parts, event.finish)
        return [
            Span(
                name=f"chat {model}",
                kind="client",
                place=self._inner("step", str(event.step)),
                parent=self.place,
                start=start,
                end=event.at,
                attributes=made,
                moments=tuple(moments),
                failed=failed,
            )
        ]

    def _judged(self, event: e.CallJudged) -> None:
        call = self._call(event.call)
        if event.identity:  # without one nobody knows a tool of this name, and the name is a model's words
            call.tool = event.tool
        call.attributes["everturn.call.allowed"] = event.allowed

    def _started(self, event: e.CallStarted) -> None:
        call = self._call(event.call)
        call.tool, call.start = event.tool, call.start or event.at
        call.attributes["everturn.call.effects"] = event.effects
        if self._content:
            call.attributes["gen_ai.tool.call.arguments"] = shown(event.arguments)

    def _settled(self, event: e.CallSettled) -> list[Span]:
        call = self._call(event.call)
        tool = call.tool or "unknown"
        made: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.call,
            **self._about,
            **call.attributes,
            "everturn.call.state": event.state,
        }
        if self._content:
            made["gen_ai.tool.call.result"] = shown_output(event.output)
        failed = event.state if event.state in FAILED_STATES else ""
        if failed:
            made["error.type"] = failed
        waiting = [name for name, (gate, _) in self._gates.items() if gate.call == event.call]
        gates = [span for name in waiting for span in self._gate(name, event.at, "unanswered")]
        call.ended = event.at
        return [
            *gates,
            Span(
                name=f"execute_tool {tool}",
                place=self._inner("call", event.call),
                parent=self._inner("call", call.parent) if call.parent else self.place,
                start=call.start or event.at,
                end=event.at,
                attributes=made,
                moments=tuple(call.moments),
                failed=failed,
            ),
        ]

    def _late(self, event: e.LateArrived) -> list[Span]:
        call = self._call(event.call)
        made: Attributes = {
            "gen_ai.tool.name": call.tool or "unknown",
            "gen_ai.tool.call.id": event.call,
            **self._about,
        }
        return [
            Span(
                name=f"late_result {call.tool or 'unknown'}",
                place=self._inner("late", event.call),
                parent=self._inner("call", event.call),
                start=call.ended or event.at,
                end=event.at,
                attributes=made,
            )
        ]

    def _gate(self, name: str, at: float, verdict: str) -> list[Span]:
        if name not in self._gates:
            return []
        gate, opened = self._gates.pop(name)
        call = self._calls.get(gate.call)
        made: Attributes = {
            "everturn.gate.id": name,
            "everturn.gate.kind": gate.kind,
            "everturn.gate.verdict": verdict,
            "gen_ai.tool.call.id": gate.call,
            **self._about,
        }
        # Asked while its tool runs, it is a part of that; before, there is nothing yet that it could be a part of.
        is_within = call is not None and call.start > 0 and not call.ended
        return [
            Span(
                name=f"gate {gate.kind}",
                place=self._inner("gate", name),
                parent=self._inner("call", gate.call) if is_within else self.place,
                start=opened,
                end=at,
                attributes=made,
            )
        ]

    def _end(self, event: e.Terminal) -> list[Span]:
        self.is_over = True
        spans = [span for name in list(self._gates) for span in self._gate(name, event.at, "unanswered")]
        provider, model = provider_and_model(self._model)
        outcome = type(event).__name__.removeprefix("Turn").lower()
        made: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            **self._about,
            **usage_attributes(event.usage),
            "everturn.outcome": outcome,
            "everturn.steps": self._done,
            "everturn.calls": sum(1 for call in self._calls.values() if call.start),
            **self._input,
        }
        if self._agent:
            made["gen_ai.agent.name"] = self._agent
        failed = event.problem.kind if isinstance(event, e.TurnFailed) else ""
        if failed:
            made["error.type"] = failed
        turn = Span(
            name=f"invoke_agent {self._agent}".rstrip(),
            place=self.place,
            parent=self._parent,
            start=self._start or event.at,
            end=event.at,
            attributes=made,
            moments=tuple(self._moments),
            failed=failed,
        )
        return [*spans, turn]


def spans_of(session: str, entries: Iterable[e.Entry], content: bool = False) -> list[Span]:
    """All spans of a log, or of as much of it as there is."""
    traces: dict[str, TurnTrace] = {}
    made: list[Span] = []
    for entry in entries:
        if isinstance(entry.event, e.TurnEvent):
            turn = entry.event.turn
            made += traces.setdefault(turn, TurnTrace(session, turn, content)).see(entry)
    return made
