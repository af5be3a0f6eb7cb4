"""Session events: what an MCP session reports to its connection, and whether a call was sent."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from everturn.core.canonical_json import JsonObject

UNREACHABLE: Final = -32062  # our own error code, besides those of the protocol: the server cannot be reached

CLOSED: Final = "its connection was closed"


class SentCall(Struct):
    """A call on its way: whether its bytes may have reached the server, and its result."""

    cancels_at_server: bool = True
    is_sent: bool = False
    task: JsonObject | None = None  # it is sent as a request for a task
    result: JsonObject = {}


class SessionEvents:
    """Callbacks of a session to its owner. None of them may block, except `asked`."""

    def connection_lost(self, why: str) -> None:
        """The connection has ended."""

    def tools_changed(self) -> None:
        """The list of tools has changed."""

    def login_required(self, why: str) -> None:
        """The server requires authentication."""

    def task_status_changed(self, params: JsonObject) -> None:
        """The server has reported the status of a task."""

    async def answer_request(self, method: str, params: JsonObject) -> JsonObject:
        """Answer a request of the server during a call.

        Raises:
            PermissionError: the request is refused; its text is sent to the server.
        """
        raise PermissionError("no client is connected that could answer")
