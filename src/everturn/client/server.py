"""A server, its sessions and their turns, as they are handled in one process."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Generator, Sequence
from pathlib import Path
from typing import Any, TypeVar, Unpack
from urllib.parse import quote

from everturn import api
from everturn.chat.turn import TurnResult
from everturn.client.listening import Inbox, Listening
from everturn.client.speaking import Speaker, read_as
from everturn.client.words import Reply, Spoken, answered, said
from everturn.core.canonical import JsonObject
from everturn.core.deltas import Shown
from everturn.core.events import TurnCancelled, TurnCompleted, TurnEvent, TurnFailed
from everturn.core.messages import Message
from everturn.core.parts import FilesPart, Usage
from everturn.core.state import Phase, fold
from everturn.errors import ConfigError, HookError, TurnError

T = TypeVar("T")

MOST = 1000  # of anything, on a page


class Server:
    """An everturn server, or several nodes of one cluster."""

    def __init__(self, urls: str | Sequence[str], token: str) -> None:
        self.speaker = Speaker(urls, token)

    async def __aenter__(self) -> Server:
        """Nothing is asked yet."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Let go of the connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of the connections. What was sent goes on."""
        await self.speaker.aclose()

    async def me(self) -> api.Me:
        """Who we are there."""
        return await self.speaker.get("/api/me", api.Me)

    async def agents(self) -> list[api.AgentView]:
        """The agents there, the default one first."""
        return (await self.speaker.get("/api/agents", api.AgentList)).agents

    async def tools(self) -> list[api.ToolView]:
        """The tools there."""
        return (await self.speaker.get("/api/tools", api.ToolList)).tools

    async def sessions(self, limit: int = 50, before: str = "") -> api.SessionPage:
        """A page of the sessions, those touched last first."""
        query = {"limit": str(limit), **({"before": before} if before else {})}
        return await self.speaker.get("/api/sessions", api.SessionPage, query)

    async def begin(self, text: str, *, key: str | None = None, **spoken: Unpack[Spoken]) -> RemoteTurn:
        """Begin a session with its first message. With the same `key` the same turn is returned, however often."""
        body = api.NewSession(**said(text, spoken))
        return await self.sent("/api/sessions", body, key)

    async def sent(self, path: str, body: api.Body, key: str | None) -> RemoteTurn:
        """Send what begins a turn."""
        key = key or f"cli_{secrets.token_hex(16)}"
        got = read_as(await self.speaker.ask("POST", path, body=body, key=key), api.Sent)
        return RemoteTurn(self, got.session, got.turn)

    def session(self, session: str) -> RemoteSession:
        """A session by its id."""
        return RemoteSession(self, session)

    async def gates(self) -> list[api.GateView]:
        """What waits for somebody, in all sessions, the oldest first: all of it, page by page."""
        page = await self.gate_page(MOST)
        found = {(one.session, one.gate.id): one for one in page.gates}
        while page.next:
            page = await self.gate_page(MOST, page.next)
            found |= {(one.session, one.gate.id): one for one in page.gates}
        return list(found.values())

    async def gate_page(self, limit: int = 200, after: str = "") -> api.GateList:
        """A page of what waits for somebody; `after` is `next` of the page before."""
        query = {"limit": str(limit), **({"after": after} if after else {})}
        return await self.speaker.get("/api/gates", api.GateList, query)

    async def answer(self, asked: api.GateView, **reply: Unpack[Reply]) -> None:
        """Answer a gate; see `Turn.answer`."""
        path = f"/api/sessions/{quote(asked.session, safe='')}/gates/{quote(asked.gate.id, safe='')}/answer"
        await self.speaker.ask("POST", path, body=answered(asked.gate, reply))

    async def claim(self, asked: api.GateView, claim: str, lease: float = 60.0) -> api.ClaimView:
        """Take a call upon yourself; `claim` is a name that nobody can guess."""
        path = f"/api/sessions/{quote(asked.session, safe='')}/gates/{quote(asked.gate.id, safe='')}/claim"
        body = api.Claim(hash=asked.gate.hash, claim=claim, lease=lease)
        return read_as(await self.speaker.ask("POST", path, body=body), api.ClaimView)

    async def attach(self, file: bytes | Path, media_type: str = "", name: str = "") -> api.FileView:
        """Upload a file, to be sent: `send("What is this?", files=[await server.attach(path)])`."""
        import asyncio

        data = file if isinstance(file, bytes) else await asyncio.to_thread(file.read_bytes)
        name = name or ("" if isinstance(file, bytes) else file.name)
        kind = media_type or "application/octet-stream"
        got = await self.speaker.ask("POST", "/api/files", data=data, kind=kind, query={"name": name})
        return read_as(got, api.FileView)

    async def search(self, text: str, limit: int = 50) -> list[api.FoundView]:
        """Messages with all these words."""
        return (await self.speaker.get("/api/search", api.FoundList, {"q": text, "limit": str(limit)})).found

    async def usage(self, since: float = 0.0) -> api.UsageView:
        """What was used."""
        return await self.speaker.get("/api/usage", api.UsageView, {"since": str(since)})

    async def agent_list(self) -> api.AgentList:
        """The agents there, and what is known of the models that they name."""
        return await self.speaker.get("/api/agents", api.AgentList)

    def inbox(self) -> Inbox:
        """What waits for somebody, and what moves, in all sessions: a snapshot, then what changes, without an end."""
        return Inbox(self.speaker)

    async def rules(self, agent: str = "") -> api.RulesView:
        """All that decides on the calls of an agent."""
        return await self.speaker.get("/api/rules", api.RulesView, {"agent": agent} if agent else None)

    async def explain(
        self, tool: str, arguments: JsonObject, *, agent: str = "", session: str | None = None
    ) -> api.ExplainView:
        """What would become of a call, and which rule decides. Nothing is run."""
        body = api.Explain(tool=tool, arguments=arguments, agent=agent, session=session)
        return read_as(await self.speaker.ask("POST", "/api/explain", body=body), api.ExplainView)

    async def grants(self) -> list[api.GrantedView]:
        """What was allowed from then on, in any session."""
        return (await self.speaker.get("/api/grants", api.GrantedList)).grants

    async def revoke(self, grant: str) -> None:
        """Allow it no more."""
        await self.speaker.ask("DELETE", f"/api/grants/{quote(grant, safe='')}")

    async def mcp_servers(self) -> list[api.McpView]:
        """The MCP servers there."""
        return (await self.speaker.get("/api/mcp", api.McpList)).servers

    async def trust_mcp(self, server: api.McpView) -> None:
        """Trust an MCP server as it was shown."""
        path = f"/api/mcp/{quote(server.name, safe='')}/trust"
        await self.speaker.ask("POST", path, body=api.TrustServer(hash=server.hash))

    async def retry_mcp(self, server: str) -> None:
        """Try an MCP server now."""
        await self.speaker.ask("POST", f"/api/mcp/{quote(server, safe='')}/retry")

    async def login_mcp(self, server: str) -> str:
        """Begin to log in to an MCP server; the address at which a person goes on."""
        got = await self.speaker.ask("POST", f"/api/mcp/{quote(server, safe='')}/login", may_repeat=False)
        return read_as(got, api.LoginView).address

    async def setup(self) -> api.SetupView:
        """Which model answers there, and which others could be had."""
        return await self.speaker.get("/api/setup", api.SetupView)

    async def bring_in(self, file: bytes) -> RemoteSession:
        """Make a session of one that was exported."""
        got = await self.speaker.ask("POST", "/api/import", data=file, kind="application/zip", may_repeat=False)
        return self.session(read_as(got, api.SessionView).id)


