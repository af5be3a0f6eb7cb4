"""Sanitizing of an imported log: removes what an untrusted log must not assert in this store. Pure.

The conversation stays. But a file must not refer to folders on this machine, whose tree ids may name another user's
files; nor to the future, because such a session would come first in every list; nor to approvals by users of this
store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from everturn.core.events import (
    AgentSelected,
    AnswerRated,
    CallFinished,
    Event,
    FilesChanged,
    FilesReverted,
    FileUploadChanged,
    GateResolved,
    GrantRevoked,
    InstructionsSet,
    LateResultReceived,
    MessageAdded,
    MessagesImported,
    RevertStarted,
    SessionUpdated,
    StepFinished,
    StepInterrupted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.parts import SummaryPart, ToolPart, Usage
from everturn.errors import UnreadableLog

IMPORTED_USER_PREFIX: Final = "import:"
"""Prefix of the users of an imported log; no user of this store has such a name."""

_WITH_USAGE = (StepFinished, StepInterrupted, TurnCompleted, TurnFailed, TurnCancelled)


def sanitize_events(events: Sequence[Event], now: float, by: str = "") -> list[Event]:
    """Return the sanitized log. With `by`, that user started its turns, and all other users in it get the prefix.

    Raises:
        UnreadableLog: a usage in it is negative.
    """
    return [_not_in_future(event, now) for event in _with_foreign_users(_without_folders(events), by)]


def _without_folders(events: Iterable[Event]) -> Iterable[Event]:
    """Drop the trees of folders: restoring by their ids could write another user's files, or none.

    Uploads, too: a reference that the file's author wrote could name a file of somebody else with the same API key.
    """
    for event in events:
        if isinstance(event, FileUploadChanged):
            continue
        if isinstance(event, MessageAdded) and any(type(part) is SummaryPart for part in event.message.parts):
            yield _without_index(event)
        elif isinstance(event, FilesChanged) and event.root:
            yield replace(event, before="", after="")  # the list of changes can still be read
        elif not isinstance(event, RevertStarted | FilesReverted) or not event.root:
            yield event


def _without_index(event: MessageAdded) -> MessageAdded:
    """Drop the list of calls of a summary: it could name messages of another branch."""
    parts = (replace(part, calls="") if isinstance(part, SummaryPart) else part for part in event.message.parts)
    return replace(event, message=replace(event.message, parts=tuple(parts)))


def _with_foreign_users(events: Iterable[Event], by: str) -> Iterable[Event]:
    for event in events:
        if isinstance(event, _WITH_USAGE) and _is_negative(event.usage):
            raise UnreadableLog("the usage of a turn is negative")
        if not by:
            yield event
        elif isinstance(event, TurnStarted):
            message = event.input and replace(event.input, by=_with_prefix(event.input.by))
            yield replace(event, input=message, options=replace(event.options, by=by))
        elif isinstance(event, MessageAdded) and event.message.role == "user":
            yield replace(event, message=replace(event.message, by=_with_prefix(event.message.by)))
        elif isinstance(event, MessagesImported):
            messages = tuple(map(_as_imported, event.messages))
            yield replace(event, messages=messages, by=_with_prefix(event.by))
        elif isinstance(event, GateResolved):
            grant = event.grant and replace(event.grant, by=_with_prefix(event.grant.by))
            yield replace(
                event, resolution=replace(event.resolution, by=_with_prefix(event.resolution.by)), grant=grant
            )
        elif isinstance(event, GrantRevoked | FilesReverted | AgentSelected | AnswerRated):
            yield replace(event, by=_with_prefix(event.by))
        elif isinstance(event, InstructionsSet):  # nobody here has written them
            yield replace(event, text="", by=_with_prefix(event.by))
        elif isinstance(event, SessionUpdated):  # where it is in the importer's list, the importer decides
            yield replace(event, pinned=None, archived=None, parameters=None, by=_with_prefix(event.by))
        elif isinstance(event, CallFinished | LateResultReceived):  # the file's author may have invented it
            yield replace(event, output=replace(event.output, untrusted=True))
        else:
            yield event


def _as_imported(message: Message) -> Message:
    """A message as an import writes it: it belongs to no turn, and its results are untrusted."""
    parts = tuple(
        replace(part, output=replace(part.output, untrusted=True))
        if isinstance(part, ToolPart) and part.output is not None
        else part
        for part in message.parts
    )
    return replace(message, parts=parts, by=_with_prefix(message.by), turn="", imported=True)


def _with_prefix(by: str) -> str:
    return by if not by or by.startswith(IMPORTED_USER_PREFIX) else IMPORTED_USER_PREFIX + by


def _not_in_future(event: Event, now: float) -> Event:
    return event if 0 <= event.at <= now else replace(event, at=min(max(event.at, 0.0), now))


def _is_negative(usage: Usage) -> bool:
    return min(usage.input, usage.output, usage.cached, usage.reasoning, usage.written, usage.cost or 0.0) < 0
