"""A process that is killed while a client has a call of its turn: `python -m tests.reach.killed_client_process <database> <repeat>`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from everturn import Chat
from everturn.stores.sql.store import SqlStore
from everturn.testing import ScriptedModel
from tests.reach.test_clients import bell, ringing

SESSION = "s"


async def main(path: str, repeat: str) -> None:
    """Have a call claimed, say so, and never do it."""
    async with Chat(
        ScriptedModel(*ringing(1)),
        tools=[bell(repeat, lease=600.0)],
        store=SqlStore.sqlite(Path(path)),
        session=SESSION,
    ) as chat:
        turn = await chat.send("go")
        while not (gates := await chat.gates()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await chat.claim(gates[0], "page", 600.0)
        print(turn.id, flush=True)
        await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
