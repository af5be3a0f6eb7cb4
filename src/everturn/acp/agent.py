"""Agent of an editor: the methods of the Agent Client Protocol, on sessions of the server of the store."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from everturn import __version__, api
from everturn.acp.connection import INVALID_PARAMS, NOT_FOUND, Reply, RpcConnection, RpcError, WriteLine
from everturn.acp.prompt_content import read_prompt
from everturn.acp.session import EditorSession
from everturn.acp.texts import AcpTexts
from everturn.acp.unused_sessions import UnusedSessions
from everturn.client import Server
from everturn.core.options import PermissionMode
from everturn.core.tenants.saved_prompts import PromptArgument, SavedPrompt, expand_prompt, parse_arguments
from everturn.errors import ConfigError, EverturnError, UnknownSession

JsonObject = dict[str, Any]
PROTOCOL_VERSION: Final = 1
MODES: Final[dict[str, PermissionMode]] = {"plan": "plan", "ask": "ask", "auto-edit": "auto_edit"}
COMPACT: Final = "compact"
PAGE: Final = 100


class AcpAgent:
    """Serves one editor. `trust` is called with a folder before it is opened."""

    def __init__(
        self,
        server: Server,
        write: WriteLine,
        texts: AcpTexts,
        *,
        mode: PermissionMode = "",
        model: str = "",
        trust: Callable[[str], None] | None = None,
        unused: UnusedSessions | None = None,
    ) -> None:
        self.server, self.texts, self.model, self._trust, self._unused = server, texts, model, trust, unused
        self._mode: PermissionMode = mode
        self._sessions: dict[str, EditorSession] = {}
        self._prompts: list[api.PromptView] = []
        self.connection = RpcConnection(
            write,
            {
                "initialize": self._initialize,
                "authenticate": self._authenticate,
                "session/new": self._new,
                "session/load": self._load,
                "session/resume": self._resume,
                "session/list": self._list,
                "session/close": self._close,
                "session/prompt": self._prompt,
                "session/cancel": self._cancel,
                "session/set_mode": self._set_mode,
            },
        )

    async def serve(self, lines: AsyncIterator[bytes]) -> None:
        """Serve the editor until it closes the connection. Turns that run go on, here or at the next start."""
        watching = asyncio.get_running_loop().create_task(self._watch_gates())
        try:
            await self.connection.serve(lines)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def reopen_folders(self) -> None:
        """Open the folders again, after another process has taken the store over."""
        for root in {session.folder.root for session in self._sessions.values()}:
            with suppress(EverturnError):
                await self.server.open_folder(root)

    async def _watch_gates(self) -> None:
        """Ask about gates as they open, in sub-agent runs too: the inbox reports every change."""
        while True:
            inbox = self.server.inbox()
            with suppress(EverturnError):
                async for item in inbox:
                    if item.snapshot is not None or item.waits is not None:
                        for session in list(self._sessions.values()):
                            await session.ask_open_gates()
            await inbox.aclose()
            await asyncio.sleep(1.0)

    # Methods -----------------------------------------------------------------------------------------------------------

    async def _initialize(self, params: JsonObject) -> JsonObject:
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
                "mcpCapabilities": {"http": False, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "agentInfo": {"name": "everturn", "title": "Everturn", "version": __version__},
            "authMethods": [],
        }

    async def _authenticate(self, params: JsonObject) -> JsonObject:
        return {}  # `everturn auth` keeps the keys of models; the editor has none to give

    async def _new(self, params: JsonObject) -> Reply:
        key = f"acp_{secrets.token_hex(16)}"
        folder = await self._open(params, key)
        session = EditorSession(self, folder.session, folder, self._mode_of(folder), key)
        self._sessions[session.id] = session
        if self._unused is not None:
            await asyncio.to_thread(self._unused.add, session.id, key)
        return Reply({"sessionId": session.id, "modes": self._modes(session)}, lambda: self._announce_commands(session))

    async def _load(self, params: JsonObject) -> Reply:
        session = await self._open_existing(params)
        if session.is_unused:
            return self._reopened_unused(session)
        await session.replay()
        return self._opened(session)

    async def _resume(self, params: JsonObject) -> Reply:
        session = await self._open_existing(params)
        if session.is_unused:
            return self._reopened_unused(session)
        await session.continue_from_now()
        return self._opened(session)

    def _reopened_unused(self, session: EditorSession) -> Reply:
        self._sessions[session.id] = session
        return Reply({"modes": self._modes(session)}, lambda: self._announce_commands(session))

    def forget_unused(self, session: str) -> None:
        """The session has its first message: the store has it now."""
        if self._unused is not None:
            self._unused.remove(session)

    def _opened(self, session: EditorSession) -> Reply:
        self._sessions[session.id] = session
        session.start_following()

        async def after() -> None:
            await self._announce_commands(session)
            await session.ask_open_gates()

        return Reply({"modes": self._modes(session)}, after)

    async def _list(self, params: JsonObject) -> JsonObject:
        folder = await self._open(params) if params.get("cwd") is not None else None
        page = await self.server.sessions(PAGE, _text(params, "cursor", is_needed=False))
        rows = [
            {
                "sessionId": view.id,
                "cwd": folder.root if folder is not None else "/",
                "title": view.title,
                "updatedAt": datetime.fromtimestamp(view.updated, UTC).isoformat(),
            }
            for view in page.sessions
            if not view.parent and (folder is None or view.agent == folder.agent)
        ]
        return {"sessions": rows, **({"nextCursor": page.next} if page.next else {})}

    async def _close(self, params: JsonObject) -> JsonObject:
        session = self._session(params)
        await session.cancel()
        session.close()
        self._sessions.pop(session.id, None)
        return {}

    async def _prompt(self, params: JsonObject) -> JsonObject:
        session = self._session(params)
        content = await read_prompt(params.get("prompt"), self.server)
        name, _, words = content.text.strip().partition(" ")
        if name == f"/{COMPACT}":
            return {"stopReason": await session.compact(words.strip())}
        if name.startswith("/") and (prompt := self._saved_prompt(name[1:])) is not None:
            try:
                content.text = expand_prompt(prompt, parse_arguments(prompt, words))
            except ConfigError as error:
                raise RpcError(INVALID_PARAMS, str(error)) from None
        return {"stopReason": await session.prompt(content)}

    async def _cancel(self, params: JsonObject) -> None:
        await self._session(params).cancel()

    async def _set_mode(self, params: JsonObject) -> JsonObject:
        session, mode = self._session(params), _text(params, "modeId")
        if mode not in MODES:
            raise RpcError(INVALID_PARAMS, f"there is no mode {mode!r}; there are: {', '.join(MODES)}")
        session.mode = MODES[mode]
        return {}

    # Their parts -------------------------------------------------------------------------------------------------------

    async def _open(self, params: JsonObject, key: str = "") -> api.FolderView:
        cwd = _text(params, "cwd")
        if not os.path.isabs(cwd):
            raise RpcError(INVALID_PARAMS, "cwd must be an absolute path")
        if self._trust is not None:
            await asyncio.to_thread(self._trust, cwd)
        return await self.server.open_folder(cwd, key=key)

    async def _open_existing(self, params: JsonObject) -> EditorSession:
        id, folder = _text(params, "sessionId"), await self._open(params)
        try:
            await self.server.session(id).info()
        except UnknownSession:
            key = await asyncio.to_thread(self._unused.find, id) if self._unused is not None else ""
            if not key or (await self._open(params, key)).session != id:  # nobody's, or of another user
                raise
            return EditorSession(self, id, folder, self._mode_of(folder), key)
        if (open_session := self._sessions.pop(id, None)) is not None:
            open_session.close()  # the editor shows it anew
        return EditorSession(self, id, folder, self._mode_of(folder))

    def _mode_of(self, folder: api.FolderView) -> PermissionMode:
        return self._mode if self._mode else folder.mode

    def _session(self, params: JsonObject) -> EditorSession:
        id = _text(params, "sessionId")
        if id not in self._sessions:
            raise RpcError(NOT_FOUND, f"session {id!r} is not open here; session/load opens it")
        return self._sessions[id]

    def _modes(self, session: EditorSession) -> JsonObject:
        texts = self.texts
        names = {
            "plan": (texts.plan, texts.plan_about),
            "ask": (texts.ask, texts.ask_about),
            "auto-edit": (texts.auto_edit, texts.auto_edit_about),
        }
        current = next((id for id, mode in MODES.items() if mode == session.mode), "ask")
        modes = [{"id": id, "name": name, "description": about} for id, (name, about) in names.items()]
        return {"currentModeId": current, "availableModes": modes}

    async def _announce_commands(self, session: EditorSession) -> None:
        with suppress(EverturnError):
            self._prompts = await self.server.prompts()
        commands: list[JsonObject] = [
            {"name": COMPACT, "description": self.texts.compact, "input": {"hint": self.texts.focus}}
        ]
        for prompt in self._prompts:
            hint = " ".join(argument.name for argument in prompt.arguments)
            command: JsonObject = {"name": prompt.name, "description": prompt.description or prompt.name}
            commands.append({**command, "input": {"hint": hint}} if hint else command)
        await session.update({"sessionUpdate": "available_commands_update", "availableCommands": commands})

    def _saved_prompt(self, name: str) -> SavedPrompt | None:
        view = next((prompt for prompt in self._prompts if prompt.name == name), None)
        if view is None:
            return None
        arguments = tuple(
            PromptArgument(argument.name, argument.description, argument.default) for argument in view.arguments
        )
        return SavedPrompt(view.name, view.text, view.description, arguments)


def _text(params: JsonObject, name: str, *, is_needed: bool = True) -> str:
    value = params.get(name)
    if value is None and not is_needed:
        return ""
    if not isinstance(value, str) or not value or len(value) > 4096 or "\0" in value:
        raise RpcError(INVALID_PARAMS, f"{name} must be a string")
    return value
