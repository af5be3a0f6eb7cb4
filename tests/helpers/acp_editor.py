"""An editor for tests: starts `everturn acp`, speaks raw JSON-RPC, and checks every message against the official schema."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import schema

from tests.helpers.cli_run import PATIENCE, plain

ACP = [sys.executable, "-m", "everturn", "acp"]
RESULTS: dict[str, Any] = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_mode": schema.SetSessionModeResponse,
}
"""Method → the type of its result in the official schema."""
Choose = Callable[[dict[str, Any]], str | None]


def strictly(kind: Any, value: Any) -> None:
    """Validate a message, and that the schema dropped nothing of it: its types skip what they do not know."""
    again = kind.model_validate(value).model_dump(by_alias=True, mode="json", exclude_unset=True)
    assert drop_none(again) == drop_none(value), (kind, value, again)


def drop_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: drop_none(part) for name, part in value.items() if part is not None}
    return [drop_none(part) for part in value] if isinstance(value, list) else value


class Editor:
    """One connection to an `everturn acp` process. `choose` picks the option of a permission request; None: no answer."""

    def __init__(self, process: Process, choose: Choose) -> None:
        self.process, self.choose = process, choose
        self.updates: list[dict[str, Any]] = []
        self.permissions: list[dict[str, Any]] = []
        self.asked = asyncio.Event()
        self._waiting: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._last = 0
        self.unsolicited: list[dict[str, Any]] = []  # responses to no request, such as parse errors
        self._came = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            await self._read_messages()
        finally:
            for _, future in self._waiting.values():
                if not future.done():
                    future.set_exception(ConnectionError("the agent closed its output"))
                    future.exception()  # nobody may be waiting

    async def _read_messages(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line)  # stdout has nothing but the protocol
            assert message["jsonrpc"] == "2.0"
            if "method" not in message:
                self._settle(message)
            elif message["method"] == "session/update":
                strictly(schema.SessionNotification, message["params"])
                self.updates.append(message["params"]["update"])
            else:
                assert message["method"] == "session/request_permission"
                strictly(schema.RequestPermissionRequest, message["params"])
                self.permissions.append(message["params"])
                self.asked.set()
                if (choice := self.choose(message["params"])) is not None:
                    await self.answer(message["id"], choice)
                else:
                    self.open = message["id"]
            self._came.set()
            self._came = asyncio.Event()

    def _settle(self, message: dict[str, Any]) -> None:
        method, future = self._waiting.pop(message["id"], ("", None)) if message["id"] is not None else ("", None)
        if future is None:
            self.unsolicited.append(message)
            return
        if "result" in message and method in RESULTS:
            strictly(RESULTS[method], message["result"])
        future.set_result(message)

    async def answer(self, number: int, choice: str) -> None:
        outcome = {"outcome": "selected", "optionId": choice} if choice != "cancelled" else {"outcome": "cancelled"}
        await self.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": {"outcome": outcome}}))

    async def write(self, line: str | bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((line.encode() if isinstance(line, str) else line) + b"\n")
        await self.process.stdin.drain()

    async def start(self, method: str, params: Any) -> asyncio.Future[Any]:
        self._last += 1
        future = asyncio.get_running_loop().create_future()
        self._waiting[self._last] = (method, future)
        await self.write(json.dumps({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}))
        return future

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole response: with a `result`, or with an `error`."""
        async with asyncio.timeout(PATIENCE):
            return await (await self.start(method, params))

    async def notify(self, method: str, **params: Any) -> None:
        await self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    async def until(self, is_there: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not is_there():
                if self._reading.done():
                    self._reading.result()
                    raise AssertionError("the agent closed its output")
                await self._came.wait()

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.updates if update["sessionUpdate"] == kind)

    def states(self, call: str | None = None) -> list[str]:
        """The states of a tool call, or of all, as they came."""
        return [
            update["status"]
            for update in self.updates
            if update["sessionUpdate"].startswith("tool_call")
            and "status" in update
            and call in (None, update["toolCallId"])
        ]

    async def new(self, folder: Path) -> str:
        created = await self.call("session/new", cwd=str(folder), mcpServers=[])
        assert "result" in created, created
        return created["result"]["sessionId"]

    async def prompt(self, session: str, text: str) -> dict[str, Any]:
        return await self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def close(self) -> None:
        if self.process.returncode is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
        try:
            async with asyncio.timeout(PATIENCE):
                await self.process.wait()
                await self._reading
        finally:
            if self.process.returncode is None:
                self.process.kill()
                await self.process.wait()


@asynccontextmanager
async def open_editor(
    home: Path,
    *words: str,
    choose: Choose = lambda _: "allow_once",
    initialize: bool = True,
    program: Sequence[str] = ACP,
) -> AsyncGenerator[Editor]:
    """Start the agent, with a home of its own."""
    with (home / "stderr.txt").open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *program, *words, stdin=PIPE, stdout=PIPE, stderr=errors, env=plain(home), cwd=home, limit=2**26
        )
    editor = Editor(process, choose)
    try:
        if initialize:
            answer = await editor.call("initialize", protocolVersion=1, clientCapabilities={})
            assert answer["result"]["protocolVersion"] == 1
        yield editor
    finally:
        await editor.close()
