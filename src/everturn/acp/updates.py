"""Encoder from events and deltas of a session to the bodies of `session/update`, and the stop reason of a turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from everturn.acp.connection import INTERNAL_ERROR, RpcError
from everturn.acp.texts import AcpTexts
from everturn.acp.tool_calls import describe_call, make_plan, text_content
from everturn.core.deltas import CallDelta, CallProgress, ReasoningDelta, TextDelta, TurnItem
from everturn.core.events import (
    CallFinished,
    CallStarted,
    Event,
    InputRefused,
    LateResultReceived,
    LimitReached,
    MessageAdded,
    NestedCallRequested,
    RequestRetried,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    Terminal,
    TitleSet,
    TurnCancelled,
    TurnEvent,
    TurnFailed,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.parts import Output, ToolPart

JsonObject = dict[str, Any]
MAX_OUTPUT: Final = 20_000  # characters of a result; the whole is in the log


class UpdateEncoder:
    """Encodes one session. `root` is the folder that paths are relative to."""

    def __init__(self, root: str, texts: AcpTexts) -> None:
        self._root, self._texts = root, texts
        self._calls: dict[str, JsonObject] = {}  # the fields of calls that were announced
        self._has_shown = False  # something of the current step was shown

    def encode(self, item: TurnItem, *, is_own: bool) -> Iterator[JsonObject]:
        """Yield the updates for an item; `is_own`: the editor sent the message of this turn, and shows it already."""
        match item:
            case TextDelta(text=text) if text:
                self._has_shown = True
                yield _chunk("agent_message_chunk", text)
            case ReasoningDelta(text=text) if text:
                self._has_shown = True
                yield _chunk("agent_thought_chunk", text)
            case CallDelta(call=call, name=name):
                if call not in self._calls:
                    yield self._announce(call, name, "")
            case CallProgress(call=call, text=text) if call in self._calls and text:
                yield _update(call, content=[text_content(text)])
            case TurnStarted(input=Message() as message) if not is_own:
                yield from _user_chunks(message)
            case MessageAdded(message=message, command=command) if command and not is_own:
                yield from _user_chunks(message)
            case Event():
                yield from self._encode_step(item)
                yield from self._encode_call(item)
            case _:
                pass

    def _encode_step(self, event: Event) -> Iterator[JsonObject]:
        match event:
            case InputRefused(text=text):
                yield _chunk("agent_message_chunk", text)
            case StepStarted():
                self._has_shown = False
            case StepRestarted() if self._has_shown:
                self._has_shown = False
                yield _chunk("agent_thought_chunk", self._texts.restarted)
            case RequestRetried(problem=problem):
                yield _chunk("agent_thought_chunk", problem.text)
            case LimitReached(text=text):
                yield _chunk("agent_thought_chunk", text)
            case StepInterrupted(parts=parts):
                for part in parts:
                    if isinstance(part, ToolPart) and part.call in self._calls:
                        yield _update(part.call, status="failed")
            case TitleSet(title=title):
                yield {"sessionUpdate": "session_info_update", "title": title}
            case _:
                pass

    def _encode_call(self, event: Event) -> Iterator[JsonObject]:
        match event:
            case StepFinished(parts=parts):
                for part in parts:
                    if isinstance(part, ToolPart):
                        yield from self._called(part.call, part.name, part.arguments)
            case NestedCallRequested(call=call, name=name, arguments=arguments):
                yield from self._called(call, name, arguments)
            case CallStarted(call=call, tool=name, arguments=arguments):
                if call not in self._calls:
                    yield self._announce(call, name, arguments)
                yield _update(call, status="in_progress", **self._described(call, name, arguments))
            case CallFinished(call=call, state=state, output=output):
                status = "completed" if state == "completed" else "failed"
                yield _update(call, status=status, **self._result(call, output))
            case LateResultReceived(call=call, output=output):
                yield _update(call, **self._result(call, output))
            case _:
                pass

    def _called(self, call: str, name: str, arguments: str) -> Iterator[JsonObject]:
        if call in self._calls:
            yield _update(call, status="pending", **self._described(call, name, arguments))
        else:
            yield self._announce(call, name, arguments)
        if (plan := make_plan(name, arguments)) is not None:
            yield {"sessionUpdate": "plan", "entries": plan}

    def _announce(self, call: str, name: str, arguments: str) -> JsonObject:
        fields = self._described(call, name, arguments)
        return {"sessionUpdate": "tool_call", "toolCallId": call, "status": "pending", **fields}

    def _described(self, call: str, name: str, arguments: str) -> JsonObject:
        fields = self._calls[call] = describe_call(name, arguments, self._root)
        return fields

    def _result(self, call: str, output: Output) -> JsonObject:
        diffs = self._calls.get(call, {}).get("content", [])
        text = output.text if len(output.text) <= MAX_OUTPUT else f"{output.text[:MAX_OUTPUT]}\n…"
        return {"content": [*diffs, text_content(text)] if text else list(diffs)}


def _update(call: str, **fields: Any) -> JsonObject:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call, **fields}


def _chunk(kind: str, text: str) -> JsonObject:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def message_chunk(text: str) -> JsonObject:
    """A text of the agent that is in no log."""
    return _chunk("agent_message_chunk", text)


def _user_chunks(message: Message) -> Iterator[JsonObject]:
    if message.text:
        yield _chunk("user_message_chunk", message.text)


class TurnOutcome:
    """What became of a turn: its stop reason, or the error that its prompt is answered with."""

    def __init__(self) -> None:
        self._reason = "end_turn"

    def feed(self, event: TurnEvent) -> str | RpcError | None:
        """Record an event; return the outcome once the turn is over."""
        match event:
            case StepStarted(closing=True):
                self._reason = "max_turn_requests"
            case LimitReached(limit=limit):
                self._reason = {"tokens": "max_tokens", "denied": "cancelled"}.get(limit, "max_turn_requests")
            case StepFinished(finish="length") if self._reason == "end_turn" and not event.continues:
                self._reason = "max_tokens"
            case StepFinished(finish="content_filter" | "refusal") | InputRefused():
                self._reason = "refusal"
            case StepFinished(refused=refused) if refused:
                self._reason = "refusal"
            case TurnCancelled():
                return "cancelled"
            case TurnFailed(problem=problem):
                return RpcError(INTERNAL_ERROR, problem.text, {"kind": problem.kind})
            case _:
                pass
        return self._reason if isinstance(event, Terminal) else None
