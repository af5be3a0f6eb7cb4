"""Redaction by role: removes from an event, message or gate what roles below approver may not see. Pure.

The recorded values of a tool's steps and waits are for approvers. A result under review, or one that was withheld or redacted in a review, is for approvers; others see that there is one. Of
private values not even the blob id is shown, because it is their hash, and a short value can be guessed from it. Internal
error texts name machines and accounts; others see the kind of error only. The system prompt, parameters and rules of an
agent are for approvers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from everturn.core.deltas import TurnItem
from everturn.core.events import (
    AgentSwitched,
    AnswerStarted,
    CallFinished,
    CompactionFailed,
    Event,
    FileUploadChanged,
    GateOpened,
    HookFinished,
    LateResultReceived,
    MessageAdded,
    MessagesImported,
    PermissionDecided,
    Problem,
    RequestRetried,
    StepFinished,
    StepInterrupted,
    StepStarted,
    ToolStepFinished,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnFinishing,
    TurnStarted,
    WaitFinished,
)
from everturn.core.gates import Gate
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.parts import Output, ToolPart

REDACTED_BLOB: Final = "redacted"
"""Replaces the blob id of private values."""

_NOT_NOW: Final = "the model does not answer at the moment; try again later"
_OPERATOR: Final = "the model is not set up correctly; the operator finds the reason in the server's log"
_PROBLEM_TEXTS: Final = {
    **dict.fromkeys(("rate", "server", "network", "stalled", "truncated"), _NOT_NOW),
    **dict.fromkeys(("key", "quota", "unknown_model", "request", "model", "response", "limit"), _OPERATOR),
    **dict.fromkeys(("hook", "clean-up"), "a plugin failed; the operator finds the reason in the server's log"),
    "internal": "internal error; the operator finds the reason in the server's log",
}

P = TypeVar("P")


def redact_gate(gate: Gate) -> Gate:
    """A gate without the result under review. Its hash, which covers the result, is removed too: guesses could be tested on it."""
    return gate if gate.kind != "result" else replace(gate, output=None, hash="", preview="")


def redact_event(event: Event) -> Event:
    """Redact an event; the event itself when there is nothing to hide."""
    redact = _REDACTORS.get(type(event))
    return event if redact is None else redact(event)


def redact_for_client(shown: TurnItem) -> TurnItem:
    """What a browser, or any other client that you do not trust, may be sent of a turn.

    `TurnStarted` keeps the user, the model, the agent, and the client's own tools; the system prompt, parameters, rules and
    budgets are removed. A permission decision is kept, but not the rule behind it. Results under review, private values and
    internal error texts are redacted as for roles below approver.
    """
    if not isinstance(shown, Event):
        return shown
    event = redact_event(shown)
    if isinstance(event, TurnStarted):
        turn_options = event.options
        options = TurnOptions(
            model=turn_options.model,
            agent=turn_options.agent,
            by=turn_options.by,
            clients=turn_options.clients,
            compact=turn_options.compact,
        )
        return replace(event, options=options)
    if isinstance(event, PermissionDecided):
        return replace(event, rule=None, why="", identity="", hash="", fingerprint="")
    return event


def redact_message(message: Message) -> Message:
    """Redact a message."""
    parts = _parts(message.parts)
    return message if parts is message.parts else replace(message, parts=parts)


def redact_messages(messages: Iterable[Message]) -> list[Message]:
    """Redact messages."""
    return [redact_message(message) for message in messages]


def _output(output: Output) -> Output:
    return replace(output, private=REDACTED_BLOB) if output.private else output


def _parts(parts: tuple[P, ...]) -> tuple[P, ...]:
    if not any(isinstance(part, ToolPart) and _has_private(part) for part in parts):
        return parts
    redacted: tuple[Any, ...] = tuple(_part(part) if isinstance(part, ToolPart) else part for part in parts)
    return redacted


def _has_private(part: ToolPart) -> bool:
    return bool((part.output and part.output.private) or (part.late and part.late.private))


def _part(part: Any) -> Any:
    return replace(part, output=part.output and _output(part.output), late=part.late and _output(part.late))


def _with_output(event: CallFinished | LateResultReceived) -> Event:
    return replace(event, output=_output(event.output)) if event.output.private else event


def _with_message(event: AnswerStarted | MessageAdded) -> Event:
    message = redact_message(event.message)
    return event if message is event.message else replace(event, message=message)


def _with_messages(event: MessagesImported) -> Event:
    return replace(event, messages=tuple(redact_messages(event.messages)))


def _with_parts(event: StepFinished) -> Event:
    parts = _parts(event.parts)
    return event if parts is event.parts else replace(event, parts=parts)


def _with_problem(event: StepInterrupted) -> Event:
    return replace(event, parts=_parts(event.parts), problem=event.problem and redact_problem(event.problem))


def _with_retry(event: RequestRetried | CompactionFailed) -> Event:
    return replace(event, problem=redact_problem(event.problem))


def redact_problem(problem: Problem) -> Problem:
    """Redact an error: its kind, and one text for all of its kind."""
    text = _PROBLEM_TEXTS.get(problem.kind)
    return problem if text is None else Problem(problem.kind, text, problem.phase)


def _with_end(event: TurnCompleted | TurnCancelled) -> Event:
    return replace(event, reports=tuple(map(redact_problem, event.reports))) if event.reports else event


def _with_ending(event: TurnFinishing) -> Event:
    return replace(event, problem=event.problem and redact_problem(event.problem))


def _with_failure(event: TurnFailed) -> Event:
    reports = tuple(map(redact_problem, event.reports))
    return replace(event, problem=redact_problem(event.problem), reports=reports)


def _with_options(event: TurnStarted) -> Event:
    """Without the system prompt, the parameters and the rules of the agent, which are the operator's."""
    options, message = _options(event.options), event.input and redact_message(event.input)
    if options is event.options and message is event.input:
        return event
    return replace(event, input=message, options=options)


