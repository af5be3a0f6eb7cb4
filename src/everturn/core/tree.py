"""The tree that messages form.

`Tree` is the fold of a session's events into messages. Messages are only ever added, completed by their own turn, or
hidden by a delete: what stands beside or above a message never changes because of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, cast

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.asking import WITHIN
from everturn.core.canonical import is_same_value
from everturn.core.events import (
    AnswerOpened,
    CallBelow,
    CallMade,
    CallPaused,
    CallResumed,
    CallSettled,
    CallStarted,
    CallStirred,
    Event,
    FilesChanged,
    GateAnswered,
    GateOpened,
    LateArrived,
    LeafSelected,
    MessageAdded,
    MessageDeleted,
    StepFinished,
    StepInterrupted,
    TitleSet,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.parts import FileChange, FilesPart, StepPart, ToolPart
from everturn.errors import UnknownMessage

CallEvent = (
    GateOpened
    | GateAnswered
    | CallStarted
    | CallBelow
    | CallPaused
    | CallStirred
    | CallResumed
    | CallSettled
    | LateArrived
)


def called_by(event: CallEvent) -> str:
    """The call an event is about."""
    return event.gate.call if type(event) is GateOpened else cast("CallStarted", event).call


def with_step(message: Message, event: StepFinished | StepInterrupted) -> Message:
    """An answer with the parts of one more step at its end."""
    return replace(message, parts=(*message.parts, *event.parts, StepPart(event.step, event.finish, event.usage)))


def with_call(message: Message, called: str, event: CallEvent) -> Message:
    """A message whose call has moved on."""
    parts = message.parts
    # From the end, where the calls of the present step are: a long turn must not cost more with every step.
    for at in range(len(parts) - 1, -1, -1):
        part = parts[at]
        if type(part) is ToolPart and part.call == called:
            changed = list(parts)
            changed[at] = _MOVED[type(event)](part, event)
            return replace(message, parts=tuple(changed))
    return message


def with_made(message: Message, event: CallMade) -> Message:
    """A message with a call that a tool made, at its end."""
    made = ToolPart(event.call, event.name, event.arguments, identity=event.identity, parent=event.parent)
    return replace(message, parts=(*message.parts, made))


def with_files(message: Message, event: FilesChanged) -> Message:
    """A message that says what became of files: once for a step and a root, however often they changed."""
    parts = message.parts
    for at in range(len(parts) - 1, -1, -1):
        part = parts[at]
        if type(part) is FilesPart and part.step == event.step and part.root == event.root:
            changes = _joined(part.changes, event.changes)
            merged = replace(part, after=event.after, changes=changes)
            return replace(message, parts=(*parts[:at], merged, *parts[at + 1 :]))
    if not event.changes:
        return message
    made = FilesPart(event.step, event.before, event.after, event.changes, event.root)
    return replace(message, parts=(*parts, made))


def _joined(first: tuple[FileChange, ...], then: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """What two changes come to, one after the other."""
    found = {change.path: change for change in first}
    for change in then:
        before = found.pop(change.path, None)
        if before is None:
            found[change.path] = change
        elif not (before.kind == "added" and change.kind == "deleted"):
            is_new, is_there = before.kind == "added", change.kind != "deleted"
            kind = "added" if is_new else "modified" if is_there else "deleted"
            added, removed = before.added + change.added, before.removed + change.removed
            found[change.path] = FileChange(change.path, kind, added, removed)
    return tuple(found.values())


def _answered(part: ToolPart, event: GateAnswered) -> ToolPart:
    if part.state != "asking":
        return part
    return replace(part, state="pending", is_edited=bool(event.verdict.arguments))


def _started(part: ToolPart, event: CallStarted) -> ToolPart:
    used = "" if is_same_value(event.arguments, part.arguments) else event.arguments
    return replace(part, state="running", used=used)


def _opened(part: ToolPart, event: GateOpened) -> ToolPart:
    kind = event.gate.kind
    if kind in WITHIN:  # its tool asks, and runs or was put aside meanwhile
        return part
    return replace(part, state="reviewing" if kind == "result" else "asking")


# By exact type: a class pattern that misses on a Struct costs more than the whole change.
_MOVED: dict[type[Event], Callable[[ToolPart, Any], ToolPart]] = {
    GateOpened: _opened,
    GateAnswered: _answered,
    CallStarted: _started,
    CallBelow: lambda part, event: part,
    CallPaused: lambda part, event: replace(part, state="waiting"),
    CallStirred: lambda part, event: part,
    CallResumed: lambda part, event: replace(part, state="running"),
    CallSettled: lambda part, event: replace(part, state=event.state, output=event.output),
    LateArrived: lambda part, event: replace(part, late=event.output),
}


class Tree(Struct):
    """A session's messages. `leaf` is the end of the branch that is selected."""

    messages: dict[str, Message] = {}
    children: dict[str | None, list[str]] = {}
    deleted: set[str] = set()
    leaf: str | None = None
    title: str = ""
    writing: dict[str, str] = {}  # turn -> the answer its events complete
    calls: dict[str, str] = {}  # call -> the message it stands in

    def apply(self, event: Event) -> None:
        """Take one event in. Events that say nothing about messages are ignored."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(self, event)

    def copy(self) -> Tree:
        """The tree as it is now, whatever is applied to this one later."""
        return Tree(
            dict(self.messages),
            {parent: list(children) for parent, children in self.children.items()},
            set(self.deleted),
            self.leaf,
            self.title,
            dict(self.writing),
            dict(self.calls),
        )

    def _start(self, event: TurnStarted) -> None:
        if event.input is not None:
            self._add(event.input)
        self.leaf = event.parent if event.input is None else event.input.id

    def _open(self, event: AnswerOpened) -> None:
        self._add(event.message)
        self.writing[event.turn] = event.message.id
        self._follow(event.message)

    def _append(self, event: MessageAdded) -> None:
        self._add(event.message)
        self._follow(event.message)

    def _step(self, event: StepFinished | StepInterrupted) -> None:
        at = self.writing[event.turn]
        self.messages[at] = with_step(self.messages[at], event)
        self.calls.update((part.call, at) for part in event.parts if type(part) is ToolPart)

    def _call(self, event: CallEvent) -> None:
        called = called_by(event)
        at = self.calls.get(called)
        if at is not None:  # a plugin's question is no call
            self.messages[at] = with_call(self.messages[at], called, event)

    def _make(self, event: CallMade) -> None:
        at = self.calls.get(event.parent)
        if at is not None:
            self.messages[at] = with_made(self.messages[at], event)
            self.calls[event.call] = at

    def _file(self, event: FilesChanged) -> None:
        at = self.writing.get(event.turn)
        if at is not None:
            self.messages[at] = with_files(self.messages[at], event)

    def _select(self, event: LeafSelected) -> None:
        self.leaf = event.message

    def _name(self, event: TitleSet) -> None:
        self.title = event.title

    def _add(self, message: Message) -> None:
        self.messages[message.id] = message
        self.children.setdefault(message.parent, []).append(message.id)

    def _follow(self, message: Message) -> None:
        # Only the branch somebody looks at grows under their eyes: a second one that streams beside it
        # must not pull the selection over to itself.
        if self.leaf == message.parent:
            self.leaf = message.id

    def _delete(self, event: MessageDeleted) -> None:
        gone = event.message
        below = list(self.below(gone))
        self.deleted.update(below)
        if self.leaf in below:
            self.leaf = self.messages[gone].parent

    def below(self, message: str) -> Iterable[str]:
        """A message and everything under it."""
        stack = [message]
        while stack:
            at = stack.pop()
            yield at
            stack.extend(self.children.get(at, ()))

    def get(self, message: str) -> Message:
        """Look a message up.

        Raises:
            UnknownMessage: it does not exist, or was deleted.
        """
        if message not in self.messages or message in self.deleted:
            raise UnknownMessage(f"there is no message {message!r} in this session")
        return self.messages[message]

    def path(self, leaf: str | None) -> list[Message]:
        """The branch that ends at a message, oldest first."""
        found: list[Message] = []
        at = leaf
        while at is not None:
            message = self.get(at)
            found.append(message)
            at = message.parent
        found.reverse()
        return found

    def versions(self, message: str) -> list[str]:
        """A message and its siblings, oldest first: what a branch picker offers."""
        parent = self.get(message).parent
        return [other for other in self.children.get(parent, ()) if other not in self.deleted]

    # By exact type, a row per event: a class pattern that misses on a Struct costs more than most of these do.
    _handlers: ClassVar[dict[type[Event], Callable[[Any, Any], None]]] = {
        TurnStarted: _start,
        AnswerOpened: _open,
        MessageAdded: _append,
        StepFinished: _step,
        StepInterrupted: _step,
        **dict.fromkeys(_MOVED, _call),
        CallMade: _make,
        FilesChanged: _file,
        LeafSelected: _select,
        MessageDeleted: _delete,
        TitleSet: _name,
    }
