"""A message: one node of a session's message tree."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from everturn.core.parts import Part, StepPart, join_text

Role = Literal["user", "assistant", "notice"]
"""`notice` is a message of the runtime or a plugin to the model; it never has a person's authority."""


class ForkPoint(Struct, frozen=True, gc=False):
    """A place inside an answer: behind one of its finished steps."""

    message: str
    step: int


class Message(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A message of a conversation: a message of a user, an answer of a model, or a message that a plugin appended.

    An answer starts as a placeholder, a message without parts, so that a UI can show the model's name at once.
    """

    id: str
    parent: str | None
    role: Role
    parts: tuple[Part, ...] = ()
    by: str = ""  # the display name of the model that was asked, or the plugin that appended it
    turn: str = ""
    hidden: bool = False  # a plugin kept this answer out of the conversation (`prevent_default`)
    imported: bool = False  # it was written elsewhere: nothing in it happened here, and no call in it runs
    refused: bool = False  # a plugin refused it: no model reads it; in an answer, the runtime's text that says so
    fork: ForkPoint | None = None  # it is a copy of the first steps of this answer, from which a branch continues

    @property
    def text(self) -> str:
        """The text parts alone."""
        return join_text(self.parts)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that wrote the steps of an answer, in order; only `by` before the first step ended."""
        steps = [part.model or self.by for part in self.parts if type(part) is StepPart]
        return tuple(dict.fromkeys(steps or [self.by])) if self.role == "assistant" else ()
