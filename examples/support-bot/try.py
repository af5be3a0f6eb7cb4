"""Two shops talk to one bot: each sees its own, a refund waits for somebody who may allow it, and a worker dies of it.

    python try.py
    python try.py --export refund.zip        keeps the conversation about the refund, for `everturn replay`

It starts a cluster of its own and ends it. `scripts/services` installs what that needs: PostgreSQL, NATS and Restate.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import sqlite3
import sys
import tempfile
from pathlib import Path

from here import Here, cluster

from everturn import EverturnError
from everturn.client import Server
from everturn.events import CallProgress, GateOpened


async def shops(installation: Here, export: Path | None) -> None:
    """The same question in two shops is about two orders, and neither sees the other's conversation."""
    keys = await asyncio.gather(
        installation.key("north", "clerk"),
        installation.key("south", "clerk"),
        installation.key("north", "lead", "approver"),
    )
    async with (
        Server(installation.url, keys[0]) as north,
        Server(installation.url, keys[1]) as south,
        Server(installation.url, keys[2]) as lead,
    ):
        turns = [await shop.start_session("Where is order 1001?") for shop in (north, south)]
        for name, turn in zip(("north", "south"), turns, strict=True):
            print(f"{name}: {(await turn).text}")
        try:
            await south.session(turns[0].session).messages()
        except EverturnError as error:
            print(f"south looks into north's conversation: {error}")
        session = await refund(north, lead)
        turn = await south.start_session("Refund order 1001", agent="desk")
        print(f"south, at the desk, where small refunds are not asked about: {(await turn).text}")
        for name, shop in (("north", north), ("south", south)):
            used = (await shop.usage()).total
            print(f"{name} has used {used.steps} requests and {used.calls} calls")
        if export is not None:
            await asyncio.to_thread(export.write_bytes, await north.session(session).export())


async def refund(clerk: Server, lead: Server) -> str:
    """A refund is asked about; whoever asks cannot allow it; and the worker that makes it is killed in the middle."""
    turn = await clerk.start_session("I want a refund for order 1001, please")
    killed = 0
    async for event in turn:
        match event:
            case GateOpened(gate=gate):
                (pending,) = await turn.gates()
                try:
                    await clerk.answer(pending, allow="once")
                except EverturnError as error:
                    print(f"the clerk may not allow it: {error}")
                print(f"the lead allows it: {gate.tool} {gate.arguments}")
                await lead.answer(pending, allow="once")
            case CallProgress(text=text) if not killed and (found := re.search(r"worker (\d+)", text)):
                killed = int(found[1])
                os.kill(killed, signal.SIGKILL)
                print("kill -9 to the worker, while it waits for the bank")
            case _:
                pass
    print(f"north: {(await turn).text}")
    return turn.session


def bank(ledger: Path) -> None:
    """What was really paid."""
    opened = sqlite3.connect(ledger)
    counts = opened.execute("SELECT count(*), count(DISTINCT worker) FROM asked").fetchone()
    print(f"the bank was asked {counts[0]} times, by {counts[1]} workers, and has paid:")
    for row in opened.execute("SELECT tenant, number, amount FROM paid"):
        print(f"  {row[0]}, order {row[1]}: {row[2]}")
    opened.close()


async def main(export: Path | None) -> None:
    """Start a cluster, and try it."""
    with tempfile.TemporaryDirectory(prefix="support-bot-") as name:
        os.environ.setdefault("SHOP_BANK", "1.0")  # long enough to be killed in
        async with cluster(Path(name)) as installation:
            print(f"ready at {installation.url}")
            await shops(installation, export)
        bank(Path(name) / "bank.db")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Try the support bot on a cluster of its own.")
    parser.add_argument("--export", type=Path, metavar="FILE", help="keep the conversation about the refund")
    try:
        asyncio.run(main(parser.parse_args().export))
    except (EverturnError, RuntimeError, OSError) as error:
        sys.exit(f"try: {error}")
