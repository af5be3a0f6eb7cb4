"""Session in an editor: follows the log, runs prompts, and asks for the approvals that are open.

One reader follows the session's log from its beginning: it replays what happened when the session is loaded, and goes on
with what happens, also with turns that a terminal or the web UI starts. A prompt is answered when the reader has seen the
end of its turn, so everything that the turn showed was sent before.

Open approvals are rows of the store, and not of this process: `ask_open_gates` asks about those that were not asked here yet, after a
load and after every change that the inbox reports, including those of sub-agent runs.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from everturn import api
from everturn.acp.connection import INTERNAL_ERROR, RpcConnection, RpcError, as_rpc_error
from everturn.acp.permission_options import UNANSWERABLE, make_options
from everturn.acp.prompt_content import PromptContent
from everturn.acp.texts import AcpTexts
from everturn.acp.tool_calls import describe_call, text_content
from everturn.acp.updates import TurnOutcome, UpdateEncoder, message_chunk
from everturn.client import RemoteTurn, Server
from everturn.client.event_stream import RemoteEventStream
from everturn.core.events import MessageAdded, TurnEvent, TurnStarted
from everturn.core.options import PermissionMode
from everturn.core.state import limit_of_gate
from everturn.errors import EverturnError, GateClosed, UnknownGate

log = logging.getLogger(__name__)

JsonObject = dict[str, Any]
MAX_SHOWN_FILE: Final = 1_000_000  # bytes of a file whose old text is shown beside the new one


class EditorHost(Protocol):
    """What a session has of its agent."""

    connection: RpcConnection
    server: Server
    texts: AcpTexts
    model: str  # of the messages; "": that of the agent

    def forget_unused(self, session: str) -> None:
        """The session has its first message."""
        ...


class EditorSession:
    """A session that the editor has open. `key` is the idempotency key of its first message; "": it exists."""

    def __init__(self, host: EditorHost, id: str, folder: api.FolderView, mode: PermissionMode, key: str = "") -> None:
        self._host, self.id, self.folder, self.mode, self._key = host, id, folder, mode, key
        self._remote = host.server.session(id)
        self._encoder = UpdateEncoder(folder.root, host.texts)
        self._stream: RemoteEventStream | None = None
        self._following: asyncio.Task[None] | None = None
        self._branch: set[str] | None = None  # turns to replay; None: all
        self._sending = asyncio.Lock()  # a turn is known as the editor's own before its start is handled
        self._own: set[str] = set()
        self._outcomes: dict[str, TurnOutcome] = {}  # of the turns that are running
        self._prompts: dict[str, asyncio.Future[str]] = {}
        self._shown_gates: set[str] = set()  # gates
        self._cancels = 0

    @property
    def is_unused(self) -> bool:
        """Whether it has no message yet, and so is not in the store."""
        return bool(self._key)

    async def update(self, body: JsonObject) -> None:
        """Send an update to the editor."""
        await self._host.connection.notify("session/update", {"sessionId": self.id, "update": body})

    # The log -----------------------------------------------------------------------------------------------------------

    async def replay(self) -> None:
        """Send what happened so far.

        Raises:
            UnknownSession: there is no such session.
        """
        tail = await self._remote.log_tail(turns=1)
        self._branch = {message.turn for message in await self._remote.messages()}
        self._branch |= {item.event.turn for item in tail.entries if isinstance(item.event, TurnEvent)}
        self._stream = self._remote.events()
        if not tail.seq:
            return
        async for item in self._stream:
            await self._show(item)
            if item.seq >= tail.seq:
                break
        self._branch = None

    async def continue_from_now(self) -> None:
        """Follow what happens from now on, without what happened before.

        Raises:
            UnknownSession: there is no such session.
        """
        tail = await self._remote.log_tail(turns=1)
        self._stream = self._remote.events(str(tail.seq))

    def start_following(self) -> None:
        """Send what happens from now on, until the connection or the session is closed."""
        self._following = self._host.connection.start(self._follow())

    def close(self) -> None:
        """Send nothing more. The session and its turns go on; prompts that wait are answered with an error."""
        if self._following is not None:
            self._following.cancel()
        self._fail_prompts(RpcError(INTERNAL_ERROR, "the session was closed; its turn continues"))

    async def _follow(self) -> None:
        if self._stream is None:
            self._stream = self._remote.events()
        try:
            async for item in self._stream:
                await self._show(item)
            raise RpcError(INTERNAL_ERROR, "the stream of the session ended")
        except (EverturnError, RpcError) as error:
            log.warning("the events of session %s cannot be read: %s", self.id, error)
            self._fail_prompts(as_rpc_error(error))
            self._stream = None

    def _fail_prompts(self, error: RpcError) -> None:
        for prompt in self._prompts.values():
            if not prompt.done():
                prompt.set_exception(error)
                prompt.exception()  # the editor may have gone
        self._prompts.clear()

    async def _show(self, item: api.StreamItem) -> None:
        shown = item.event or item.delta or item.progress
        if shown is None:
            return
        turn = getattr(shown, "turn", "")
        if self._branch is not None and turn and turn not in self._branch:
            return
        if isinstance(shown, TurnStarted | MessageAdded):
            async with self._sending:
                is_own = turn in self._own
        else:
            is_own = turn in self._own
        for body in self._encoder.encode(shown, is_own=is_own):
            await self.update(body)
        if isinstance(shown, TurnEvent):
            self._note(shown)

    def _note(self, event: TurnEvent) -> None:
        outcome = self._outcomes.setdefault(event.turn, TurnOutcome()).feed(event)
        if outcome is None:
            return
        del self._outcomes[event.turn]
        prompt = self._prompts.pop(event.turn, None)
        if prompt is None or prompt.done():
            return
        if isinstance(outcome, RpcError):
            prompt.set_exception(outcome)
        else:
            prompt.set_result(outcome)

    # Prompts -----------------------------------------------------------------------------------------------------------

    async def prompt(self, content: PromptContent) -> str:
        """Send a message, and return the stop reason of its turn; a turn that runs is steered.

        Raises:
            RpcError: the turn failed.
            EverturnError: the message was not accepted.
        """
        cancels = self._cancels
        async with self._sending:
            turn = await self._send(content)
            self._own.add(turn.id)
            prompt = self._prompts.setdefault(turn.id, asyncio.get_running_loop().create_future())
        return await self._until_over(turn, prompt, cancels)

    async def compact(self, focus: str) -> str:
        """Summarise the conversation, and return the stop reason of that turn."""
        cancels = self._cancels
        async with self._sending:
            turn = await self._remote.compact(focus=focus)
            self._own.add(turn.id)
            prompt = self._prompts.setdefault(turn.id, asyncio.get_running_loop().create_future())
        return await self._until_over(turn, prompt, cancels)

    async def _until_over(self, turn: RemoteTurn, prompt: asyncio.Future[str], cancels: int) -> str:
        if self._stream is None:
            self.start_following()
        if self._cancels != cancels:  # it was cancelled before its turn was known
            await turn.cancel()
        return await asyncio.shield(prompt)

    async def _send(self, content: PromptContent) -> RemoteTurn:
        options: Any = {"files": content.files, "contexts": content.contexts, "mode": self.mode}
        options |= {"model": self._host.model, "at_step_limit": "ask"}
        if self._key:
            turn = await self._host.server.start_session(
                content.text, key=self._key, agent=self.folder.agent, **options
            )
            self._key = ""
            self._host.forget_unused(self.id)
            return turn
        busy = "steer" if self._outcomes else "queue"
        return await self._remote.send(content.text, busy=busy, **options)

    async def cancel(self) -> None:
        """Cancel what runs. Open approvals are closed with their turn."""
        self._cancels += 1
        for turn in {*self._outcomes, *self._prompts}:
            with suppress(EverturnError):
                await self._remote.turn(turn).cancel()

    # Approvals ---------------------------------------------------------------------------------------------------------

    async def ask_open_gates(self) -> None:
        """Ask the editor about the open gates of the session and its sub-agent runs that were not asked here yet."""
        if self._key:
            return  # there is no session before the first message
        with suppress(EverturnError):
            for view in await self._remote.gates():
                if view.gate.id in self._shown_gates:
                    continue
                self._shown_gates.add(view.gate.id)
                if view.gate.kind in UNANSWERABLE:
                    text = self._host.texts.elsewhere.format(tool=view.gate.tool, session=self.id)
                    await self.update(message_chunk(f"\n\n{text}\n"))
                else:
                    self._host.connection.start(self._ask(view))

    async def _ask(self, view: api.GateView) -> None:
        gate = view.gate
        options, replies = make_options(gate, self._host.texts)
        call = {
            "toolCallId": gate.call or gate.id,
            "status": "pending",
            **await asyncio.to_thread(self._describe, view),
        }
        about = {"gate": gate.id, "hash": gate.hash, "kind": gate.kind, "why": gate.why}
        params = {"sessionId": self.id, "toolCall": call, "options": options, "_meta": {"everturn": about}}
        try:
            response = await self._host.connection.request("session/request_permission", params)
        except RpcError as error:
            log.warning("the editor did not ask the user about %s: %s", gate.tool, error)
            return
        match response:
            case {"outcome": {"outcome": "selected", "optionId": str(choice)}} if choice in replies:
                with suppress(GateClosed, UnknownGate):  # it was answered in another client
                    await self._host.server.answer(view, **replies[choice])
            case _:
                pass  # cancelled: the turn ends, and the gate with it

    def _describe(self, view: api.GateView) -> JsonObject:
        gate = view.gate
        if gate.kind == "limit":
            return {"title": self._host.texts.limit.format(limit=limit_of_gate(gate)), "kind": "other"}
        fields = describe_call(gate.tool, gate.arguments, self.folder.root)
        content = [self._with_old_text(part) for part in fields.get("content", [])]
        if not content and gate.preview:
            content.append(text_content(gate.preview))
        if gate.kind == "result" and gate.output is not None:
            content = [text_content(gate.output.text)]
        elif gate.why:
            content.append(text_content(gate.why))
        return {**fields, "content": content}

    def _with_old_text(self, diff: JsonObject) -> JsonObject:
        """Add the text that a file has now to the diff of a whole file, if it is a file beneath the root."""
        if diff.get("oldText") is not None:
            return diff
        root, path = os.path.realpath(self.folder.root), os.path.realpath(diff["path"])
        try:
            if path.startswith(f"{root}{os.sep}") and Path(path).is_file() and os.path.getsize(path) <= MAX_SHOWN_FILE:
                return {**diff, "oldText": Path(path).read_text(encoding="utf-8")}
        except (OSError, UnicodeDecodeError):
            pass
        return diff
