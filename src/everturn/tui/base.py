"""What a screen may ask of the app around it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, cast

from textual.dom import DOMNode

from everturn import api
from everturn.client import Server
from everturn.tui.following import Follower

if TYPE_CHECKING:
    from everturn.tui.app import EverturnApp

T = TypeVar("T")
Language = Literal["en", "zh"]
Severity = Literal["information", "warning", "error"]


class Host(Protocol):
    """The app, as its screens know it."""

    server: Server
    me: api.Me
    agents: api.AgentList
    language: Language
    waits: list[api.GateView]  # all that waits for somebody, in any session, oldest first
    follower: Follower | None  # the session that is shown; None: a new one is about to begin

    async def open_session(self, session: str, leaf: str | None = None) -> None:
        """Show another session; "" is a new one."""
        ...

    async def attempt(self, doing: Awaitable[T]) -> T | None:
        """Do it; what goes wrong is told to the person in one line, and then this is None."""
        ...

    def tell(self, text: str, severity: Severity = "information") -> None:
        """Tell the person something that goes away by itself."""
        ...


def host(node: DOMNode) -> Host:
    """The app around a widget."""
    return cast("Host", node.app)  # pyright: ignore[reportUnknownMemberType]


def app_of(node: DOMNode) -> EverturnApp:
    """The same, as it is: for the screens that are a part of it, and not for those that can be shown by any host."""
    return cast("EverturnApp", node.app)  # pyright: ignore[reportUnknownMemberType]
