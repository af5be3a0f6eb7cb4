"""A log that anybody may have written → what it may say here. Pure.

What was said stays. But a file cannot know our folders, whose trees are names for what anybody may have there; nor what
time it will be, for a session from the future would stand first in every list; nor who of us has allowed something.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from everturn.core.events import (
    CallSettled,
    Event,
    FilesChanged,
    FilesReverted,
    GateAnswered,
    GrantRevoked,
    LateArrived,
    MessageAdded,
    RevertStarted,
    StepFinished,
    StepInterrupted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from everturn.core.parts import Usage
from everturn.errors import UnreadableLog

SIGNED: Final = "import:"
"""Before the name of whoever signed something elsewhere; nobody here is called so."""

_USED = (StepFinished, StepInterrupted, TurnCompleted, TurnFailed, TurnCancelled)


def tamed(events: Sequence[Event], now: float, by: str = "") -> list[Event]:
    """The log as it is kept here. With `by`, that is who began it, and nobody else in it is one of ours.

    Raises:
        UnreadableLog: less than nothing was used in it.
    """
    return [_timed(event, now) for event in _named(_without_folders(events), by)]


def _without_folders(events: Iterable[Event]) -> Iterable[Event]:
    """Without the trees of folders: what would be restored by their names may be somebody else's files, or none."""
    for event in events:
        if isinstance(event, FilesChanged) and event.root:
            yield replace(event, before="", after="")  # what changed can still be read
        elif not isinstance(event, RevertStarted | FilesReverted) or not event.root:
            yield event


def _named(events: Iterable[Event], by: str) -> Iterable[Event]:
    for event in events:
        if isinstance(event, _USED) and _is_negative(event.usage):
            raise UnreadableLog("less than nothing was used in a turn")
        if not by:
            yield event
        elif isinstance(event, TurnStarted):
            said = event.input and replace(event.input, by=_signed(event.input.by))
            yield replace(event, input=said, options=replace(event.options, by=by))
        elif isinstance(event, MessageAdded) and event.message.role == "user":
            yield replace(event, message=replace(event.message, by=_signed(event.message.by)))
        elif isinstance(event, GateAnswered):
            grant = event.grant and replace(event.grant, by=_signed(event.grant.by))
            yield replace(event, verdict=replace(event.verdict, by=_signed(event.verdict.by)), grant=grant)
        elif isinstance(event, GrantRevoked | FilesReverted):
            yield replace(event, by=_signed(event.by))
        elif isinstance(event, CallSettled | LateArrived):  # whoever brought it may have made it up
            yield replace(event, output=replace(event.output, untrusted=True))
        else:
            yield event


def _signed(by: str) -> str:
    return by if not by or by.startswith(SIGNED) else SIGNED + by


def _timed(event: Event, now: float) -> Event:
    return event if 0 <= event.at <= now else replace(event, at=min(max(event.at, 0.0), now))


def _is_negative(used: Usage) -> bool:
    return min(used.input, used.output, used.cached, used.reasoning, used.written, used.cost or 0.0) < 0
