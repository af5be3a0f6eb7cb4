"""The message tree: the fold of a session's events into messages and branches.

Messages are only ever added, completed by their own turn, or hidden by a delete: no message changes its siblings or
ancestors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, cast

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical_json import is_same_value
from everturn.core.events import (
    AgentSelected,
    AgentSwitched,
    AnswerStarted,
    CallFinished,
    CallNotified,
    CallResumed,
    CallStarted,
    CallSuspended,
    Event,
    FilesChanged,
    GateOpened,
    GateResolved,
    InputRefused,
    LateResultReceived,
    LeafSelected,
    MessageAdded,
    MessageDeleted,
    MessagesImported,
    NestedCallRequested,
    SessionUpdated,
    StepFinished,
    StepInterrupted,
    SubagentStarted,
    TitleSet,
    ToolStepFinished,
    ToolStepStarted,
    TurnStarted,
    WaitFinished,
    WaitStarted,
)
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL
from everturn.core.messages import Message
from everturn.core.parts import FileChange, FilesPart, StepPart, ToolPart
from everturn.errors import UnknownMessage

CallEvent = (
    GateOpened
    | GateResolved
    | CallStarted
    | SubagentStarted
    | ToolStepStarted
    | ToolStepFinished
    | WaitStarted
    | WaitFinished
    | CallSuspended
    | CallNotified
    | CallResumed
    | CallFinished
    | LateResultReceived
)


def call_of_event(event: CallEvent) -> str:
    """The call an event is about."""
    return event.gate.call if type(event) is GateOpened else cast("CallStarted", event).call


def with_step(message: Message, event: StepFinished | StepInterrupted) -> Message:
    """An answer with the parts of one more step at its end."""
    continues = type(event) is StepFinished and event.continues
    end = StepPart(event.step, event.finish, event.usage, event.model, continues)
    return replace(message, parts=(*message.parts, *event.parts, end))


def with_call(message: Message, called: str, event: CallEvent) -> Message:
    """A message with the new state of one of its calls."""
    parts = message.parts
    # From the end, where the calls of the present step are: the cost must not grow with the length of the turn.
    for at in range(len(parts) - 1, -1, -1):
        part = parts[at]
        if type(part) is ToolPart and part.call == called:
            changed = list(parts)
            changed[at] = _CALL_PART_UPDATES[type(event)](part, event)
            return replace(message, parts=tuple(changed))
    return message


def with_nested_call(message: Message, event: NestedCallRequested) -> Message:
    """A message with a nested call of a tool added at its end."""
    part = ToolPart(event.call, event.name, event.arguments, identity=event.identity, parent=event.parent)
    return replace(message, parts=(*message.parts, part))


def with_files(message: Message, event: FilesChanged) -> Message:
    """A message with the changed files of a step: one part for each step and root, however often they changed."""
    parts = message.parts
    for at in range(len(parts) - 1, -1, -1):
        part = parts[at]
        if type(part) is FilesPart and part.step == event.step and part.root == event.root:
            changes = _merge_changes(part.changes, event.changes)
            merged = replace(part, after=event.after, changes=changes)
            return replace(message, parts=(*parts[:at], merged, *parts[at + 1 :]))
    if not event.changes:
        return message
    files_part = FilesPart(event.step, event.before, event.after, event.changes, event.root)
    return replace(message, parts=(*parts, files_part))


def _merge_changes(first: tuple[FileChange, ...], then: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """Merge two consecutive lists of file changes."""
    merged = {change.path: change for change in first}
    for change in then:
        before = merged.pop(change.path, None)
        if before is None:
            merged[change.path] = change
        elif not (before.kind == "added" and change.kind == "deleted"):
            is_new, is_there = before.kind == "added", change.kind != "deleted"
            kind = "added" if is_new else "modified" if is_there else "deleted"
            added, removed = before.added + change.added, before.removed + change.removed
            merged[change.path] = FileChange(change.path, kind, added, removed)
    return tuple(merged.values())


def _on_answer(part: ToolPart, event: GateResolved) -> ToolPart:
    if part.state != "asking":
        return part
    return replace(part, state="pending", is_edited=bool(event.resolution.arguments))


def _on_start(part: ToolPart, event: CallStarted) -> ToolPart:
    used = "" if is_same_value(event.arguments, part.arguments) else event.arguments
    return replace(part, state="running", used=used)


def _on_gate(part: ToolPart, event: GateOpened) -> ToolPart:
    kind = event.gate.kind
    if kind in GATE_KINDS_OF_RUNNING_TOOL:  # its tool asks, and still runs or is suspended
        return part
    return replace(part, state="reviewing" if kind == "result" else "asking")


# By exact type: a class pattern that does not match a Struct costs more than the whole change.
_CALL_PART_UPDATES: dict[type[Event], Callable[[ToolPart, Any], ToolPart]] = {
    GateOpened: _on_gate,
    GateResolved: _on_answer,
    CallStarted: _on_start,
    **dict.fromkeys(
        (SubagentStarted, ToolStepStarted, ToolStepFinished, WaitStarted, WaitFinished), lambda part, event: part
    ),
    CallSuspended: lambda part, event: replace(part, state="waiting"),
    CallNotified: lambda part, event: part,
    CallResumed: lambda part, event: replace(part, state="running"),
    CallFinished: lambda part, event: replace(part, state=event.state, output=event.output),
    LateResultReceived: lambda part, event: replace(part, late=event.output),
}


class MessageTree(Struct):
    """A session's messages. `leaf` is the end of the selected branch."""

    messages: dict[str, Message] = {}
    children: dict[str | None, list[str]] = {}
    deleted: set[str] = set()
    leaf: str | None = None
    title: str = ""
    writing: dict[str, str] = {}  # turn -> the answer that its events complete
    calls: dict[str, str] = {}  # call -> the message that contains it
    agent: str = ""  # the agent that has the session, on whatever branch; "": none with a name
    is_renamed: bool = False  # a person gave the title

    def apply(self, event: Event) -> None:
        """Apply one event. Events that do not change messages are ignored."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(self, event)

    @classmethod
    def from_messages(
        cls,
        messages: Iterable[Message],
        deleted: set[str],
        *,
        leaf: str | None,
        title: str,
        agent: str,
        is_renamed: bool = False,
    ) -> MessageTree:
        """The tree of messages that a store has kept, in the order in which they were added."""
        tree = cls(deleted=deleted, leaf=leaf, title=title, agent=agent, is_renamed=is_renamed)
        for message in messages:
            tree._add(message)
            if message.role == "assistant" and not message.imported:
                tree.writing[message.turn] = message.id
                tree.calls.update((part.call, message.id) for part in message.parts if type(part) is ToolPart)
        return tree

    def copy(self) -> MessageTree:
        """A copy that later events do not change."""
        return MessageTree(
            dict(self.messages),
            {parent: list(children) for parent, children in self.children.items()},
            set(self.deleted),
            self.leaf,
            self.title,
            dict(self.writing),
            dict(self.calls),
            self.agent,
            self.is_renamed,
        )

    def _start(self, event: TurnStarted) -> None:
        if event.input is not None:
            self._add(event.input)
        self.leaf = event.parent if event.input is None else event.input.id
        self.agent = event.options.agent or self.agent

    def _open(self, event: AnswerStarted) -> None:
        self._add(event.message)
        self.writing[event.turn] = event.message.id
        self._follow(event.message)

    def _append(self, event: MessageAdded) -> None:
        self._add(event.message)
        self._follow(event.message)

    def _refuse(self, event: InputRefused) -> None:
        message = self.messages.get(event.message)
        if message is not None and message.turn == event.turn:  # a re-run leaves the message of another turn as it is
            self.messages[event.message] = replace(message, refused=True)

    def _step(self, event: StepFinished | StepInterrupted) -> None:
        at = self.writing[event.turn]
        self.messages[at] = with_step(self.messages[at], event)
        self.calls.update((part.call, at) for part in event.parts if type(part) is ToolPart)

    def _call(self, event: CallEvent) -> None:
        call_id = call_of_event(event)
        message_id = self.calls.get(call_id)
        if message_id is not None:  # a plugin's question belongs to no call
            self.messages[message_id] = with_call(self.messages[message_id], call_id, event)

    def _make(self, event: NestedCallRequested) -> None:
        at = self.calls.get(event.parent)
        if at is not None:
            self.messages[at] = with_nested_call(self.messages[at], event)
            self.calls[event.call] = at

    def _file(self, event: FilesChanged) -> None:
        at = self.writing.get(event.turn)
        if at is not None:
            self.messages[at] = with_files(self.messages[at], event)

    def _select(self, event: LeafSelected) -> None:
        self.leaf = event.message

    def _import(self, event: MessagesImported) -> None:
        for message in event.messages:
            self._add(message)
            self.leaf = message.id
        if not self.is_renamed:
            self.title = event.title or self.title

    def _hand_over(self, event: AgentSwitched | AgentSelected) -> None:
        self.agent = event.agent

    def _name(self, event: TitleSet) -> None:
        if not self.is_renamed:
            self.title = event.title

    def _update(self, event: SessionUpdated) -> None:
        if event.title is not None:
            self.title, self.is_renamed = event.title, True

    def _add(self, message: Message) -> None:
        self.messages[message.id] = message
        self.children.setdefault(message.parent, []).append(message.id)

    def _follow(self, message: Message) -> None:
        # Only the selected branch moves its leaf: a second branch that streams at the same time must not change the
        # selection.
        if self.leaf == message.parent:
            self.leaf = message.id

    def _delete(self, event: MessageDeleted) -> None:
        deleted = event.message
        subtree = list(self.below(deleted))
        self.deleted.update(subtree)
        if self.leaf in subtree:
            self.leaf = self.messages[deleted].parent

    def delete_unknown(self, message: str) -> None:
        """Delete what is under a message that this tree, the end of a longer one, does not have.

        If the selected branch ends there, its leaf becomes that message: only the whole tree knows the parent.
        """
        subtree = list(self.below(message))
        self.deleted.update(subtree)
        if self.leaf in subtree:
            self.leaf = message

    def add_earlier(self, earlier: MessageTree) -> None:
        """Add the messages of an earlier part of the log; this tree keeps what it has, its leaf and its title."""
        children = {parent: list(names) for parent, names in earlier.children.items()}
        for parent, names in self.children.items():
            siblings = children.setdefault(parent, [])
            siblings += [name for name in names if name not in siblings]
        self.messages = {**earlier.messages, **self.messages}
        self.children = children
        self.writing, self.calls = {**earlier.writing, **self.writing}, {**earlier.calls, **self.calls}
        for message in list(earlier.deleted | self.deleted):
            self.deleted.update(self.below(message))

    def below(self, message: str) -> Iterable[str]:
        """A message and everything under it."""
        stack = [message]
        while stack:
            message_id = stack.pop()
            yield message_id
            stack.extend(self.children.get(message_id, ()))

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
        messages: list[Message] = []
        message_id = leaf
        while message_id is not None:
            message = self.get(message_id)
            messages.append(message)
            message_id = message.parent
        messages.reverse()
        return messages

    def versions(self, message: str) -> list[str]:
        """A message and its siblings, oldest first: the choices of a branch picker."""
        parent = self.get(message).parent
        return [other for other in self.children.get(parent, ()) if other not in self.deleted]

    # By exact type, a row per event: a class pattern that does not match a Struct costs more than most of these.
    _handlers: ClassVar[dict[type[Event], Callable[[Any, Any], None]]] = {
        TurnStarted: _start,
        AnswerStarted: _open,
        MessageAdded: _append,
        InputRefused: _refuse,
        StepFinished: _step,
        StepInterrupted: _step,
        **dict.fromkeys(_CALL_PART_UPDATES, _call),
        NestedCallRequested: _make,
        FilesChanged: _file,
        LeafSelected: _select,
        MessageDeleted: _delete,
        MessagesImported: _import,
        TitleSet: _name,
        SessionUpdated: _update,
        AgentSwitched: _hand_over,
        AgentSelected: _hand_over,
    }
