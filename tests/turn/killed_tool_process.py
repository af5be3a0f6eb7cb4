"""A process that kills itself once its log has so many events: `python -m tests.turn.killed_tool_process <folder> <tool>
<events>`; with 0 it ends by itself, and prints what came of the call.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from everturn import Chat, ToolContext, tool
from everturn.app import App
from everturn.core.events import CallFinished, CallStarted, Event
from everturn.events import TurnSuspended
from everturn.stores.sql.store import SqlStore
from everturn.testing import ScriptedModel, call, calls, say


class Outside:
    """A folder: every effect is a byte in a file, which no crash takes back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def charge(self) -> str:
        with (self.folder / "charged").open("a") as file:
            file.write("x")
        return "receipt"

    def request(self, token: str) -> None:
        with (self.folder / "tokens").open("a") as file:
            file.write(f"{token}\n")

    def tokens(self) -> list[str]:
        file = self.folder / "tokens"
        return file.read_text().split() if file.exists() else []


async def main(folder: str, name: str, lives: str) -> None:
    """Have the tool run, and deliver what it waits for."""
    outside = Outside(Path(folder))

    @tool(resumable=True)
    async def sleeper(ctx: ToolContext) -> str:
        receipt = await ctx.step("charge", outside.charge)
        await ctx.sleep(0.1)
        return receipt

    @tool(resumable=True)
    async def external(ctx: ToolContext) -> str:
        receipt = await ctx.step("charge", outside.charge)
        return receipt + await ctx.external(outside.request, timeout=600)

    store, model = SqlStore.sqlite(outside.folder / "log.db"), ScriptedModel(calls(call(name)), say("Done."))
    append, last = store.append, int(lives)

    async def mortal(session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        head = await append(session, after, events, epoch)
        if 0 < last <= head:
            os.kill(os.getpid(), signal.SIGKILL)
        return head

    store.append = mortal
    app = App(model, tools=[sleeper, external], store=store)
    async with Chat(model, session="s", app=app) as chat:
        async for event in await chat.send("please", key="first"):
            if isinstance(event, TurnSuspended) and name == "external":
                for token in outside.tokens():
                    await app.complete(token, " parcel")
        log = [entry.event for entry in await store.events("s")]
        [first] = [at for at, event in enumerate(log, 1) if isinstance(event, CallStarted)]
        [(last, finished)] = [(at, event) for at, event in enumerate(log, 1) if isinstance(event, CallFinished)]
        print(first, last, finished.state, finished.output.text)
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
