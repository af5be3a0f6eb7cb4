"""Host interface of the conversation: what its screen, and the screens that only this app shows, use of the app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar, cast

from textual.dom import DOMNode

from everturn import api
from everturn.terminal.tui.command_host import CommandHost
from everturn.terminal.tui.commands import Commands

T = TypeVar("T")


class ChatHost(CommandHost, Protocol):
    """The app, as the conversation screen sees it."""

    commands: Commands
    sessions: dict[str, api.SessionView]  # known sessions
    picked: str  # the message that is picked in the transcript; "": none
    note: str
    folder: api.FolderView | None  # the folder that this terminal works in
    is_in_memory: bool  # the sessions end with this process

    def recent_sessions(self) -> list[api.SessionView]:
        """Return the known sessions, the last used first, without those of sub-agents."""
        ...

    def current_agent_view(self) -> api.AgentView | None:
        """Return the agent of the next message, as the server describes it."""
        ...

    def cycle_mode(self) -> None:
        """Select the next permission mode."""
        ...

    def gates_of_session(self) -> list[api.GateView]:
        """Return the open gates of the session that is shown, and of its sub-agents."""
        ...

    async def handle_input_ready(self) -> None:
        """The input is ready: handle the buffered keys in order, and apply the command-line options."""
        ...

    async def wait_until_started(self) -> None:
        """Wait until the command-line options are applied, so that a message goes to the session that they name."""
        ...

    def draw(self) -> None:
        """Draw the conversation screen and the sidebar again."""
        ...

    async def action_gate(self) -> None:
        """Open the first gate of this session, or the inbox if it has none."""
        ...

    def call_later(self, callback: Callable[[], Awaitable[None]]) -> bool:
        """Call it after all pending messages of the app."""
        ...


def get_chat_host(node: DOMNode) -> ChatHost:
    """Return the app of a widget, as the host of the conversation."""
    return cast("ChatHost", node.app)  # pyright: ignore[reportUnknownMemberType]
