"""Responses encoder: a turn as OpenAI Responses events, or as one whole response.

The sequence number of an event is computed from the log, not counted: which event of the turn it follows, which part it
belongs to, and how many characters of it were sent. So it is the same in every stream, live or later, however the deltas
are cut; a client that resumes after a number gets exactly the characters after it.

Tools that run on the server are `mcp_call` items, from when they start. A call of a client tool, or an approval request,
ends the response; the turn continues in another one.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everturn.core.deltas import Delta, ReasoningDelta, TextDelta, TurnItem
from everturn.core.events import (
    CallFinished,
    CallStarted,
    Event,
    GateOpened,
    OutputRejected,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnSuspended,
)
from everturn.core.gates import Gate
from everturn.core.parts import Finish, ToolPart, Usage
from everturn.protocols.openai_common import APPROVABLE, TurnSegments, approval_name, call_name
from everturn.protocols.responses_objects import (
    ResponseHeader,
    content_part,
    message_item,
    reasoning_item,
    response_object,
)

PART_NUMBERS: Final = 10**7  # numbers for one part: more than it has characters
EVENT_NUMBERS: Final = (
    10**10
)  # for one event, and the parts that stream after it; 900,000 of them fit where JSON counts exactly
LABEL: Final = "everturn"  # of the server whose tools these are
_INCOMPLETE: Final[dict[Finish, str]] = {"length": "max_output_tokens", "content_filter": "content_filter"}


class _OutputItem:
    """An item of the output, as far as it is known."""

    def __init__(self, index: int, body: dict[str, Any]) -> None:
        self.index, self.body = index, body
        self.pieces: list[str] = []
        self.is_done = False


class ResponsesEncoder:
    """Encodes one response: a segment of a turn, after a sequence number."""

    def __init__(self, about: ResponseHeader, after: int = -1) -> None:
        self.is_done = False
        self.is_waiting = False  # for a person to answer a gate of an earlier response
        self.segments = TurnSegments(about.segment)
        self.status = "in_progress"
        self._about, self._after = about, after
        self._items: list[_OutputItem] = []
        self._step: dict[int, _OutputItem] = {}  # parts of the step that streams
        self._calls: dict[str, _OutputItem] = {}  # calls that run
        self._requested: dict[
            str, tuple[str, str]
        ] = {}  # calls as the model requested them, or as they started: tool, arguments
        self._approval_requests: dict[str, str] = {}  # call -> its approval request
        self._indexes = 0
        self._number = 0  # of the next event that is not a delta
        self._last = max(after, 0)
        self._usage = Usage()
        self._finish: Finish = "stop"
        self._error: dict[str, Any] | None = None

    # Streamed ----------------------------------------------------------------------------------------------------

    def begin(self) -> bytes:
        """The events that the response was created and is in progress."""
        body = self.whole()
        return self._send_event("response.created", response=body) + self._send_event(
            "response.in_progress", response=body
        )

    def feed(self, shown: TurnItem) -> bytes:
        """Encode items as they are produced."""
        if isinstance(shown, TextDelta | ReasoningDelta):
            return self._delta(shown) if self.segments.is_mine(shown) else b""
        if not isinstance(shown, Event):
            return b""  # the arguments of a call are sent when they are complete; progress is not sent
        is_mine = self.segments.apply(shown)
        self._remember(shown)
        if not is_mine or self.is_done:
            return b""
        self._number = self.segments.ordinal * EVENT_NUMBERS
        self.is_waiting = (
            isinstance(shown, TurnSuspended) and bool(self.segments.open) and not self.segments.is_suspended
        )
        return self._event(shown)

    def end(self, why: str) -> bytes:
        """Nothing more; or an error that says how to resume."""
        if self.is_done:
            return b""
        if why == "over":  # the turn was cancelled before it began
            return self._end("cancelled")
        self.is_done = True
        resume_url = f"GET /v1/responses/{self._about.id}?stream=true&starting_after={self._last}"
        body = {
            "type": "error",
            "code": why,
            "message": f"the stream was cut short; go on with {resume_url}",
            "param": None,
        }
        return _encode_event({**body, "sequence_number": self._last})

    def give_up(self) -> bytes:
        """Nothing: a response in progress can be retrieved later."""
        return b""

    # Whole -------------------------------------------------------------------------------------------------------

    def whole(self) -> dict[str, Any]:
        """The response as it is now."""
        about = self._about
        why = _INCOMPLETE.get(self._finish, "gate") if self.status == "incomplete" else ""
        output, usage = [item.body for item in self._items], None if self.status == "in_progress" else self._usage
        gates = self.segments.open if self.segments.is_suspended else ()
        return response_object(about, self.status, why, output, usage, self._error, gates)

    # Parts -------------------------------------------------------------------------------------------------------

    def _delta(self, delta: Delta) -> bytes:
        base = (
            self.segments.ordinal * EVENT_NUMBERS
            + min(delta.part + 1, EVENT_NUMBERS // PART_NUMBERS - 1) * PART_NUMBERS
        )
        is_text = isinstance(delta, TextDelta)
        data = b""
        item = self._step.get(delta.part)
        if item is None:
            name = f"{'msg' if is_text else 'rs'}_{self._about.turn}_{self.segments.total}_{delta.part}"
            body = message_item(name, "", False) if is_text else reasoning_item(name, "", False)
            item = self._step[delta.part] = self._new(body)
            data += self._send_event("response.output_item.added", base, output_index=item.index, item=body)
            data += self._send_part_event(item, "response.content_part.added", base + 1, part=content_part(is_text, ""))
        item.pieces.append(delta.text)
        end = base + 1 + min(delta.offset + len(delta.text), PART_NUMBERS - 2)
        if end <= self._after:
            return data
        text = delta.text[max(self._after - base - 1 - delta.offset, 0) :]
        also: dict[str, Any] = {"logprobs": []} if is_text else {}
        kind = "response.output_text.delta" if is_text else "response.reasoning_text.delta"
        return data + self._send_part_event(item, kind, end, delta=text, **also)

    def _close_step(self, status: str) -> bytes:
        """Close all parts of a step. Only the log says that they are complete: some deltas may have been missed."""
        data = b""
        for at in sorted(self._step):
            item = self._step[at]
            text, is_text = "".join(item.pieces), item.body["type"] == "message"
            also: dict[str, Any] = {"logprobs": []} if is_text else {}
            kind = "response.output_text.done" if is_text else "response.reasoning_text.done"
            data += self._send_part_event(item, kind, text=text, **also)
            data += self._send_part_event(item, "response.content_part.done", part=content_part(is_text, text))
            body = (message_item if is_text else reasoning_item)(item.body["id"], text, True)
            data += self._close(item, {**body, "status": status})
        self._step = {}
        return data

    # Events ------------------------------------------------------------------------------------------------------

    def _remember(self, event: Event) -> None:
        """Remember what later segments need to know of this event."""
        if isinstance(event, StepFinished):
            self._requested.update(
                {part.call: (part.name, part.arguments) for part in event.parts if type(part) is ToolPart}
            )
        elif isinstance(event, CallStarted):
            self._requested[event.call] = (event.tool, event.arguments)
        elif isinstance(event, GateOpened) and event.gate.kind in APPROVABLE:
            self._approval_requests[event.gate.call] = approval_name(self._about.session, event.gate)

    def _event(self, event: Event) -> bytes:
        match event:
            case StepStarted():
                self._step = {}
            case StepRestarted() | OutputRejected():  # what was sent of the step is void, and is not in the response
                dropped = list(self._step.values())
                data = self._close_step("incomplete")
                self._items = [item for item in self._items if item not in dropped]
                return data
            case StepFinished(usage=usage, finish=finish):
                self._usage, self._finish = self._usage + usage, finish
                return self._close_step("completed")
            case StepInterrupted(usage=usage, finish=finish):
                self._usage, self._finish = self._usage + usage, finish
                return self._close_step("incomplete")
            case GateOpened(gate=gate):
                return self._open_gate(gate)
            case CallStarted(call=call, tool=tool, arguments=arguments):
                return self._start(call, tool, arguments)
            case CallFinished():
                return self._finish_call(event)
            case TurnSuspended() if self.segments.is_suspended:
                is_ours = self.segments.calls or self.segments.approvals
                return self._end("completed" if is_ours else "incomplete")
            case TurnCompleted():
                return self._end("incomplete" if self._finish in _INCOMPLETE else "completed")
            case TurnFailed(problem=problem):
                self._error = {"code": "server_error", "message": problem.text}
                return self._end("failed")
            case TurnCancelled():
                return self._end("cancelled")
            case _:
                pass  # see UNSEEN in the tests: every event is either above or listed there
        return b""

    def _open_gate(self, gate: Gate) -> bytes:
        if gate in self.segments.calls:
            name = call_name(self._about.session, gate)
            body = {"id": f"fc_{name}", "type": "function_call", "call_id": name, "name": gate.tool}
            item = self._new({**body, "arguments": "", "status": "in_progress"})
            data = self._send_event("response.output_item.added", output_index=item.index, item=item.body)
            at: dict[str, Any] = {"item_id": f"fc_{name}", "output_index": item.index}
            data += self._send_event("response.function_call_arguments.delta", delta=gate.arguments, **at)
            data += self._send_event(
                "response.function_call_arguments.done", arguments=gate.arguments, name=gate.tool, **at
            )
            return data + self._close(item, {**body, "arguments": gate.arguments, "status": "completed"})
        if gate.kind not in APPROVABLE:
            return b""  # named in `everturn` when the response ends
        name = approval_name(self._about.session, gate)
        body = {"id": name, "type": "mcp_approval_request", "name": gate.tool, "server_label": LABEL}
        item = self._new({**body, "arguments": gate.arguments})
        return self._send_event("response.output_item.added", output_index=item.index, item=item.body) + self._close(
            item, item.body
        )

    def _is_unseen(self, call: str, tool: str) -> bool:
        """Whether a call is a client tool's, or a nested one that a tool has requested: neither is an `mcp_call`."""
        started = self.segments.started
        return call in self.segments.nested_calls or (
            started is not None and any(client_tool.name == tool for client_tool in started.options.clients)
        )

    def _start(self, call: str, tool: str, arguments: str) -> bytes:
        if self._is_unseen(call, tool):
            return b""
        item = self._calls[call] = self._new(self._mcp(call, tool, arguments))
        at: dict[str, Any] = {"item_id": item.body["id"], "output_index": item.index}
        data = self._send_event(
            "response.output_item.added", output_index=item.index, item={**item.body, "arguments": ""}
        )
        data += self._send_event("response.mcp_call.in_progress", **at)
        return data + self._send_event("response.mcp_call_arguments.done", arguments=arguments, **at)

    def _finish_call(self, event: CallFinished) -> bytes:
        item, data = self._calls.pop(event.call, None), b""
        if item is None:  # it never started, or in an earlier response
            requested = self._requested.get(event.call)
            if requested is None or self._is_unseen(event.call, requested[0]):
                return b""
            item = self._new(self._mcp(event.call, *requested))
            data = self._send_event("response.output_item.added", output_index=item.index, item=item.body)
        is_good, text = event.state == "completed", event.output.text
        error = None if is_good else {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}
        kind = "completed" if is_good else "failed"
        data += self._send_event(f"response.mcp_call.{kind}", item_id=item.body["id"], output_index=item.index)
        result = {"output": text if is_good else None, "error": error, "status": kind}
        return data + self._close(item, {**item.body, **result})

    def _mcp(self, call: str, tool: str, arguments: str) -> dict[str, Any]:
        body = {"id": f"mcp_{call}", "type": "mcp_call", "name": tool, "arguments": arguments, "server_label": LABEL}
        approval_request = self._approval_requests.get(call)
        return {**body, "approval_request_id": approval_request, "output": None, "error": None, "status": "in_progress"}

    def _end(self, status: str) -> bytes:
        data = self._close_step("incomplete")
        for item in self._calls.values():
            data += self._close(item, {**item.body, "status": "incomplete"})
        self.status, self.is_done = status, True
        # There is no event for a cancelled response; its `status` says it.
        kind = "incomplete" if status == "cancelled" else status
        return data + self._send_event(f"response.{kind}", response=self.whole())

    # Bytes -------------------------------------------------------------------------------------------------------

    def _new(self, body: dict[str, Any]) -> _OutputItem:
        item = _OutputItem(self._indexes, body)
        self._indexes += 1
        self._items.append(item)
        return item

    def _close(self, item: _OutputItem, body: dict[str, Any]) -> bytes:
        item.body = body
        return self._send_event("response.output_item.done", output_index=item.index, item=body)

    def _send_part_event(self, item: _OutputItem, kind: str, number: int = -1, **fields: Any) -> bytes:
        return self._send_event(
            kind, number, item_id=item.body["id"], output_index=item.index, content_index=0, **fields
        )

    def _send_event(self, kind: str, number: int = -1, **fields: Any) -> bytes:
        if number < 0:
            number, self._number = self._number, self._number + 1
        if number <= self._after:
            return b""
        self._last = number
        return _encode_event({"type": kind, "sequence_number": number, **fields})


def _encode_event(body: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (body["type"].encode(), msgspec.json.encode(body))
