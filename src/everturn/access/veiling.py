"""What everybody may see of something. Pure.

A result that waits for a review, or was withheld or redacted in one, is for approvers: others see that there is one. Of
private values not even the name of their blob is shown, for it is their hash, and what is short can be guessed from that.
Texts of what went wrong behind us name machines and accounts; others are told what kind of trouble it was. The system
prompt, parameters and rules of an agent are for approvers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from everturn.core.asking import Gate
from everturn.core.deltas import Shown
from everturn.core.events import (
    AnswerOpened,
    CallJudged,
    CallSettled,
    Event,
    GateOpened,
    HookFinished,
    LateArrived,
    MessageAdded,
    Problem,
    StepFinished,
    StepInterrupted,
    TurnCancelled,
    TurnCompleted,
    TurnEnding,
    TurnFailed,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.parts import Output, ToolPart

VEILED: Final = "veiled"
"""Stands for the blob of private values."""

_NOT_NOW: Final = "the model does not answer now; try again later"
_OPERATOR: Final = "the model cannot be asked as it is set up here; the operator finds the reason in the log"
_TROUBLE: Final = {
    **dict.fromkeys(("rate", "server", "network", "stalled", "truncated"), _NOT_NOW),
    **dict.fromkeys(("key", "quota", "unknown_model", "request", "model", "response", "limit"), _OPERATOR),
    **dict.fromkeys(("hook", "clean-up"), "a plugin failed; the operator finds the reason in the log"),
    "internal": "something is wrong here; the operator finds the reason in the log",
}

P = TypeVar("P")


def veil(gate: Gate) -> Gate:
    """A gate without the result in question. Its hash goes as well: it covers the result, and could be tried against it."""
    return gate if gate.kind != "result" else replace(gate, output=None, hash="", preview="")


def veil_event(event: Event) -> Event:
    """An event as everybody may see it: itself, when there is nothing to hide in it."""
    hide = _HIDE.get(type(event))
    return event if hide is None else hide(event)


def redact_for_client(shown: Shown) -> Shown:
    """What a browser, or any other client that you do not trust, may be sent of a turn.

    `TurnStarted` keeps who began it, with which model and agent, and the tools of the client itself; the system prompt,
    parameters, rules and budgets stay here. What was decided about a call is kept, and not by which rule. Results under
    review, private values and the texts of internal errors are redacted as for somebody who approves nothing.
    """
    if not isinstance(shown, Event):
        return shown
    event = veil_event(shown)
    if isinstance(event, TurnStarted):
        told = event.options
        options = TurnOptions(model=told.model, agent=told.agent, by=told.by, clients=told.clients)
        return replace(event, options=options)
    if isinstance(event, CallJudged):
        return replace(event, rule=None, why="", identity="", hash="", mark="")
    return event


def veil_message(message: Message) -> Message:
    """A message as everybody may see it."""
    parts = _parts(message.parts)
    return message if parts is message.parts else replace(message, parts=parts)


def veil_messages(messages: Iterable[Message]) -> list[Message]:
    """Messages as everybody may see them."""
    return [veil_message(message) for message in messages]


def _output(output: Output) -> Output:
    return replace(output, private=VEILED) if output.private else output


def _parts(parts: tuple[P, ...]) -> tuple[P, ...]:
    if not any(isinstance(part, ToolPart) and _has_private(part) for part in parts):
        return parts
    veiled: tuple[Any, ...] = tuple(_part(part) if isinstance(part, ToolPart) else part for part in parts)
    return veiled


def _has_private(part: ToolPart) -> bool:
    return bool((part.output and part.output.private) or (part.late and part.late.private))


def _part(part: Any) -> Any:
    return replace(part, output=part.output and _output(part.output), late=part.late and _output(part.late))


def _with_output(event: CallSettled | LateArrived) -> Event:
    return replace(event, output=_output(event.output)) if event.output.private else event


def _with_message(event: AnswerOpened | MessageAdded) -> Event:
    message = veil_message(event.message)
    return event if message is event.message else replace(event, message=message)


def _with_parts(event: StepFinished) -> Event:
    parts = _parts(event.parts)
    return event if parts is event.parts else replace(event, parts=parts)


def _with_trouble(event: StepInterrupted) -> Event:
    return replace(event, parts=_parts(event.parts), problem=event.problem and veil_problem(event.problem))


def veil_problem(problem: Problem) -> Problem:
    """Trouble as everybody may see it: its kind, and one text for all of its kind."""
    text = _TROUBLE.get(problem.kind)
    return problem if text is None else Problem(problem.kind, text)


def _with_end(event: TurnCompleted | TurnCancelled) -> Event:
    return replace(event, reports=tuple(map(veil_problem, event.reports))) if event.reports else event


def _with_ending(event: TurnEnding) -> Event:
    return replace(event, problem=event.problem and veil_problem(event.problem))


def _with_failure(event: TurnFailed) -> Event:
    reports = tuple(map(veil_problem, event.reports))
    return replace(event, problem=veil_problem(event.problem), reports=reports)


def _with_options(event: TurnStarted) -> Event:
    """Without the system prompt, the parameters and the rules of the agent: those are the operator's."""
    told, message = event.options, event.input and veil_message(event.input)
    if told.system or told.params or told.rules:
        return replace(event, input=message, options=replace(told, system="", params=None, rules=()))
    return event if message is event.input else replace(event, input=message)


def _with_deferred(event: HookFinished) -> Event:
    if not event.deferred:
        return event
    return replace(event, deferred=tuple(replace(one, message=veil_message(one.message)) for one in event.deferred))


def _with_gate(event: GateOpened) -> Event:
    gate = veil(event.gate)
    return event if gate is event.gate else replace(event, gate=gate)


_HIDE: dict[type[Event], Callable[[Any], Event]] = {
    GateOpened: _with_gate,
    CallSettled: _with_output,
    LateArrived: _with_output,
    AnswerOpened: _with_message,
    MessageAdded: _with_message,
    StepFinished: _with_parts,
    StepInterrupted: _with_trouble,
    TurnCompleted: _with_end,
    TurnCancelled: _with_end,
    TurnEnding: _with_ending,
    TurnFailed: _with_failure,
    TurnStarted: _with_options,
    HookFinished: _with_deferred,
}
