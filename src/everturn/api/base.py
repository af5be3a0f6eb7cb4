"""Base classes and shared types of requests and responses."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Id = Annotated[str, Meta(min_length=1, max_length=200)]

Name = Annotated[str, Meta(max_length=200)]

Text = Annotated[str, Meta(max_length=1_000_000)]

Busy = Literal["queue", "reject", "fork", "steer"]
"""What happens to a message while a turn is running: it waits, it is refused (409), it starts a branch beside the turn,
or it joins the turn between two steps. `Sent.turn` is then the turn that it will join; if that ends first, it waits.
"""

GrantReach = Literal["", "user", "folder", "tenant"]
"""Of all sessions, those in which a grant "everywhere" holds. "" is the person who asked: another user's turns are not
allowed by it."""

Archived = Literal["exclude", "include", "only"]
"""Whether a list has archived sessions."""

MAX_INSTRUCTIONS = 16_000  # characters of the instructions of a tenant, a user or a session


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base class of request bodies. Unknown fields are refused: otherwise a misspelt field would be ignored."""


class View(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Base class of responses. New fields may be added; none is removed."""


class ErrorView(View, frozen=True, kw_only=True):
    """An error: a stable code, a text for people that says what to do next, and the path of an invalid value."""

    code: str
    message: str
    where: str = ""


class ErrorResponse(View, frozen=True, kw_only=True):
    """The body of every error response."""

    error: ErrorView
