"""A turn → OpenAI Responses: events for a stream, or one whole response.

Every event has a number that is read off the log, and not counted: which event of the turn it follows, which part it is
of, and how many characters of it were shown. So it is the same whoever streams it, live or later, in whatever pieces; and whoever brings
a number back is given what comes after it, to the character.

Tools that run here are `mcp_call` items, from when they start. What is asked of the client, a call or a yes or no, ends
the response; the turn goes on in another one.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from everturn.core.asking import Gate
from everturn.core.deltas import Delta, ReasoningDelta, Shown, TextDelta
from everturn.core.events import (
    CallSettled,
    CallStarted,
    Event,
    GateOpened,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnParked,
)
from everturn.core.parts import Finish, ToolPart, Usage
from everturn.protocols.openai import APPROVABLE, Segments, approval_name, call_name
from everturn.protocols.responses_bodies import About, message, part, response, thought

PART: Final = 10**7  # numbers for one part: more than it has characters
EVENT: Final = (
    10**10
)  # for one event, and the parts that stream after it; 900,000 of them fit where JSON counts exactly
LABEL: Final = "everturn"  # of the server whose tools these are
_INCOMPLETE: Final[dict[Finish, str]] = {"length": "max_output_tokens", "content_filter": "content_filter"}


class _Item:
    """An item of the output, as far as it is known."""

    def __init__(self, index: int, body: dict[str, Any]) -> None:
        self.index, self.body = index, body
        self.pieces: list[str] = []
        self.is_done = False


class Responses:
    """One response: a segment of a turn, from after a number on."""

    def __init__(self, about: About, after: int = -1) -> None:
        self.is_done = False
        self.is_waiting = False  # for a person, who is asked elsewhere and was before
        self.segments = Segments(about.segment)
        self.status = "in_progress"
        self._about, self._after = about, after
        self._items: list[_Item] = []
        self._step: dict[int, _Item] = {}  # parts of the step that streams
        self._calls: dict[str, _Item] = {}  # calls that run
        self._made: dict[str, tuple[str, str]] = {}  # calls as the model made them, or as they started: tool, arguments
        self._approved: dict[str, str] = {}  # a call -> what was asked about it
        self._indexes = 0
        self._number = 0  # of the next event that is not a delta
        self._last = max(after, 0)
        self._usage = Usage()
        self._finish: Finish = "stop"
        self._error: dict[str, Any] | None = None

    # As a stream -------------------------------------------------------------------------------------------------

    def begin(self) -> bytes:
        """That there is a response, and that it is under way."""
        body = self.whole()
        return self._say("response.created", response=body) + self._say("response.in_progress", response=body)

    def feed(self, shown: Shown) -> bytes:
        """Items as they come to be."""
        if isinstance(shown, TextDelta | ReasoningDelta):
            return self._delta(shown) if self.segments.is_mine(shown) else b""
        if not isinstance(shown, Event):
            return b""  # the arguments of a call are said once they are whole; progress is not said
        is_mine = self.segments.take(shown)
        self._note(shown)
        if not is_mine or self.is_done:
            return b""
        self._number = self.segments.ordinal * EVENT
        self.is_waiting = isinstance(shown, TurnParked) and bool(self.segments.open) and not self.segments.is_parked
        return self._event(shown)

    def end(self, why: str) -> bytes:
        """Nothing more; or where to go on."""
        if self.is_done:
            return b""
        if why == "over":  # it was cancelled before it began
            return self._end("cancelled")
        self.is_done = True
        again = f"GET /v1/responses/{self._about.id}?stream=true&starting_after={self._last}"
        body = {"type": "error", "code": why, "message": f"the stream was cut short; go on with {again}", "param": None}
        return _written({**body, "sequence_number": self._last})

    def give_up(self) -> bytes:
        """Nothing: a response that is under way can be asked for again."""
        return b""

    # As a whole --------------------------------------------------------------------------------------------------

    def whole(self) -> dict[str, Any]:
        """The response as it is now."""
        about = self._about
        why = _INCOMPLETE.get(self._finish, "gate") if self.status == "incomplete" else ""
        output, usage = [item.body for item in self._items], None if self.status == "in_progress" else self._usage
        gates = self.segments.open if self.segments.is_parked else ()
        return response(about, self.status, why, output, usage, self._error, gates)

    # Parts -------------------------------------------------------------------------------------------------------

    def _delta(self, delta: Delta) -> bytes:
        base = self.segments.ordinal * EVENT + min(delta.part + 1, EVENT // PART - 1) * PART
        is_text = isinstance(delta, TextDelta)
        said = b""
        item = self._step.get(delta.part)
        if item is None:
            name = f"{'msg' if is_text else 'rs'}_{self._about.turn}_{self.segments.total}_{delta.part}"
            body = message(name, "", False) if is_text else thought(name, "", False)
            item = self._step[delta.part] = self._new(body)
            said += self._say("response.output_item.added", base, output_index=item.index, item=body)
            said += self._at(item, "response.content_part.added", base + 1, part=part(is_text, ""))
        item.pieces.append(delta.text)
        end = base + 1 + min(delta.offset + len(delta.text), PART - 2)
        if end <= self._after:
            return said
        text = delta.text[max(self._after - base - 1 - delta.offset, 0) :]
        also: dict[str, Any] = {"logprobs": []} if is_text else {}
        kind = "response.output_text.delta" if is_text else "response.reasoning_text.delta"
        return said + self._at(item, kind, end, delta=text, **also)

    def _close_step(self, status: str) -> bytes:
        """All parts of a step are whole when the log says so, and not before: some of it may have been missed."""
        said = b""
        for at in sorted(self._step):
            item = self._step[at]
            text, is_text = "".join(item.pieces), item.body["type"] == "message"
            also: dict[str, Any] = {"logprobs": []} if is_text else {}
            kind = "response.output_text.done" if is_text else "response.reasoning_text.done"
            said += self._at(item, kind, text=text, **also)
            said += self._at(item, "response.content_part.done", part=part(is_text, text))
            body = (message if is_text else thought)(item.body["id"], text, True)
            said += self._close(item, {**body, "status": status})
        self._step = {}
        return said

    # Events ------------------------------------------------------------------------------------------------------

    def _note(self, event: Event) -> None:
        """What is said later is known from events of earlier segments too."""
        if isinstance(event, StepFinished):
            self._made.update(
                {part.call: (part.name, part.arguments) for part in event.parts if type(part) is ToolPart}
            )
        elif isinstance(event, CallStarted):
            self._made[event.call] = (event.tool, event.arguments)
        elif isinstance(event, GateOpened) and event.gate.kind in APPROVABLE:
            self._approved[event.gate.call] = approval_name(self._about.session, event.gate)

    def _event(self, event: Event) -> bytes:
        match event:
            case StepStarted():
                self._step = {}
            case StepRestarted():  # what was shown of it is void, and is not in the response
                dropped = list(self._step.values())
                said = self._close_step("incomplete")
                self._items = [item for item in self._items if item not in dropped]
                return said
            case StepFinished(usage=usage, finish=finish):
                self._usage, self._finish = self._usage + usage, finish
                return self._close_step("completed")
            case StepInterrupted(usage=usage, finish=finish):
                self._usage, self._finish = self._usage + usage, finish
                return self._close_step("incomplete")
            case GateOpened(gate=gate):
                return self._asked(gate)
            case CallStarted(call=call, tool=tool, arguments=arguments):
                return self._start(call, tool, arguments)
            case CallSettled():
                return self._settle(event)
            case TurnParked() if self.segments.is_parked:
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
                pass  # see UNSEEN in the tests: every event is either above or told not to be seen here
        return b""

    def _asked(self, gate: Gate) -> bytes:
        if gate in self.segments.calls:
            name = call_name(self._about.session, gate)
            body = {"id": f"fc_{name}", "type": "function_call", "call_id": name, "name": gate.tool}
            item = self._new({**body, "arguments": "", "status": "in_progress"})
            said = self._say("response.output_item.added", output_index=item.index, item=item.body)
            at: dict[str, Any] = {"item_id": f"fc_{name}", "output_index": item.index}
            said += self._say("response.function_call_arguments.delta", delta=gate.arguments, **at)
            said += self._say("response.function_call_arguments.done", arguments=gate.arguments, name=gate.tool, **at)
            return said + self._close(item, {**body, "arguments": gate.arguments, "status": "completed"})
        if gate.kind not in APPROVABLE:
            return b""  # named in `everturn` when the response ends
        name = approval_name(self._about.session, gate)
        body = {"id": name, "type": "mcp_approval_request", "name": gate.tool, "server_label": LABEL}
        item = self._new({**body, "arguments": gate.arguments})
        return self._say("response.output_item.added", output_index=item.index, item=item.body) + self._close(
            item, item.body
        )

    def _is_unseen(self, call: str, tool: str) -> bool:
        """Whether a call is one of the client's, or one that a tool has made: no model sees that, and nobody here."""
        started = self.segments.started
        return call in self.segments.inner or (
            started is not None and any(one.name == tool for one in started.options.clients)
        )

    def _start(self, call: str, tool: str, arguments: str) -> bytes:
        if self._is_unseen(call, tool):
            return b""
        item = self._calls[call] = self._new(self._mcp(call, tool, arguments))
        at: dict[str, Any] = {"item_id": item.body["id"], "output_index": item.index}
        said = self._say("response.output_item.added", output_index=item.index, item={**item.body, "arguments": ""})
        said += self._say("response.mcp_call.in_progress", **at)
        return said + self._say("response.mcp_call_arguments.done", arguments=arguments, **at)

    def _settle(self, event: CallSettled) -> bytes:
        item, said = self._calls.pop(event.call, None), b""
        if item is None:  # it never started, or in an earlier response
            made = self._made.get(event.call)
            if made is None or self._is_unseen(event.call, made[0]):
                return b""
            item = self._new(self._mcp(event.call, *made))
            said = self._say("response.output_item.added", output_index=item.index, item=item.body)
        is_good, text = event.state == "completed", event.output.text
        error = None if is_good else {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}
        kind = "completed" if is_good else "failed"
        said += self._say(f"response.mcp_call.{kind}", item_id=item.body["id"], output_index=item.index)
        result = {"output": text if is_good else None, "error": error, "status": kind}
        return said + self._close(item, {**item.body, **result})

    def _mcp(self, call: str, tool: str, arguments: str) -> dict[str, Any]:
        body = {"id": f"mcp_{call}", "type": "mcp_call", "name": tool, "arguments": arguments, "server_label": LABEL}
        asked = self._approved.get(call)
        return {**body, "approval_request_id": asked, "output": None, "error": None, "status": "in_progress"}

    def _end(self, status: str) -> bytes:
        said = self._close_step("incomplete")
        for item in self._calls.values():
            said += self._close(item, {**item.body, "status": "incomplete"})
        self.status, self.is_done = status, True
        # There is no event for what was cancelled; its `status` says it.
        kind = "incomplete" if status == "cancelled" else status
        return said + self._say(f"response.{kind}", response=self.whole())

    # Bytes -------------------------------------------------------------------------------------------------------

    def _new(self, body: dict[str, Any]) -> _Item:
        item = _Item(self._indexes, body)
        self._indexes += 1
        self._items.append(item)
        return item

    def _close(self, item: _Item, body: dict[str, Any]) -> bytes:
        item.body = body
        return self._say("response.output_item.done", output_index=item.index, item=body)

    def _at(self, item: _Item, kind: str, number: int = -1, **fields: Any) -> bytes:
        return self._say(kind, number, item_id=item.body["id"], output_index=item.index, content_index=0, **fields)

    def _say(self, kind: str, number: int = -1, **fields: Any) -> bytes:
        if number < 0:
            number, self._number = self._number, self._number + 1
        if number <= self._after:
            return b""
        self._last = number
        return _written({"type": kind, "sequence_number": number, **fields})


def _written(body: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (body["type"].encode(), msgspec.json.encode(body))