class RemoteSession:
    """A session on a server: what `Chat` is here."""

    def __init__(self, server: Server, session: str) -> None:
        self._server, self.id = server, session
        self._path = f"/api/sessions/{quote(session, safe='')}"

    async def info(self) -> api.SessionView:
        """As it is listed."""
        return await self._get("", api.SessionView)

    async def messages(self, leaf: str | None = None) -> list[Message]:
        """The selected branch, or the one that ends at `leaf`, oldest first: all of it, page by page."""
        page = await self.message_page(MOST, leaf=leaf)
        found = page.messages
        while page.next:
            page = await self.message_page(MOST, page.next)
            found = [*page.messages, *found]
        return found

    async def message_page(self, limit: int = 200, before: str = "", *, leaf: str | None = None) -> api.MessageList:
        """The end of a branch, oldest first; `before` is `next` of the page that comes after this one."""
        place = {"before": before} if before else {"leaf": leaf} if leaf else {}
        query = {"limit": str(limit), **place}
        return await self._server.speaker.get(f"{self._path}/messages", api.MessageList, query)

    async def tree(self) -> api.TreeView:
        """All messages, and where the selected branch ends."""
        return await self._get("/tree", api.TreeView)

    async def send(
        self, text: str, *, after: str | None = None, key: str | None = None, **spoken: Unpack[Spoken]
    ) -> RemoteTurn:
        """Send a message at the end of the selected branch, or `after` a message, and start a turn."""
        body = api.NewMessage(after=after, **said(text, spoken))
        return await self._server.sent(f"{self._path}/messages", body, key)

    async def rerun(self, message: str, *, model: str = "", key: str | None = None) -> RemoteTurn:
        """Answer again."""
        return await self._server.sent(self._of(message, "rerun"), api.Rerun(model=model), key)

    async def edit(self, message: str, text: str, *, model: str = "", key: str | None = None) -> RemoteTurn:
        """Say it differently."""
        return await self._server.sent(self._of(message, "edit"), api.Edited(text=text, model=model), key)

    async def select(self, message: str | None) -> None:
        """Go on from an earlier message (None: from the beginning)."""
        await self._server.speaker.ask("POST", f"{self._path}/select", body=api.Selected(message=message))

    async def delete(self, message: str) -> None:
        """Hide a message and everything under it."""
        await self._server.speaker.ask("DELETE", self._of(message, "").rstrip("/"))

    async def queue(self) -> list[api.QueuedView]:
        """The messages that wait until the turn before them is over."""
        return (await self._get("/queue", api.QueueList)).queued

    def turn(self, turn: str) -> RemoteTurn:
        """A turn of this session, by its id."""
        return RemoteTurn(self._server, self.id, turn)

    def events(self, after: str = "") -> Listening:
        """Everything that happens in the session, from its beginning or from a cursor, without an end."""
        return Listening(self._server.speaker, f"{self._path}/events", after)

    async def gates(self) -> list[api.GateView]:
        """What waits for somebody in this session, and in the sub-turns that run for it."""
        return (await self._get("/gates", api.GateList)).gates

    async def revert(self, files: FilesPart, *, to: str = "before") -> api.RevertView:
        """Let files be what they were before (or after) a step."""
        if to not in ("before", "after"):
            raise ConfigError(f'to={to!r}: "before" the step, or "after" it')
        body = api.Reverted(root=files.root, tree=files.before if to == "before" else files.after)
        got = await self._server.speaker.ask("POST", f"{self._path}/revert", body=body, may_repeat=False)
        return read_as(got, api.RevertView)

    async def read(self, blob: str) -> bytes:
        """The bytes of a file of this session."""
        return await self._server.speaker.ask("GET", f"{self._path}/blobs/{quote(blob, safe='')}")

    async def export(self) -> bytes:
        """The session as one file."""
        return await self._server.speaker.ask("GET", f"{self._path}/export")

    async def erase(self) -> None:
        """Take everything out of it."""
        await self._server.speaker.ask("DELETE", self._path)

    def _of(self, message: str, what: str) -> str:
        return f"{self._path}/messages/{quote(message, safe='')}/{what}"

    async def _get(self, what: str, kind: type[T]) -> T:
        return await self._server.speaker.get(f"{self._path}{what}", kind)


