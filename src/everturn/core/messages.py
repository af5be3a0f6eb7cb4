"""A message: one node of a session's message tree."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from everturn.core.parts import Part, join_text

Role = Literal["user", "assistant", "notice"]
"""`notice` is a message of the runtime or a plugin to the model; it never has a person's authority."""


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """A node: what a person wrote, what a model answered, or what a plugin appended.

    An answer starts as a placeholder, a message without parts, so that a UI can show the model's name at once.
    """

    id: str
    parent: str | None
    role: Role
    parts: tuple[Part, ...] = ()
    by: str = ""  # the model's display name, or the plugin that appended it
    turn: str = ""
    hidden: bool = False  # a plugin kept this answer out of the conversation (`prevent_default`)

    @property
    def text(self) -> str:
        """The text parts alone."""
        return join_text(self.parts)
