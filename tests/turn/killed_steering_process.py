"""A process that is killed while a message waits to join its turn: `python -m tests.turn.killed_steering_process <database>`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from everturn import Chat
from everturn.stores.sql.store import SqlStore
from everturn.testing import ScriptedModel, call, calls
from tests.helpers.tools import pay_with_approval

SESSION = "s"


async def main(path: str) -> None:
    """Wait at a gate, be told something more, say so, and go no further."""
    model, store = ScriptedModel(calls(call("pay", amount=1))), SqlStore.sqlite(Path(path))
    async with Chat(model, tools=[pay_with_approval], store=store, session=SESSION) as chat:
        turn = await chat.send("pay")
        while not await chat.gates():  # noqa: ASYNC110 - what is waited for rings no bell
            await asyncio.sleep(0.01)
        await chat.send("and say thanks", steer=True, key="k")
        print(turn.id, flush=True)
        await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
