"""An event or a command → the blobs it speaks of. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from everturn.core.commands import Command, Late, Send
from everturn.core.events import (
    AnswerOpened,
    CallSettled,
    Event,
    FilesChanged,
    FilesReverted,
    GateOpened,
    HookFinished,
    LateArrived,
    MessageAdded,
    RevertStarted,
    StepFinished,
    StepInterrupted,
    TurnStarted,
)
from everturn.core.parts import FilePart, NoticePart, Output, ReasoningPart, StepPart, TextPart, ToolPart

_WITHOUT_FILES = frozenset((TextPart, ReasoningPart, StepPart, NoticePart))


def blobs_in(said: Event | Command) -> list[str]:
    """The names of the blobs that an event or a command mentions, each as often as it does."""
    look = _LOOK.get(type(said))
    return [] if look is None else look(said)


def _in_parts(parts: Iterable[object]) -> list[str]:
    found: list[str] = []
    for part in parts:
        kind = type(part)
        if kind in _WITHOUT_FILES:
            continue
        if isinstance(part, FilePart):
            found.append(part.blob)
        elif isinstance(part, ToolPart):
            found += [name for output in (part.output, part.late) if output is not None for name in _in_output(output)]
    return found


def _in_output(output: Output) -> list[str]:
    found = [output.blob] if output.blob else []
    if output.private:
        found.append(output.private)
    if output.attachments:
        found += [part.blob for part in output.attachments]
    return found


def _in_gate(event: GateOpened) -> list[str]:
    return _in_output(event.gate.output) if event.gate.output is not None else []


def _in_started(event: TurnStarted) -> list[str]:
    return _in_parts(event.input.parts) if event.input is not None else []


def _in_deferred(event: HookFinished) -> list[str]:
    return [name for append in event.deferred for name in _in_parts(append.message.parts)]


def _in_files(event: FilesChanged | RevertStarted | FilesReverted) -> list[str]:
    """Only the session's own files are kept in blobs; the trees of a folder live beside it."""
    if event.root:
        return []
    added = event.blobs if isinstance(event, FilesChanged) else ()
    return [name for name in (event.before, event.after, *added) if name]  # "": before the first change


# By exact type: a class pattern that misses on a Struct costs more than the whole look.
_LOOK: dict[type[Event] | type[Command], Callable[[Any], list[str]]] = {
    TurnStarted: _in_started,
    AnswerOpened: lambda event: _in_parts(event.message.parts),
    MessageAdded: lambda event: _in_parts(event.message.parts),
    StepFinished: lambda event: _in_parts(event.parts),
    StepInterrupted: lambda event: _in_parts(event.parts),
    GateOpened: _in_gate,
    CallSettled: lambda event: _in_output(event.output),
    LateArrived: lambda event: _in_output(event.output),
    HookFinished: _in_deferred,
    FilesChanged: _in_files,
    RevertStarted: _in_files,
    FilesReverted: _in_files,
    Send: lambda command: _in_parts(command.parts or ()),
    Late: lambda command: _in_output(command.output),
}
