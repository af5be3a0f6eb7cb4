"""Presence: who looks at a conversation or an approval now."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from everturn.api.base import Body, View

ShortId = Annotated[str, Meta(max_length=1000)]


class LookAt(Body, frozen=True, kw_only=True):
    """A session that is on the screen, or a gate of it."""

    session: ShortId
    gate: ShortId = ""  # "": the conversation


class Looking(Body, frozen=True, kw_only=True):
    """What a tab shows now. Repeat it every five seconds: a look that is not repeated ends after ten."""

    tab: Annotated[str, Meta(min_length=1, max_length=64)]  # a random id of the tab
    at: Annotated[list[LookAt], Meta(max_length=20)]
    has_left: bool = False  # the tab does not show this any more


class ViewerView(View, frozen=True, kw_only=True):
    """Another user who looks at a session or a gate now."""

    session: str
    gate: str  # "": the conversation
    user: str
    name: str
    is_administrator: bool  # an administrator who opened the conversation


class PresenceView(View, frozen=True, kw_only=True):
    """Who else looks at what the caller looks at."""

    viewers: list[ViewerView]
