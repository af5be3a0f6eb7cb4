"""AG-UI encoder: a turn as AG-UI 1.0 events. A run ends where a person is asked, and the next run brings the answers.

So a turn may be several runs; a run that continues a turn does not repeat what earlier runs sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, get_args

from everturn.core.deltas import CallDelta, CallProgress, Delta, ReasoningDelta, TurnItem
from everturn.core.events import (
    AnswerStarted,
    CallClaimed,
    CallFinished,
    CallStarted,
    Event,
    FilesChanged,
    GateOpened,
    GateResolved,
    InputRefused,
    LateResultReceived,
    LimitReached,
    MessageAdded,
    NestedCallRequested,
    OutputRejected,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    SubagentStarted,
    Terminal,
    TitleSet,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from everturn.core.gates import Gate, GateKind
from everturn.core.parts import FilePart, ToolPart, Usage
from everturn.protocols.gate_facts import (
    file_url,
    files_facts,
    gate_facts,
    message_facts,
    output_facts,
    resolution_facts,
    usage_facts,
)
from everturn.protocols.sse_frames import encode_frame, parse_arguments, without_empty
from everturn.protocols.waiting_point import OpenItems, StreamPosition

KINDS: Final[tuple[GateKind, ...]] = get_args(GateKind)
"""The payload of an answer may be anything, so all kinds of gates can be answered."""


Wire = dict[str, Any]


class AgUiEncoder:
    """Encodes one run. `place` is where it continues, when the run before it ended at gates."""

    def __init__(
        self, thread: str, run: str, session: str = "", turn: str = "", place: StreamPosition | None = None
    ) -> None:
        self.is_done = False
        self._thread, self._run, self._session, self._turn = thread, run, session, turn
        self._open_items = OpenItems(KINDS, place)
        self._clients: frozenset[str] = frozenset()
        self._is_ended = False
        self._step = ""  # the open step
        self._answer = ""
        self._parent = ""  # the client's message that has the calls of the step
        self._open: dict[str, str] = {}  # messages that are still streaming -> "text" or "reasoning"
        self._calls: dict[str, str] = {}  # calls that are still streaming -> their names
        self._known: set[str] = set()
        self._gates: dict[str, Gate] = {}

    def begin(self) -> bytes:
        """RUN_STARTED."""
        metadata = without_empty(session=self._session, turn=self._turn)
        return encode_frame(self._run_event("RUN_STARTED", metadata={"everturn": metadata}))

    def _run_event(self, kind: str, **more: Any) -> Wire:
        return {"type": kind, "threadId": self._thread, "runId": self._run, **more}

    def feed(self, shown: TurnItem) -> bytes:
        """Encode the next event; b"" for what an earlier run has sent."""
        if self.is_done:
            return b""
        if isinstance(shown, Delta):
            return self._encode_events(self._delta(shown), not self._open_items.is_silent)
        if isinstance(shown, CallProgress):
            if not shown.call:  # of the model request: the protocol has no place for it
                return b""
            return self._encode_events(
                [_activity(shown.call, state="running", text=shown.text)], not self._open_items.is_silent
            )
        was_silent = self._open_items.is_silent
        is_new = self._open_items.feed(shown)
        encode = self.ENCODERS.get(type(shown))
        events = encode(self, shown) if encode is not None else []
        if was_silent and not self._open_items.is_silent and self._step:  # the run before this one has closed the step
            reopened: list[Wire] = [{"type": "STEP_STARTED", "stepName": self._step}]
            events, is_new = ([*reopened, *events] if is_new else reopened), True
        if isinstance(shown, Terminal):
            self.is_done = self._is_ended = True
        elif self._open_items.is_end_of_stream:
            events, is_new = [*events, *self._leave_step(), self._interrupted()], True
            self.is_done = self._is_ended = True
        return self._encode_events(events, is_new)

    def end(self, why: str) -> bytes:
        """The last event of the run."""
        if self._is_ended:
            return b""
        self.is_done = self._is_ended = True
        if why == "over":
            return self._encode_events([*self._leave_step(), self._run_event("RUN_FINISHED")], True)
        return self._encode_events(
            [{"type": "RUN_ERROR", "message": f"the stream was cut short: {why}", "code": why}], True
        )

    def _encode_events(self, events: Sequence[Wire], is_new: bool) -> bytes:
        return b"".join(map(encode_frame, events)) if is_new else b""

    # Deltas --------------------------------------------------------------------------------------------------------

    def _delta(self, delta: Delta) -> list[Wire]:
        if isinstance(delta, CallDelta):
            self._parent = self._parent or f"{self._answer}.{delta.seq}"
            events = self._call(delta.call, delta.name)
            return [*events, _arguments(delta.call, delta.text)] if delta.text else events
        message = f"{self._answer}.{delta.seq}.{delta.part}"
        is_reasoning, events = isinstance(delta, ReasoningDelta), list[Wire]()
        if message not in self._open:
            self._open[message] = "reasoning" if is_reasoning else "text"
            if is_reasoning:
                events = [
                    {"type": "REASONING_START", "messageId": message},
                    {"type": "REASONING_MESSAGE_START", "messageId": message, "role": "reasoning"},
                ]
            else:
                self._parent = self._parent or message
                events = [{"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"}]
        kind = "REASONING_MESSAGE_CONTENT" if is_reasoning else "TEXT_MESSAGE_CONTENT"
        return [*events, {"type": kind, "messageId": message, "delta": delta.text}]

    def _call(self, call: str, name: str, **metadata: Any) -> list[Wire]:
        if call in self._calls:
            return []
        self._calls[call] = name
        self._known.add(call)
        started = without_empty(
            type="TOOL_CALL_START", toolCallId=call, toolCallName=name, parentMessageId=self._parent
        )
        return [{**started, "metadata": {"everturn": metadata}} if metadata else started]

    def _end_parts(self) -> list[Wire]:
        opened, self._open = self._open, {}
        calls, self._calls = self._calls, {}
        events: list[Wire] = []
        for message, kind in opened.items():
            if kind == "reasoning":
                events.append({"type": "REASONING_MESSAGE_END", "messageId": message})
            events.append(
                {"type": f"{'REASONING' if kind == 'reasoning' else 'TEXT_MESSAGE'}_END", "messageId": message}
            )
        return [*events, *({"type": "TOOL_CALL_END", "toolCallId": call} for call in calls)]

    # Steps -------------------------------------------------------------------------------------------------------

    def _start_turn(self, event: TurnStarted) -> list[Wire]:
        self._clients = frozenset(tool.name for tool in event.options.clients)
        return []

    def _open_answer(self, event: AnswerStarted) -> list[Wire]:
        self._answer = event.message.id
        return []

    def _start_step(self, event: StepStarted) -> list[Wire]:
        events, self._step, self._parent = self._leave_step(), f"step {event.step}", ""
        return [*events, {"type": "STEP_STARTED", "stepName": self._step}]

    def _leave_step(self) -> list[Wire]:
        step, self._step = self._step, ""
        return [*self._end_parts(), *([{"type": "STEP_FINISHED", "stepName": step}] if step else [])]

    def _restart_step(self, event: StepRestarted | OutputRejected) -> list[Wire]:
        discarded, self._parent = {"messages": list(self._open), "calls": list(self._calls)}, ""
        return [*self._end_parts(), _custom("restarted", step=event.step, void=discarded)]

    def _end_step(self, event: StepFinished | StepInterrupted) -> list[Wire]:
        events: list[Wire] = []
        for part in event.parts:
            if type(part) is ToolPart:
                events += self._call(part.call, part.name)
            elif type(part) is FilePart:
                events.append(
                    _custom("file", url=file_url(part, self._session), mediaType=part.media_type, filename=part.name)
                )
        facts = _custom("step", step=event.step, finish=event.finish, usage=usage_facts(event.usage))
        return [*events, *self._end_parts(), facts]

    # Calls -------------------------------------------------------------------------------------------------------

    def _request_nested_call(self, event: NestedCallRequested) -> list[Wire]:
        events = self._call(event.call, event.name, parent=event.parent)
        self._calls.pop(event.call, None)
        ended = {"type": "TOOL_CALL_END", "toolCallId": event.call}
        return [*events, _arguments(event.call, event.arguments or "{}"), ended]

    def _start_call(self, event: CallStarted) -> list[Wire]:
        return [_activity(event.call, state="running")]

    def _finish_call(self, event: CallFinished) -> list[Wire]:
        if event.call not in self._known:
            return []
        facts = {"status": event.state, **output_facts(event.output, self._session)}  # AG-UI has no other field for it
        result = {"type": "TOOL_CALL_RESULT", "messageId": f"{event.call}.result", "toolCallId": event.call}
        content = {"content": event.output.text, "role": "tool", "metadata": {"everturn": facts}}
        return [_activity(event.call, state=event.state), {**result, **content}]

    def _start_subagent(self, event: SubagentStarted) -> list[Wire]:
        return [_custom("below", call=event.call, session=event.session, turn=event.child)]

    def _add_late_result(self, event: LateResultReceived) -> list[Wire]:
        return [_custom("late", call=event.call, text=event.output.text)]

    # Gates -------------------------------------------------------------------------------------------------------

    def _open_gate(self, event: GateOpened) -> list[Wire]:
        self._gates[event.gate.id] = event.gate
        return [_custom("gate", **gate_facts(event.gate, self._session))]

    def _answer_gate(self, event: GateResolved) -> list[Wire]:
        return [_custom("answer", gate=event.gate, call=event.call, **resolution_facts(event.resolution))]

    def _claim(self, event: CallClaimed) -> list[Wire]:
        return [_custom("claim", gate=event.gate, until=event.claim.until)]

    def _interrupted(self) -> Wire:
        """The last event of a run at gates: the questions to a person or, if there are none, the client tools to run."""
        questions = [gate for gate in self._open_items.gates.values() if not self._is_client_call(gate)]
        if not questions:
            pending = [gate.call for gate in self._open_items.gates.values()]
            return self._run_event("RUN_FINISHED", outcome={"type": "success", "pendingToolCallIds": pending})
        interrupts = [self._interrupt(gate) for gate in questions]
        return self._run_event("RUN_FINISHED", outcome={"type": "interrupt", "interrupts": interrupts})

    def _is_client_call(self, gate: Gate) -> bool:
        return gate.kind == "client" and gate.tool in self._clients

    def _interrupt(self, gate: Gate) -> Wire:
        facts = gate_facts(gate, self._session)
        if gate.output is not None:
            facts["output"] = gate.output.text
        return without_empty(
            id=gate.id,
            reason="tool_result" if gate.kind == "result" else "tool_call" if gate.call else "question",
            message=gate.why or (gate.arguments if gate.kind == "question" else ""),
            toolCallId=gate.call,
            responseSchema=_schema(gate),
            expiresAt=datetime.fromtimestamp(gate.expires, UTC).isoformat() if gate.expires else None,
            metadata={"everturn": facts},
        )

    # Other events ------------------------------------------------------------------------------------------------

    def _add_message(self, event: MessageAdded) -> list[Wire]:
        return [_custom("message", **message_facts(event.message))]

    def _reach_limit(self, event: LimitReached) -> list[Wire]:
        return [_custom("notice", kind="limit", limit=event.limit, text=event.text)]

    def _refuse_input(self, event: InputRefused) -> list[Wire]:
        return [_custom("notice", kind="refused", message=event.message, text=event.text, by=event.by)]

    def _change_files(self, event: FilesChanged) -> list[Wire]:
        return [_custom("files", **files_facts(event))]

    def _title(self, event: TitleSet) -> list[Wire]:
        return [_custom("title", title=event.title)]

    def _complete(self, event: TurnCompleted) -> list[Wire]:
        done = self._run_event("RUN_FINISHED", outcome={"type": "success"}, usage=[_tokens(event.usage)])
        return [*self._leave_step(), done]

    def _cancel(self, event: TurnCancelled) -> list[Wire]:
        return [*self._leave_step(), self._run_event("RUN_FINISHED", outcome={"type": "cancelled"})]

    def _fail(self, event: TurnFailed) -> list[Wire]:
        error = {"type": "RUN_ERROR", "message": event.problem.text, "code": event.problem.kind}
        return [*self._leave_step(), error]

    ENCODERS: ClassVar[dict[type[Event], Callable[[Any, Any], list[Wire]]]] = {
        TurnStarted: _start_turn,
        AnswerStarted: _open_answer,
        MessageAdded: _add_message,
        InputRefused: _refuse_input,
        StepStarted: _start_step,
        StepRestarted: _restart_step,
        OutputRejected: _restart_step,
        StepFinished: _end_step,
        StepInterrupted: _end_step,
        GateOpened: _open_gate,
        GateResolved: _answer_gate,
        CallClaimed: _claim,
        NestedCallRequested: _request_nested_call,
        LimitReached: _reach_limit,
        CallStarted: _start_call,
        SubagentStarted: _start_subagent,
        CallFinished: _finish_call,
        FilesChanged: _change_files,
        LateResultReceived: _add_late_result,
        TurnCompleted: _complete,
        TurnFailed: _fail,
        TurnCancelled: _cancel,
        TitleSet: _title,
    }


def _arguments(call: str, text: str) -> Wire:
    return {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": text}


def _activity(call: str, **content: Any) -> Wire:
    head = {"messageId": f"{call}.activity", "activityType": "everturn.call"}
    return {"type": "ACTIVITY_SNAPSHOT", **head, "content": {"call": call, **content}}


def _custom(name: str, **value: Any) -> Wire:
    return {"type": "CUSTOM", "name": f"everturn.{name}", "value": value}


def _tokens(usage: Usage) -> Wire:
    return {"inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": usage.input + usage.output}


def _schema(gate: Gate) -> Wire:
    """The schema of an answer's payload; `status: cancelled` denies, too."""
    fields: Wire = {"approved": {"type": "boolean"}, "reason": {"type": "string"}}
    if gate.kind in ("call", "egress", "loop", "manual"):
        fields["arguments"] = {"type": "object"}
    if gate.kind in ("manual", "form", "client"):
        fields["result"] = parse_arguments(gate.form) if gate.form else {"type": "string"}
    if gate.kind == "result":
        fields["text"] = {"type": "string"}
    return {"type": "object", "properties": fields, "required": ["approved"]}
