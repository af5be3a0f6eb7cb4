"""Session of a server, with the methods of `Chat`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TypeVar, Unpack
from urllib.parse import quote, urlencode

from everturn import api
from everturn.client.bodies import MessageOptions, message_fields
from everturn.client.event_stream import RemoteEventStream
from everturn.client.http import decode_body
from everturn.client.sharing import RemoteSharing
from everturn.client.turn import HasNodeClient, RemoteTurn, start_turn
from everturn.core.context.context_report import ContextReport
from everturn.core.gates import Grant
from everturn.core.messages import Message
from everturn.core.options import PermissionMode, StepLimitPolicy
from everturn.core.parts import FilesPart
from everturn.core.ratings import Rating
from everturn.errors import ConfigError

T = TypeVar("T")

MAX_PAGE_SIZE = 1000  # items on a page


class RemoteSession:
    """A session on a server, like `Chat`."""

    def __init__(self, server: HasNodeClient, session: str) -> None:
        self._server, self.id = server, session
        self._path = f"/api/sessions/{quote(session, safe='')}"
        self.sharing = RemoteSharing(server.node_client, self._path)

    async def info(self) -> api.SessionView:
        """The entry of the session in a list."""
        return await self._get("", api.SessionView)

    async def messages(self, leaf: str | None = None) -> list[Message]:
        """The selected branch, or the one that ends at `leaf`, oldest first, read page by page."""
        page = await self.message_page(MAX_PAGE_SIZE, leaf=leaf)
        messages = page.messages
        while page.next:
            page = await self.message_page(MAX_PAGE_SIZE, page.next)
            messages = [*page.messages, *messages]
        return messages

    async def message_page(self, limit: int = 200, before: str = "", *, leaf: str | None = None) -> api.MessageList:
        """The last page of a branch, oldest first; `before` is `next` of the page after it."""
        place = {"before": before} if before else {"leaf": leaf} if leaf else {}
        query = {"limit": str(limit), **place}
        return await self._server.node_client.get(f"{self._path}/messages", api.MessageList, query)

    async def tree(self) -> api.TreeView:
        """All messages, and the end of the selected branch."""
        return await self._get("/tree", api.TreeView)

    async def send(
        self, text: str, *, after: str | None = None, key: str | None = None, **options: Unpack[MessageOptions]
    ) -> RemoteTurn:
        """Send a message at the end of the selected branch, or `after` a message, and start a turn."""
        body = api.NewMessage(after=after, **message_fields(text, options))
        return await start_turn(self._server, f"{self._path}/messages", body, key)

    async def rerun(
        self,
        message: str,
        *,
        model: str = "",
        mode: PermissionMode = "",
        at_step_limit: StepLimitPolicy = "answer",
        after_step: int = 0,
        key: str | None = None,
    ) -> RemoteTurn:
        """Regenerate an answer; with `after_step` its steps up to this one stay, and none of their calls runs again."""
        body = api.RegenerateAnswer(model=model, mode=mode, at_step_limit=at_step_limit, after_step=after_step)
        return await start_turn(self._server, self._of(message, "rerun"), body, key)

    async def compact(self, *, focus: str = "", key: str | None = None) -> RemoteTurn:
        """Summarise the earlier part of the selected branch, so that later requests are shorter."""
        return await start_turn(self._server, f"{self._path}/compact", api.CompactSession(focus=focus), key)

    async def context(self, *, at: str = "", model: str = "") -> ContextReport:
        """What fills the context window of the selected branch, or of the one that ends `at` a message."""
        query = urlencode({name: value for name, value in (("at", at), ("model", model)) if value})
        return await self._get(f"/context?{query}", ContextReport)

    async def edit(
        self,
        message: str,
        text: str,
        *,
        model: str = "",
        mode: PermissionMode = "",
        at_step_limit: StepLimitPolicy = "answer",
        key: str | None = None,
    ) -> RemoteTurn:
        """Edit a user message."""
        body = api.EditMessage(text=text, model=model, mode=mode, at_step_limit=at_step_limit)
        return await start_turn(self._server, self._of(message, "edit"), body, key)

    async def fork(self, message: str, step: int, *, key: str | None = None) -> str:
        """Continue inside an answer, after this step: the next `send` follows the copy, whose id is returned."""
        body, key = api.ForkAnswer(step=step), key or f"cli_{secrets.token_hex(16)}"
        response = await self._server.node_client.ask("POST", self._of(message, "fork"), body=body, key=key)
        return decode_body(response, api.ForkedAnswer).message

    async def select(self, message: str | None) -> None:
        """Continue from an earlier message (None: from the beginning)."""
        await self._server.node_client.ask("POST", f"{self._path}/select", body=api.SelectBranch(message=message))

    async def switch(self, agent: str, *, key: str | None = None) -> api.SessionView:
        """Hand the session to another agent, which takes its next turns."""
        body = api.SwitchAgent(agent=agent)
        response = await self._server.node_client.ask("POST", f"{self._path}/agent", body=body, key=key or "")
        return decode_body(response, api.SessionView)

    async def update(
        self,
        *,
        title: str | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
        labels: Sequence[str] | None = None,
        key: str | None = None,
    ) -> api.SessionView:
        """Rename, pin, archive or label the session; None leaves a field as it is."""
        names = None if labels is None else list(labels)
        body = api.PatchSession(title=title, pinned=pinned, archived=archived, labels=names)
        # Two attempts of one request are one change; a change to the same value later is another one.
        key = key or f"cli_{secrets.token_hex(16)}"
        return decode_body(await self._server.node_client.ask("PATCH", self._path, body=body, key=key), api.SessionView)

    async def rate(self, message: str, rating: Rating, *, reason: str = "", key: str | None = None) -> None:
        """Rate an answer "up" or "down"; "" withdraws the rating."""
        body, key = api.PutRating(rating=rating, reason=reason), key or f"cli_{secrets.token_hex(16)}"
        path = f"{self._path}/messages/{message}/rating"
        await self._server.node_client.ask("PUT", path, body=body, key=key)

    async def instructions(self) -> api.InstructionsView:
        """The layers of instructions that the next turn would have."""
        return await self._get("/instructions", api.InstructionsView)

    async def write_instructions(self, text: str, *, key: str | None = None) -> api.InstructionsView:
        """Set the instructions of the session, for later messages; "" removes them."""
        body = api.PutSessionInstructions(text=text)
        response = await self._server.node_client.ask("PUT", f"{self._path}/instructions", body=body, key=key or "")
        return decode_body(response, api.InstructionsView)

    async def delete(self, message: str) -> None:
        """Hide a message and everything under it."""
        await self._server.node_client.ask("DELETE", self._of(message, "").rstrip("/"))

    async def log_tail(self, before: int = 0, turns: int = 0) -> api.LogTail:
        """The last turns of the log, or the last that started `before` a position (the `start` of a page)."""
        query = "&".join(f"{name}={value}" for name, value in (("before", before), ("turns", turns)) if value)
        return await self._get(f"/log/tail?{query}", api.LogTail)

    async def queue(self) -> list[api.QueuedView]:
        """The queued messages, which wait until the turn before them is over."""
        return (await self._get("/queue", api.QueueList)).queued

    def turn(self, turn: str) -> RemoteTurn:
        """A turn of this session, by its id."""
        return RemoteTurn(self._server, self.id, turn)

    def events(self, after: str = "") -> RemoteEventStream:
        """An endless stream of the session's events, from its beginning or from a cursor."""
        return RemoteEventStream(self._server.node_client, f"{self._path}/events", after)

    async def gates(self) -> list[api.GateView]:
        """The open gates of this session and its sub-agent runs."""
        return (await self._get("/gates", api.GateList)).gates

    async def revert(self, files: FilesPart, *, to: str = "before") -> api.RevertView:
        """Restore files to their state before (or after) a step."""
        if to not in ("before", "after"):
            raise ConfigError(f'to={to!r}: "before" the step, or "after" it')
        body = api.RevertFiles(root=files.root, tree=files.before if to == "before" else files.after)
        response = await self._server.node_client.ask("POST", f"{self._path}/revert", body=body, may_repeat=False)
        return decode_body(response, api.RevertView)

    async def read(self, blob: str) -> bytes:
        """The bytes of a file of this session."""
        return await self._server.node_client.ask("GET", f"{self._path}/blobs/{quote(blob, safe='')}")

    async def grants(self) -> list[Grant]:
        """The grants ("always allow") of the session."""
        return (await self._get("/grants", api.SessionGrantList)).grants

    async def revoke(self, grant: str) -> None:
        """Revoke a grant of the session."""
        await self._server.node_client.ask("DELETE", f"{self._path}/grants/{quote(grant, safe='')}")

    async def log_page(self, after: int = 0, limit: int = MAX_PAGE_SIZE) -> api.LogPage:
        """The log after a position, to fold it before the stream is followed."""
        query = {"after": str(after), "limit": str(limit)}
        return await self._server.node_client.get(f"{self._path}/log", api.LogPage, query)

    async def speak(self, text: str) -> bytes:
        """A text of the session as audio."""
        body = api.SpeakText(text=text)
        return await self._server.node_client.ask("POST", f"{self._path}/speech", body=body, may_repeat=False)

    async def export(self) -> bytes:
        """The session as one file."""
        return await self._server.node_client.ask("GET", f"{self._path}/export")

    async def erase(self) -> None:
        """Erase the content of the session."""
        await self._server.node_client.ask("DELETE", self._path)

    def _of(self, message: str, action: str) -> str:
        return f"{self._path}/messages/{quote(message, safe='')}/{action}"

    async def _get(self, path: str, kind: type[T]) -> T:
        return await self._server.node_client.get(f"{self._path}{path}", kind)
