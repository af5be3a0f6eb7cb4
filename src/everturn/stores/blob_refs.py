"""Blob references: returns the names of the blobs that an event or a command references. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from everturn.core.commands import Command, ImportMessages, LateResult, Send
from everturn.core.events import (
    AnswerStarted,
    CallFinished,
    Event,
    FilesChanged,
    FilesReverted,
    GateOpened,
    HookFinished,
    LateResultReceived,
    MessageAdded,
    MessagesImported,
    RevertStarted,
    StepFinished,
    StepInterrupted,
    TurnStarted,
)
from everturn.core.parts import (
    ClearedPart,
    ContextPart,
    FilePart,
    NoticePart,
    Output,
    ProviderToolPart,
    ReasoningPart,
    StepPart,
    SummaryPart,
    TextPart,
    ToolPart,
)

_WITHOUT_FILES = frozenset((TextPart, ReasoningPart, StepPart, NoticePart, ClearedPart, ContextPart, ProviderToolPart))


def referenced_blobs(item: Event | Command) -> list[str]:
    """Return the names of the blobs that an event or a command references, with repetitions."""
    finder = _FINDERS.get(type(item))
    return [] if finder is None else finder(item)


def _in_parts(parts: Iterable[object]) -> list[str]:
    names: list[str] = []
    for part in parts:
        kind = type(part)
        if kind in _WITHOUT_FILES:
            continue
        if isinstance(part, FilePart):
            names += _in_file(part)
        elif isinstance(part, ToolPart):
            names += [name for output in (part.output, part.late) if output is not None for name in _in_output(output)]
        elif isinstance(part, SummaryPart) and part.calls:
            names.append(part.calls)
    return names


def _in_output(output: Output) -> list[str]:
    names = [output.blob] if output.blob else []
    if output.private:
        names.append(output.private)
    if output.attachments:
        names += [name for part in output.attachments for name in _in_file(part)]
    return names


def _in_file(part: FilePart) -> list[str]:
    return [part.blob, part.text] if part.text else [part.blob]


def _in_gate(event: GateOpened) -> list[str]:
    return _in_output(event.gate.output) if event.gate.output is not None else []


def _in_started(event: TurnStarted) -> list[str]:
    return _in_parts(event.input.parts) if event.input is not None else []


def _in_imported(imported: MessagesImported | ImportMessages) -> list[str]:
    return [name for message in imported.messages for name in _in_parts(message.parts)]


def _in_deferred(event: HookFinished) -> list[str]:
    return [name for append in event.deferred for name in _in_parts(append.message.parts)]


def _in_files(event: FilesChanged | RevertStarted | FilesReverted) -> list[str]:
    """Only the session's own files are stored in blobs; the trees of a folder are stored beside it."""
    if event.root:
        return []
    added = event.blobs if isinstance(event, FilesChanged) else ()
    return [name for name in (event.before, event.after, *added) if name]  # "": before the first change


# By exact type: a class pattern that misses on a Struct costs more than the whole lookup.
_FINDERS: dict[type[Event] | type[Command], Callable[[Any], list[str]]] = {
    TurnStarted: _in_started,
    AnswerStarted: lambda event: _in_parts(event.message.parts),
    MessageAdded: lambda event: _in_parts(event.message.parts),
    StepFinished: lambda event: _in_parts(event.parts),
    StepInterrupted: lambda event: _in_parts(event.parts),
    GateOpened: _in_gate,
    CallFinished: lambda event: _in_output(event.output),
    LateResultReceived: lambda event: _in_output(event.output),
    HookFinished: _in_deferred,
    FilesChanged: _in_files,
    RevertStarted: _in_files,
    FilesReverted: _in_files,
    MessagesImported: _in_imported,
    ImportMessages: _in_imported,
    Send: lambda command: _in_parts(command.parts or ()),
    LateResult: lambda command: _in_output(command.output),
}