def _with_agent(event: AgentSwitched) -> Event:
    options = _options(event.options)
    return event if options is event.options else replace(event, options=options)


def _without_instructions(event: StepStarted) -> Event:
    """Without the instructions that the agent gave for one step: they are part of its system prompt."""
    return replace(event, instructions="") if event.instructions else event


def _options(options: TurnOptions) -> TurnOptions:
    if not (options.system or options.params or options.rules or options.prompt):
        return options
    return replace(options, system="", params=None, rules=(), prompt=None)


def _with_deferred(event: HookFinished) -> Event:
    if not event.deferred:
        return event
    return replace(
        event,
        deferred=tuple(replace(deferred, message=redact_message(deferred.message)) for deferred in event.deferred),
    )


def _with_gate(event: GateOpened) -> Event:
    gate = redact_gate(event.gate)
    return event if gate is event.gate else replace(event, gate=gate)


def _without_value(event: ToolStepFinished | WaitFinished) -> Event:
    """Without a value that only the tool gets: the result of its call says what others may know of it."""
    return replace(event, value="") if event.value else event


def _without_reference(event: FileUploadChanged) -> Event:
    """Without what names the file at the provider."""
    return replace(event, reference="", account="")


_REDACTORS: dict[type[Event], Callable[[Any], Event]] = {
    GateOpened: _with_gate,
    ToolStepFinished: _without_value,
    WaitFinished: _without_value,
    CallFinished: _with_output,
    LateResultReceived: _with_output,
    AnswerStarted: _with_message,
    MessageAdded: _with_message,
    MessagesImported: _with_messages,
    StepFinished: _with_parts,
    RequestRetried: _with_retry,
    FileUploadChanged: _without_reference,
    CompactionFailed: _with_retry,
    StepInterrupted: _with_problem,
    TurnCompleted: _with_end,
    TurnCancelled: _with_end,
    TurnFinishing: _with_ending,
    TurnFailed: _with_failure,
    TurnStarted: _with_options,
    AgentSwitched: _with_agent,
    StepStarted: _without_instructions,
    HookFinished: _with_deferred,
}
