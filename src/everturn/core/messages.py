"""One message: a node of the tree."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from everturn.core.parts import Part, text_of

Role = Literal["user", "assistant", "notice"]
"""`notice` is what the runtime or a plugin tells the model; it never carries a person's authority."""


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """A node: what a person wrote, what a model answered, or what a plugin appended.

    An answer starts as a placeholder, a message without parts, so that a face can show the model's badge at once.
    """

    id: str
    parent: str | None
    role: Role
    parts: tuple[Part, ...] = ()
    by: str = ""  # the model's badge, or the plugin that appended it
    turn: str = ""
    hidden: bool = False  # a plugin kept this answer out of the conversation (`prevent_default`)

    @property
    def text(self) -> str:
        """Only what was said."""
        return text_of(self.parts)
