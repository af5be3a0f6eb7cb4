"""A question that is answered with y, or not: asked of a person at a terminal, while no turn is drawn."""

from __future__ import annotations

import asyncio

from everturn.terminal.ctrl_c import interrupts
from everturn.terminal.lines import forget_typed, read_line
from everturn.terminal.screen import Screen


async def agreed(screen: Screen, question: str) -> bool:
    """Whether they say yes; anything else, Ctrl-C and the end of the input are a no."""
    interrupted = asyncio.Event()
    with interrupts(interrupted.set):
        forget_typed()
        screen.row("? ", question, "ask")
        screen.prompt("[y] yes   [n] no > ", "ask")
        reading, over = asyncio.ensure_future(read_line()), asyncio.ensure_future(interrupted.wait())
        try:
            await asyncio.wait([reading, over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
            reading.cancel()
    line = reading.result() if reading.done() and not reading.cancelled() else None
    if interrupted.is_set() or line is None:
        screen.echoed("^C" if interrupted.is_set() else "")
        screen.end()
        return False
    screen.echoed("\n")
    return line.strip().casefold() in ("y", "yes")
