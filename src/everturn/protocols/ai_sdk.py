"""AI SDK encoder: a turn as the UI message stream (v1) that `useChat` reads.

Clients fail on an unknown chunk, and older ones on an unknown field. So a stream sends only what its *level* supports (5, 6
or 7, the major version of the `ai` package); everything else becomes a `data-*` part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal

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
from everturn.core.parts import FilePart, Finish, ToolPart
from everturn.protocols.gate_facts import (
    file_url,
    files_facts,
    gate_facts,
    message_facts,
    output_facts,
    resolution_facts,
    usage_facts,
)
from everturn.protocols.sse_frames import DONE, encode_frame, parse_arguments, without_empty
from everturn.protocols.waiting_point import OpenItems, StreamPosition

Level = Literal[5, 6, 7]
Mode = Literal["open", "closed"]
"""What happens to the stream at a gate. Open: it stays open, and another request answers the gate. Closed: it ends, the
client's next request brings the answer, and the stream of that request continues."""

HEADERS: Final = {"x-vercel-ai-ui-message-stream": "v1"}
APPROVALS: Final[tuple[GateKind, ...]] = ("call", "egress", "loop", "result")
"""Gates that can be approved or denied. All others are sent as a `data-approval`, and answered through our own API."""

Chunk = dict[str, Any]

_REASONS: Final[dict[Finish, str]] = {
    "stop": "stop",
    "tool_calls": "tool-calls",
    "length": "length",
    "content_filter": "content-filter",
    "refusal": "content-filter",
    "other": "other",
    "cancelled": "other",
    "error": "error",
}


