"""Host interface: what a screen may use of the app around it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Literal, Protocol, TypeVar, cast

from textual.app import App
from textual.dom import DOMNode

from everturn import api
from everturn.client import Server
from everturn.terminal.tui.session_follower import SessionFollower

T = TypeVar("T")
Language = Literal["en", "zh"]
Severity = Literal["information", "warning", "error"]


class Host(Protocol):
    """The app, as its screens see it."""

    server: Server
    me: api.Me
    agents: api.AgentList
    language: Language
    inbox_gates: list[api.GateView]  # open gates of all sessions, oldest first
    follower: SessionFollower | None  # the session that is shown; None: a new session

    async def open_session(self, session: str, leaf: str | None = None) -> None:
        """Show another session; "" is a new one."""
        ...

    async def attempt(self, doing: Awaitable[T]) -> T | None:
        """Await it; show an error to the person in one line, and return None."""
        ...

    def show_message(self, text: str, severity: Severity = "information") -> None:
        """Show a notification to the person."""
        ...


def get_host(node: DOMNode) -> Host:
    """Return the app of a widget, as its host."""
    return cast("Host", node.app)  # pyright: ignore[reportUnknownMemberType]


def get_app(node: DOMNode) -> App[object]:
    """Return the app of a widget, as Textual knows it: its keys and its themes."""
    return cast("App[object]", node.app)  # pyright: ignore[reportUnknownMemberType]
