import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat, failpoints, tool
from everturn.events import CallFinished
from everturn.stores import SqlStore
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import Tool

# --8<-- [start:process]


def write_payment(file: Path, amount: int) -> None:
    """Write to a file that outlives the process."""
    with file.open("a", encoding="utf-8") as payments:
        payments.write(f"{amount}\n")


def paying(file: Path) -> Tool:
    @tool()
    async def pay(amount: int) -> str:
        """Pay the rent."""
        write_payment(file, amount)
        failpoints.hit_failpoint("tool.pay.after")  # a failpoint of your own
        return f"paid {amount}"

    return pay


def kill_at(point: str) -> None:
    """Kill this process when it reaches a failpoint."""

    def plan(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.install_plan(plan)


async def live(home: Path) -> None:
    """Run one process: it starts the turn, or continues it."""
    model = ScriptedModel(calls(call("pay", amount=900)), say("That is all I know."))
    tools, store = [paying(home / "payments")], str(home / "talks.db")
    async with Chat(model, tools=tools, store=store, session="rent") as chat:
        await (await chat.send("Pay the rent", key="May"))


# --8<-- [end:process]
# --8<-- [start:judge]


def run(home: Path, point: str = "") -> int:
    """Run a process, killed at a failpoint if one is given; return its exit code."""
    return subprocess.run([sys.executable, __file__, home, point]).returncode


async def judge(home: Path) -> tuple[int, list[str]]:
    """Return the number of payments, and what the log says."""
    store = SqlStore.sqlite(home / "talks.db")
    entries = await store.events("rent")
    await store.aclose()
    file = home / "payments"
    payments = file.read_text(encoding="utf-8") if file.exists() else ""
    events = (entry.event for entry in entries)
    states = [event.state for event in events if isinstance(event, CallFinished)]
    return len(payments.splitlines()), list[str](states)


def main() -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        print("ended with", run(home, "tool.pay.after"))
        print("ended with", run(home))
        payments, states = asyncio.run(judge(home))
        print("payments:", payments)
        print("the call is", *states)


# --8<-- [end:judge]

if __name__ == "__main__":
    if len(sys.argv) > 1:
        kill_at(sys.argv[2])
        asyncio.run(live(Path(sys.argv[1])))
    else:
        main()
