import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat, ToolContext, failpoints, tool
from everturn.core.ports import Tool
from everturn.stores.sql.store import SqlStore
from everturn.testing import ScriptedModel, call, calls, say
from everturn.testing.chaos import (
    Evidence,
    Ledger,
    check,
    install_from_environment,
    read_ledger,
)
from everturn.testing.chaos.scenario import effect_hash

# --8<-- [start:process]


def paying(ledger: Ledger) -> Tool:
    @tool()
    async def pay(amount: int, ctx: ToolContext) -> str:
        """Pay the rent. The world it changes is a line in the ledger."""
        ledger.write(
            "effect",
            session=ctx.session,
            turn=ctx.turn,
            call=ctx.call,
            key=ctx.key,
            name="pay",
            hash=effect_hash("pay", {"amount": amount}),
        )
        failpoints.hit_failpoint("tool.pay.after")
        return f"paid {amount}"

    return pay


async def live(home: Path) -> None:
    """What a process does: begin the turn, or go on with it."""
    install_from_environment()
    model = ScriptedModel(calls(call("pay", amount=900)), say("That is all I know."))
    tools, store = [paying(Ledger(home / "ledger"))], str(home / "talks.db")
    async with Chat(model, tools=tools, store=store, session="rent") as chat:
        await (await chat.send("Pay the rent", key="May"))


# --8<-- [end:process]
# --8<-- [start:judge]


def run(home: Path, plan: dict[str, object]) -> int:
    """A process of its own, with a plan of its own; how it ended."""
    environment = {**os.environ, "EVERTURN_FAULTS": json.dumps(plan) if plan else ""}
    return subprocess.run([sys.executable, __file__, home], env=environment).returncode


async def judge(home: Path, kills: int) -> None:
    store = SqlStore.sqlite(home / "talks.db")
    entries = await store.events("rent")
    await store.aclose()
    evidence = Evidence("rent", entries, read_ledger(home / "ledger").lines, kills)
    print("payments:", len(evidence.lines("effect")))
    print("the call is", *(event.state for event in evidence.settled))
    print("violations:", [str(violation) for violation in check(evidence)])


def main() -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        print("ended with", run(home, {"tool.pay.after": {"do": "kill"}}))
        print("ended with", run(home, {}))
        asyncio.run(judge(home, kills=1))


# --8<-- [end:judge]

if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]))) if len(sys.argv) > 1 else main()
