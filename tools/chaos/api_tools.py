"""Tools of the API installation under test, named in its file: `[tools] python = ["tools.chaos.api_tools"]`.

Every process of the installation imports this, so it is also where a process gets a shifted clock (AHEAD), or another
release (VERSION). Nothing of that is in the program itself.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time

from everturn import clock, wire
from everturn.core.ports import ToolContext
from everturn.tools.function import tool
from tools.chaos.ledger import EffectLedger
from tools.chaos.scenario import effect_hash, make_tools
from tools.chaos.versions import pretend

LEDGER, AHEAD, VERSION = "CHAOS_LEDGER", "CHAOS_AHEAD", "CHAOS_VERSION"

_ledger = EffectLedger(os.environ.get(LEDGER, os.devnull), os.environ.get(VERSION, ""))
look, put, pay, mail, report, linger, *_ = make_tools(_ledger)


@tool(timeout=600)
async def grind(seconds: float, ctx: ToolContext) -> str:
    """Let another program take a while; it ends with whoever stops waiting for it."""
    hash = effect_hash("grind", {"seconds": seconds})
    _ledger.write("effect", session=ctx.session, turn=ctx.turn, call=ctx.call, key=ctx.key, name="grind", hash=hash)
    process = await asyncio.create_subprocess_exec("sleep", str(seconds), start_new_session=True)
    _ledger.write("note", session=ctx.session, turn=ctx.turn, name="group", key=str(process.pid))
    try:
        await process.wait()
    except asyncio.CancelledError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    return f"ground for {seconds:g} s"


def _ahead(seconds: float) -> None:
    """Shift the clock of the runtime forward."""
    clock.SystemClock.now = lambda self: time.time() + seconds


if os.environ.get(AHEAD):
    _ahead(float(os.environ[AHEAD]))
if os.environ.get(VERSION) and int(os.environ[VERSION]) != wire.VERSION:
    pretend(int(os.environ[VERSION]))
    wire.set_write_version(int(os.environ.get("EVERTURN_CLUSTER__WRITES", "0")))
