"""The tree that messages form.

`Tree` is the fold of a session's events into messages. Messages are only ever added, completed by their own turn, or
hidden by a delete: what stands beside or above a message never changes because of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.events import (
    AnswerOpened,
    CallSettled,
    CallStarted,
    Event,
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
from everturn.core.parts import StepPart, ToolPart
from everturn.errors import UnknownMessage


def absorb(message: Message, event: Event) -> Message:
    """Complete a message with what an event of its turn says about it; the message itself when that is nothing."""
    match event:
        case StepFinished(step=step, parts=parts, finish=finish, usage=usage):
            return replace(message, parts=(*message.parts, *parts, StepPart(step, finish, usage)))
        case StepInterrupted(step=step, parts=parts, finish=finish):
            return replace(message, parts=(*message.parts, *parts, StepPart(step, finish)))
        case GateOpened() | GateAnswered() | CallStarted() | CallSettled() | LateArrived():
            called = event.gate.call if isinstance(event, GateOpened) else event.call
            for at, part in enumerate(message.parts):
                if isinstance(part, ToolPart) and part.call == called:
                    return replace(message, parts=(*message.parts[:at], _moved(part, event), *message.parts[at + 1 :]))
            return message
        case _:
            return message


def _moved(part: ToolPart, event: GateOpened | GateAnswered | CallStarted | CallSettled | LateArrived) -> ToolPart:
    match event:
        case GateOpened():
            return replace(part, state="asking")
        case GateAnswered(verdict=verdict):
            return replace(part, state="pending", is_edited=bool(verdict.arguments))
        case CallStarted(arguments=arguments):
            return replace(part, state="running", used=arguments if arguments != part.arguments else "")
        case CallSettled(state=state, output=output):
            return replace(part, state=state, output=output)
        case LateArrived(output=output):
            return replace(part, late=output)


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
        match event:
            case TurnStarted(parent=parent, input=message):
                if message is not None:
                    self._add(message)
                self.leaf = parent if message is None else message.id
            case AnswerOpened(turn=turn, message=message):
                self._add(message)
                self.writing[turn] = message.id
                self._follow(message)
            case MessageAdded(message=message):
                self._add(message)
                self._follow(message)
            case StepFinished(turn=turn, parts=parts) | StepInterrupted(turn=turn, parts=parts):
                at = self.writing[turn]
                self.messages[at] = absorb(self.messages[at], event)
                self.calls.update((part.call, at) for part in parts if isinstance(part, ToolPart))
            case GateOpened() | GateAnswered() | CallStarted() | CallSettled() | LateArrived():
                call = event.gate.call if isinstance(event, GateOpened) else event.call
                if (at := self.calls.get(call, "")) in self.messages:
                    self.messages[at] = absorb(self.messages[at], event)
            case LeafSelected(message=leaf):
                self.leaf = leaf
            case MessageDeleted(message=gone):
                self._delete(gone)
            case TitleSet(title=title):
                self.title = title
            case _:
                pass

    def _add(self, message: Message) -> None:
        self.messages[message.id] = message
        self.children.setdefault(message.parent, []).append(message.id)

    def _follow(self, message: Message) -> None:
        # Only the branch somebody looks at grows under their eyes: a second one that streams beside it
        # must not pull the selection over to itself.
        if self.leaf == message.parent:
            self.leaf = message.id

    def _delete(self, gone: str) -> None:
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