class AiSdkEncoder:
    """Encodes one stream. `session` is for URLs of files; `place` is where a stream continues that was closed at gates."""

    def __init__(
        self, session: str = "", *, level: Level = 6, mode: Mode = "closed", place: StreamPosition | None = None
    ) -> None:
        self.is_done = False
        self._session, self._level = session, level
        kinds = (*(APPROVALS if level > 5 else ()), "client")
        self._open_items = OpenItems(kinds, place) if mode == "closed" else OpenItems((), None)
        self._clients: frozenset[str] = frozenset()  # tools that the client runs
        self._message = ""  # the first answer, which is the client's one message
        self._early: list[Chunk] = []  # sent after `start`, which needs the id of the message
        self._has_begun = self._is_in_step = self._is_ended = False
        self._open: dict[str, str] = {}  # texts and reasonings that are still streaming, by id
        self._names: dict[str, str] = {}  # of the calls that the client knows
        self._streaming: set[str] = set()  # calls whose step has not ended
        self._discarded: dict[str, str] = {}
        self._not_started: dict[str, str] = {}  # calls that have not started -> their arguments
        self._gates: dict[str, Gate] = {}
        self._with_approval: set[str] = set()  # calls with an approval request
        self._finish: Finish = "stop"

    def begin(self) -> bytes:
        """Nothing: a stream starts with the id of its message."""
        return b""

    def feed(self, shown: TurnItem) -> bytes:
        """Encode the next event; b"" for what the previous stream has sent."""
        if self.is_done:
            return b""
        if isinstance(shown, Delta):
            return self._encode_chunks(self._delta(shown), not self._open_items.is_silent)
        if isinstance(shown, CallProgress):
            return self._encode_chunks(self._progress(shown), not self._open_items.is_silent)
        is_new = self._open_items.feed(shown)
        encode = self.ENCODERS.get(type(shown))
        data = self._encode_chunks(encode(self, shown) if encode is not None else [], is_new)
        if isinstance(shown, Terminal):
            return data + self._close()
        if self._open_items.is_end_of_stream:
            self.is_done = True
            data += self._encode_chunks([{"type": "finish-step"}, self._finished("tool-calls")], True) + self._close()
        return data

    def end(self, why: str) -> bytes:
        """The last chunks. A stream that is cut short ends with an error, or the client would take it for complete."""
        if self._is_ended:
            return b""
        if why == "over":
            return self._encode_chunks([self._finished("other")], True) + self._close()
        return (
            self._encode_chunks([{"type": "error", "errorText": f"the stream was cut short: {why}"}], True)
            + self._close()
        )

    def _close(self) -> bytes:
        self.is_done = self._is_ended = True
        return DONE

    def _encode_chunks(self, chunks: list[Chunk], is_new: bool) -> bytes:
        if not chunks or not is_new:
            return b""
        if not self._has_begun:
            self._has_begun = True
            start = without_empty(
                type="start", messageId=self._message, messageMetadata={"everturn": {"session": self._session}}
            )
            chunks = [start, *self._early, *chunks]
        return b"".join(map(encode_frame, chunks))

    def _finished(self, reason: str, **metadata: Any) -> Chunk:
        finish: Chunk = {"type": "finish"}
        if self._level > 5:
            finish["finishReason"] = reason
        return {**finish, "messageMetadata": {"everturn": metadata}} if metadata else finish

    # Deltas --------------------------------------------------------------------------------------------------------

    def _delta(self, delta: Delta) -> list[Chunk]:
        if isinstance(delta, CallDelta):
            chunks = self._call(delta.call, delta.name)
            if delta.text:
                chunks.append({"type": "tool-input-delta", "toolCallId": delta.call, "inputTextDelta": delta.text})
            return chunks
        kind, part = "reasoning" if isinstance(delta, ReasoningDelta) else "text", f"{delta.seq}.{delta.part}"
        # A part stays open until its step ends: deltas that a client has missed come then, after later parts.
        chunks = [] if part in self._open else [{"type": f"{kind}-start", "id": part}]
        self._open[part] = kind
        return [*chunks, {"type": f"{kind}-delta", "id": part, "delta": delta.text}]

    def _call(self, call: str, name: str) -> list[Chunk]:
        if self._names.get(call) == name:
            return []
        self._names[call] = name
        self._streaming.add(call)
        self._discarded.pop(call, None)
        # `providerExecuted` is left out: a client would run it, or (6.0.0) would not send the answer to its approval.
        return [{"type": "tool-input-start", "toolCallId": call, "toolName": name, "dynamic": True}]

    def _progress(self, progress: CallProgress) -> list[Chunk]:
        if self._level < 6 or progress.call not in self._names:
            return [
                self._data("progress", progress.call, {"call": progress.call, "text": progress.text}, transient=True)
            ]
        return [self._output(progress.call, progress.text, preliminary=True)]

    # Steps -------------------------------------------------------------------------------------------------------

    def _start_turn(self, event: TurnStarted) -> list[Chunk]:
        self._clients = frozenset(tool.name for tool in event.options.clients)
        return []

    def _open_answer(self, event: AnswerStarted) -> list[Chunk]:
        if self._message:
            return [self._data("answer", event.message.id, {"message": event.message.id})]
        self._message = event.message.id
        return []

    def _start_step(self, event: StepStarted) -> list[Chunk]:
        chunks = self._leave_step()
        self._is_in_step = True
        return [*chunks, {"type": "start-step"}]

    def _leave_step(self) -> list[Chunk]:
        was_in, self._is_in_step = self._is_in_step, False
        return [*self._end_parts(), {"type": "finish-step"}] if was_in else []

    def _restart_step(self, event: StepRestarted | OutputRejected) -> list[Chunk]:
        discarded = {call: self._names.pop(call) for call in self._streaming}
        self._streaming.clear()
        if self._level > 6:
            self._open.clear()
            return [{"type": "reset-step"}]
        self._discarded = discarded
        return [*self._end_parts(), self._data("restarted", f"step-{event.step}", {"step": event.step})]

    def _end_parts(self) -> list[Chunk]:
        ended, self._open = self._open, {}
        return [{"type": f"{kind}-end", "id": part} for part, kind in ended.items()]

    def _end_step(self, event: StepFinished | StepInterrupted) -> list[Chunk]:
        self._finish = event.finish
        chunks = self._end_parts()
        for part in event.parts:
            if type(part) is FilePart:
                chunks.append({"type": "file", "url": file_url(part, self._session), "mediaType": part.media_type})
            elif type(part) is ToolPart:
                chunks += self._call(part.call, part.name)
                if not part.arguments:  # a client reads the input of a call with an approval from the streamed deltas
                    chunks.append({"type": "tool-input-delta", "toolCallId": part.call, "inputTextDelta": "{}"})
                self._not_started[part.call] = part.arguments
        facts = {"step": event.step, "finish": event.finish, "usage": usage_facts(event.usage)}
        # Calls that the discarded attempt of the step had, and the new one has not.
        chunks += [self._failure(call, "the model took this call back") for call in self._discarded]
        self._discarded, self._streaming = {}, set()
        return [*chunks, self._data("step", f"step-{event.step}", facts)]

    # Calls -------------------------------------------------------------------------------------------------------

    def _request_nested_call(self, event: NestedCallRequested) -> list[Chunk]:
        self._not_started[event.call] = event.arguments
        delta = {"type": "tool-input-delta", "toolCallId": event.call, "inputTextDelta": event.arguments or "{}"}
        state = self._data("tool", event.call, {"call": event.call, "state": "pending", "parent": event.parent})
        return [*self._call(event.call, event.name), delta, state]

    def _start_call(self, event: CallStarted) -> list[Chunk]:
        self._not_started.pop(event.call, None)
        running = self._data("tool", event.call, {"call": event.call, "state": "running", "started": event.at})
        if self._names.get(event.call) in self._clients:  # not before the client may really run it
            self._not_started[event.call] = event.arguments
            return [running]
        return [self._input(event.call, event.arguments, is_provider_executed=True), running]

    def _input(self, call: str, arguments: str, *, is_provider_executed: bool) -> Chunk:
        return {
            "type": "tool-input-available",
            "toolCallId": call,
            "toolName": self._names.get(call, ""),
            "input": parse_arguments(arguments),
            "providerExecuted": is_provider_executed,
            "dynamic": True,
        }

    def _output(self, call: str, output: str, **more: Any) -> Chunk:
        return {"type": "tool-output-available", "toolCallId": call, "output": output, "dynamic": True, **more}

    def _failure(self, call: str, text: str) -> Chunk:
        return {"type": "tool-output-error", "toolCallId": call, "errorText": text, "dynamic": True}

    def _finish_call(self, event: CallFinished) -> list[Chunk]:
        call, output = event.call, event.output
        if call not in self._names:  # an output of an unknown call crashes a client
            return []
        chunks: list[Chunk] = []
        if (arguments := self._not_started.pop(call, None)) is not None:
            chunks.append(self._input(call, arguments, is_provider_executed=True))
        if event.state == "completed":
            fields = {"providerExecuted": True} if output.origin != "client" else {}
            chunks.append(self._output(call, output.text, **fields))
        elif event.state == "denied" and call in self._with_approval and self._level > 5:
            chunks.append({"type": "tool-output-denied", "toolCallId": call})
        else:
            chunks.append({**self._failure(call, output.text), "providerExecuted": True})
        return [
            *chunks,
            self._data("tool", call, {"call": call, "state": event.state, **output_facts(output, self._session)}),
        ]

    def _start_subagent(self, event: SubagentStarted) -> list[Chunk]:
        below = {"session": event.session, "turn": event.child}
        return [self._data("below", f"{event.call}.{event.number}", {"call": event.call, **below})]

    def _add_late_result(self, event: LateResultReceived) -> list[Chunk]:
        return [self._data("late", event.call, {"call": event.call, "text": event.output.text})]

    # Gates -------------------------------------------------------------------------------------------------------

    def _open_gate(self, event: GateOpened) -> list[Chunk]:
        gate, call = event.gate, event.gate.call
        self._gates[gate.id] = gate
        chunks: list[Chunk] = []
        if gate.kind == "client" and call in self._names:
            arguments = self._not_started.pop(call, gate.arguments)
            chunks.append(self._input(call, arguments, is_provider_executed=False))
        elif self._is_approval(gate):
            self._with_approval.add(call)
            if gate.output is not None:
                chunks.append(self._output(call, gate.output.text, preliminary=True))
            request = {"type": "tool-approval-request", "approvalId": gate.id, "toolCallId": call}
            if self._level > 6:
                subject = "result" if gate.kind == "result" else "call"
                request |= without_empty(reason=gate.why, approvalDescriptor={"subject": subject, "kind": gate.kind})
            chunks.append(request)
        return [*chunks, self._approval(gate)]

    def _is_approval(self, gate: Gate) -> bool:
        return self._level > 5 and gate.kind in APPROVALS and gate.call in self._names

    def _approval(self, gate: Gate, **more: Any) -> Chunk:
        """The whole gate, for clients that can show more than approve and deny."""
        return self._data("approval", gate.id, {**gate_facts(gate, self._session), **more})

    def _resolve_gate(self, event: GateResolved) -> list[Chunk]:
        gate, resolution = self._gates.get(event.gate), event.resolution
        if gate is None:
            return []
        chunks: list[Chunk] = []
        if self._is_approval(gate) and self._level > 6:
            response = without_empty(approvalId=gate.id, approved=resolution.allowed, reason=resolution.reason)
            chunks.append({"type": "tool-approval-response", **response})
        return [*chunks, self._approval(gate, resolution=resolution_facts(resolution))]

    def _claim(self, event: CallClaimed) -> list[Chunk]:
        gate = self._gates.get(event.gate)
        return [self._approval(gate, claimed=event.claim.until)] if gate is not None else []

    # Other events ------------------------------------------------------------------------------------------------

    def _add_message(self, event: MessageAdded) -> list[Chunk]:
        return [self._data("message", event.message.id, message_facts(event.message))]

    def _reach_limit(self, event: LimitReached) -> list[Chunk]:
        return [self._data("notice", event.limit, {"kind": "limit", "limit": event.limit, "text": event.text})]

    def _refuse_input(self, event: InputRefused) -> list[Chunk]:
        notice = {"kind": "refused", "message": event.message, "text": event.text, "by": event.by}
        return [self._data("notice", f"{event.message}.refused", notice)]

    def _change_files(self, event: FilesChanged) -> list[Chunk]:
        return [self._data("files", f"{event.step}.{event.after}", files_facts(event))]

    def _title(self, event: TitleSet) -> list[Chunk]:
        chunks = [self._data("title", "title", {"title": event.title}, transient=True)]
        if self._message or self._has_begun:
            return chunks
        self._early = chunks
        return []

    def _complete(self, event: TurnCompleted) -> list[Chunk]:
        usage = usage_facts(event.usage)
        return [*self._leave_step(), self._finished(_REASONS[self._finish], outcome="completed", usage=usage)]

    def _fail(self, event: TurnFailed) -> list[Chunk]:
        # A client reads nothing after an error.
        return [*self._leave_step(), {"type": "error", "errorText": event.problem.text}]

    def _cancel(self, event: TurnCancelled) -> list[Chunk]:
        return [*self._leave_step(), {"type": "abort"}]

    def _data(self, name: str, id: str, data: Any, *, transient: bool = False) -> Chunk:
        return {"type": f"data-{name}", "id": id, "data": data, **({"transient": True} if transient else {})}

    ENCODERS: ClassVar[dict[type[Event], Callable[[Any, Any], list[Chunk]]]] = {
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
        GateResolved: _resolve_gate,
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
