"""A2A encoder: a turn as a task of the Agent2Agent protocol 1.0, streamed or as one object.

A task is a turn and a context is a session. The answer is an artifact; its text grows by appended parts. Where the turn
waits for a person, the task is `input-required`: its status lists the questions, and the stream ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, get_args

from everturn import api
from everturn.core.deltas import CallProgress, Delta, TextDelta, TurnItem
from everturn.core.events import (
    AnswerStarted,
    CallFinished,
    CallStarted,
    Event,
    NestedCallRequested,
    OutputRejected,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    Terminal,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
)
from everturn.core.gates import Gate, GateKind
from everturn.core.messages import Message
from everturn.core.parts import FilePart, TextPart, ToolPart
from everturn.core.phases import Phase
from everturn.protocols.gate_facts import file_url, gate_facts
from everturn.protocols.sse_frames import encode_frame, without_empty
from everturn.protocols.waiting_point import OpenItems, StreamPosition

KINDS: Final[tuple[GateKind, ...]] = get_args(GateKind)
"""The data of an answer may be anything, so all kinds of gates can be answered."""

WORKING: Final = "TASK_STATE_WORKING"
INPUT_REQUIRED: Final = "TASK_STATE_INPUT_REQUIRED"
STATES: Final[dict[Phase, str]] = {
    Phase.IDLE: "TASK_STATE_SUBMITTED",
    Phase.COMPLETED: "TASK_STATE_COMPLETED",
    Phase.ERROR: "TASK_STATE_FAILED",
    Phase.CANCELLED: "TASK_STATE_CANCELED",
}
"""The task states of the phases in which nothing is under way; in all others a task is working."""

SEPARATOR: Final = "\n\n"  # between the texts of two steps

Wire = dict[str, Any]


class TaskNames:
    """The ids under which a client knows a turn, and the address of the server for links to files."""

    def __init__(self, task: str, context: str, session: str, base: str = "") -> None:
        self.task, self.context, self.session, self.base = task, context, session, base

    @property
    def ids(self) -> Wire:
        """The ids in an update."""
        return {"taskId": self.task, "contextId": self.context}


class A2aEncoder:
    """Encodes one stream of a task. `place` is where it continues, when the stream before it ended at gates."""

    is_waiting = False  # the stream ends where it would have to wait

    def __init__(
        self,
        request: str | int | None,
        names: TaskNames,
        place: StreamPosition | None = None,
        *,
        ends_at_gates: bool = True,
    ) -> None:
        self.is_done = False
        self._ends_at_gates = ends_at_gates
        self._request, self._names = request, names
        self._open_items = OpenItems(KINDS, place)
        self._is_ended = False
        self._artifact = ""
        self._kept = ""  # the text of finished steps
        self._step = ""  # the text of the current step
        self._part: tuple[int, int] | None = None  # the text part that streams: its step's position, and its number
        self._has_sent = False  # the client has a part of the artifact
        self._tools: dict[str, str] = {}  # call -> tool
        self._at = 0.0  # the time of the last event

    def begin(self) -> bytes:
        """The task, as submitted: updates follow."""
        status = {"state": WORKING}
        return self._frame({"task": {"id": self._names.task, "contextId": self._names.context, "status": status}})

    def feed(self, shown: TurnItem) -> bytes:
        """Encode the next event; b"" for what an earlier stream has sent."""
        if self.is_done:
            return b""
        was_silent = self._open_items.is_silent
        if isinstance(shown, Delta):
            return self._encode(self._delta(shown) if isinstance(shown, TextDelta) else [], was_silent)
        if isinstance(shown, CallProgress):
            return b""
        self._at = shown.at
        is_new = self._open_items.feed(shown)
        encode = self.ENCODERS.get(type(shown))
        updates = encode(self, shown) if encode is not None else []
        frames = self._encode(updates, not is_new)
        if isinstance(shown, Terminal):
            self.is_done = self._is_ended = True
        elif self._ends_at_gates and self._open_items.is_end_of_stream:
            frames += self._frame(self._status(INPUT_REQUIRED, self._questions(self._open_items.gates.values())))
            self.is_done = self._is_ended = True
        return frames

    def end(self, why: str) -> bytes:
        """Nothing more for a task that is over; a stream that is cut short ends with an error, and can be resumed."""
        if self._is_ended or why == "over":
            return b""
        self.is_done = self._is_ended = True
        error = {"code": -32603, "message": f"the stream was cut short: {why}; SubscribeToTask continues it"}
        return encode_frame({"jsonrpc": "2.0", "id": self._request, "error": error})

    def give_up(self) -> bytes:
        """End although a gate was not answered: nothing, because the stream ends at gates."""
        return b""

    def _encode(self, updates: Sequence[Wire], is_silent: bool) -> bytes:
        return b"" if is_silent else b"".join(map(self._frame, updates))

    def _frame(self, result: Wire) -> bytes:
        return encode_frame({"jsonrpc": "2.0", "id": self._request, "result": result})

    def _status(self, task_state: str, message: Wire | None = None, /, **facts: Any) -> Wire:
        status = without_empty(state=task_state, message=message, timestamp=_timestamp(self._at))
        metadata = {"metadata": {"everturn": facts}} if facts else {}
        return {"statusUpdate": {**self._names.ids, "status": status, **metadata}}

    # The artifact ----------------------------------------------------------------------------------------------------

    def _open_answer(self, event: AnswerStarted) -> list[Wire]:
        self._artifact, self._kept, self._step, self._has_sent = event.message.id, "", "", False
        return []

    def _delta(self, delta: TextDelta) -> list[Wire]:
        part = (delta.seq, delta.part)
        text = delta.text
        if part != self._part:
            self._part = part
            text = SEPARATOR + text if self._kept or self._step else text
        self._step += text
        return [self._grow([{"text": text}])]

    def _grow(self, parts: list[Wire], *, is_whole: bool = False) -> Wire:
        """An update of the artifact: it is appended to, or it replaces what the client has."""
        artifact = {"artifactId": self._artifact, "name": "answer", "parts": parts}
        append, self._has_sent = self._has_sent and not is_whole, True
        return {"artifactUpdate": {**self._names.ids, "artifact": artifact, **({"append": True} if append else {})}}

    def _start_step(self, event: StepStarted) -> list[Wire]:
        self._kept, self._step, self._part = self._kept + self._step, "", None
        return []

    def _restart_step(self, event: StepRestarted | OutputRejected) -> list[Wire]:
        discarded, self._step, self._part = self._step, "", None
        return [self._grow([{"text": self._kept}], is_whole=True)] if discarded else []

    def _end_step(self, event: StepFinished | StepInterrupted) -> list[Wire]:
        files: list[Wire] = []
        for part in event.parts:
            if type(part) is ToolPart:
                self._tools[part.call] = part.name
            elif type(part) is FilePart:
                files.append(_file(part, self._names))
        return [self._grow(files)] if files else []

    # Calls and the end -------------------------------------------------------------------------------------------------

    def _nested(self, event: NestedCallRequested) -> list[Wire]:
        self._tools[event.call] = event.name
        return []

    def _start_call(self, event: CallStarted) -> list[Wire]:
        return [self._status(WORKING, call=event.call, tool=self._tools.get(event.call, ""), state="running")]

    def _finish_call(self, event: CallFinished) -> list[Wire]:
        return [self._status(WORKING, call=event.call, tool=self._tools.get(event.call, ""), state=event.state)]

    def _questions(self, gates: Iterable[Gate]) -> Wire:
        return questions_message(gates, self._names)

    def _complete(self, event: TurnCompleted) -> list[Wire]:
        return [self._status("TASK_STATE_COMPLETED")]

    def _cancel(self, event: TurnCancelled) -> list[Wire]:
        return [self._status("TASK_STATE_CANCELED")]

    def _fail(self, event: TurnFailed) -> list[Wire]:
        text = _agent_message("problem", [{"text": event.problem.text}], self._names)
        return [self._status("TASK_STATE_FAILED", text, kind=event.problem.kind)]

    ENCODERS: ClassVar[dict[type[Event], Callable[[Any, Any], list[Wire]]]] = {
        AnswerStarted: _open_answer,
        StepStarted: _start_step,
        StepRestarted: _restart_step,
        OutputRejected: _restart_step,
        StepFinished: _end_step,
        StepInterrupted: _end_step,
        NestedCallRequested: _nested,
        CallStarted: _start_call,
        CallFinished: _finish_call,
        TurnCompleted: _complete,
        TurnCancelled: _cancel,
        TurnFailed: _fail,
    }


def task_object(view: api.TurnView, names: TaskNames, history: int | None = None) -> Wire:
    """A task as one object. `history` is how many of its messages are included; None is all of them."""
    is_waiting = view.phase == Phase.WAITING and bool(view.gates)
    status: Wire = {"state": INPUT_REQUIRED if is_waiting else STATES.get(view.phase, WORKING)}
    if is_waiting:
        status["message"] = questions_message(view.gates, names)
    elif view.problem is not None:
        status["message"] = _agent_message("problem", [{"text": view.problem.text}], names)
    users = [_user_message(message, names) for message in view.messages if message.role == "user"]
    users = users if history is None else users[len(users) - min(history, len(users)) :]
    artifacts = [
        {"artifactId": message.id, "name": "answer", "parts": parts}
        for message in view.messages
        if message.role == "assistant" and (parts := _answer_parts(message, names))
    ]
    task: Wire = {"id": names.task, "contextId": names.context, "status": status}
    return {**task, **({"history": users} if users else {}), **({"artifacts": artifacts} if artifacts else {})}


def questions_message(gates: Iterable[Gate], names: TaskNames) -> Wire:
    """The questions of a task that is input-required: as text for a person, and as data for a program."""
    facts: list[Wire] = []
    lines: list[str] = []
    for gate in gates:
        facts.append(gate_facts(gate, names.session))
        if gate.output is not None:
            facts[-1]["output"] = gate.output.text
        is_question = gate.kind == "question"
        lines.append(
            gate.arguments if is_question else f"{gate.tool} needs an answer{f': {gate.why}' if gate.why else ''}"
        )
    first = facts[0]["gate"] if facts else ""
    hint = f'Answer with a data part for each, such as {{"gate": "{first}", "approved": true}}.'
    return _agent_message(f"{first}.question", [{"text": "\n".join([*lines, hint])}, {"data": {"gates": facts}}], names)


def _agent_message(name: str, parts: list[Wire], names: TaskNames) -> Wire:
    return {"messageId": f"{names.task}.{name}", "role": "ROLE_AGENT", "parts": parts, **names.ids}


def _user_message(message: Message, names: TaskNames) -> Wire:
    parts = [_file(part, names) for part in message.parts if type(part) is FilePart]
    text: list[Wire] = [{"text": message.text}] if message.text else []
    return {"messageId": message.id, "role": "ROLE_USER", "parts": [*text, *parts], **names.ids}


def _answer_parts(message: Message, names: TaskNames) -> list[Wire]:
    texts = [part.text for part in message.parts if type(part) is TextPart and part.text]
    files = [_file(part, names) for part in message.parts if type(part) is FilePart]
    return [*([{"text": SEPARATOR.join(texts)}] if texts else []), *files]


def _file(part: FilePart, names: TaskNames) -> Wire:
    url = names.base + file_url(part, names.session)
    return without_empty(url=url, mediaType=part.media_type, filename=part.name)


def _timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