class RemoteTurn:
    """A turn on a server: to be watched, collected, or cancelled. It runs whether or not anybody does."""

    def __init__(self, server: Server, session: str, turn: str) -> None:
        self._server, self.session, self.id = server, session, turn
        self._path = f"/api/sessions/{quote(session, safe='')}/turns/{quote(turn, safe='')}"

    def events(self, after: str = "") -> Listening:
        """Show the turn from its beginning, or from a cursor, until it is over."""
        return Listening(self._server.speaker, f"{self._path}/events", after)

    async def __aiter__(self) -> AsyncGenerator[Shown, None]:
        """Show the turn as it happens: log events, and deltas between them."""
        listening = self.events()
        try:
            async for item in listening:
                shown = item.event or item.delta or item.progress
                if shown is not None:
                    yield shown
        finally:
            await listening.aclose()

    def __await__(self) -> Generator[Any, None, TurnResult]:
        """Wait until the turn is over, and collect it.

        Raises:
            TurnError: it ended in an error.
        """
        return self._collect().__await__()

    async def _collect(self) -> TurnResult:
        events = [shown async for shown in self if isinstance(shown, TurnEvent)]
        if not events:  # it was cancelled before it began
            return TurnResult(self.id, Phase.CANCELLED, (), Usage())
        state = fold(events)
        ended = next(event for event in events if isinstance(event, TurnCompleted | TurnFailed | TurnCancelled))
        if isinstance(ended, TurnFailed):
            problem = ended.problem
            raise (HookError if problem.kind == "hook" else TurnError)(problem.text, problem.kind)
        return TurnResult(self.id, state.phase, tuple(state.messages.values()), ended.usage, ended.reports)

    async def state(self) -> api.TurnView:
        """The turn as its log tells it, now."""
        return await self._server.speaker.get(self._path, api.TurnView)

    async def gates(self) -> list[api.GateView]:
        """What it waits for, and what its sub-turns do."""
        return await self._server.session(self.session).gates()

    async def cancel(self, *, hard: bool = False) -> None:
        """End the turn. Its tools go on and their results come late, unless `hard` cancels them too."""
        await self._server.speaker.ask("POST", f"{self._path}/cancel", body=api.Cancelled(hard=hard))
