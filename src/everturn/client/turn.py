"""Turn of a server, with the methods of `Turn`."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Generator
from typing import Any, Protocol
from urllib.parse import quote

from everturn import api
from everturn.chat.result import RunResult
from everturn.client.event_stream import RemoteEventStream
from everturn.client.http import NodeClient, decode_body
from everturn.core.deltas import TurnItem
from everturn.core.events import TurnCancelled, TurnCompleted, TurnEvent, TurnFailed
from everturn.core.phases import Phase
from everturn.core.state import fold
from everturn.errors import HookError, TurnError


class HasNodeClient(Protocol):
    """What a session or a turn sends its requests through: a `Server`."""

    @property
    def node_client(self) -> NodeClient:
        """Sends the requests."""
        ...


class RemoteTurn:
    """A turn on a server: stream it, await it, cancel it. It runs even if no reader follows it."""

    def __init__(self, server: HasNodeClient, session: str, turn: str) -> None:
        self._server, self.session, self.id = server, session, turn
        self._path = f"/api/sessions/{quote(session, safe='')}/turns/{quote(turn, safe='')}"

    def events(self, after: str = "") -> RemoteEventStream:
        """Show the turn from its beginning, or from a cursor, until it is over."""
        return RemoteEventStream(self._server.node_client, f"{self._path}/events", after)

    async def __aiter__(self) -> AsyncGenerator[TurnItem, None]:
        """Show the turn as it happens: log events, and deltas between them."""
        stream = self.events()
        try:
            async for item in stream:
                shown = item.event or item.delta or item.progress
                if shown is not None:
                    yield shown
        finally:
            await stream.aclose()

    def __await__(self) -> Generator[Any, None, RunResult]:
        """Wait until the turn is over, and return its result.

        Raises:
            TurnError: the turn failed.
        """
        return self._collect().__await__()

    async def _collect(self) -> RunResult:
        events = [shown async for shown in self if isinstance(shown, TurnEvent)]
        if not events:  # it was cancelled before its start
            return RunResult(session=self.session, turn=self.id, phase=Phase.CANCELLED, status="cancelled")
        state = fold(events)
        terminal = next(event for event in events if isinstance(event, TurnCompleted | TurnFailed | TurnCancelled))
        if isinstance(terminal, TurnFailed):
            problem = terminal.problem
            raise (HookError if problem.kind == "hook" else TurnError)(problem.text, problem.kind)
        is_cancelled = state.phase is Phase.CANCELLED
        return RunResult(
            session=self.session,
            turn=self.id,
            phase=state.phase,
            status="cancelled"
            if is_cancelled
            else "refused"
            if state.refusal
            else "completed"
            if state.limit is None
            else "limited",
            messages=tuple(state.messages.values()),
            usage=terminal.usage,
            reports=terminal.reports,
            state=state,
        )

    async def state(self) -> api.TurnView:
        """The present state of the turn."""
        return await self._server.node_client.get(self._path, api.TurnView)

    async def gates(self) -> list[api.GateView]:
        """The open gates of its session and sub-agent runs."""
        path = f"/api/sessions/{quote(self.session, safe='')}/gates"
        return (await self._server.node_client.get(path, api.GateList)).gates

    async def trace(self) -> api.TraceView:
        """The timeline of the turn: steps, calls, waits, retries, tokens and cost."""
        return await self._server.node_client.get(f"{self._path}/trace", api.TraceView)

    async def sent_request(self, step: int) -> api.SentRequestView:
        """The request of a step, assembled again from the log."""
        return await self._server.node_client.get(f"{self._path}/request", api.SentRequestView, {"step": str(step)})

    async def cancel(self, *, hard: bool = False) -> None:
        """Cancel the turn. Its tools continue and deliver late results, unless `hard` cancels them too."""
        await self._server.node_client.ask("POST", f"{self._path}/cancel", body=api.CancelTurn(hard=hard))


async def start_turn(server: HasNodeClient, path: str, body: api.Body, key: str | None) -> RemoteTurn:
    """Send a request that starts a turn; a repeat has the same key."""
    key = key or f"cli_{secrets.token_hex(16)}"
    response = decode_body(await server.node_client.ask("POST", path, body=body, key=key), api.MessageReceipt)
    return RemoteTurn(server, response.session, response.turn)
