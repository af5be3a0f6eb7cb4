"""Confirmation in line mode: a yes-or-no question to the person at the terminal, while no turn is drawn."""

from __future__ import annotations

import asyncio

from everturn.terminal.lines.ctrl_c import handle_ctrl_c
from everturn.terminal.lines.input import discard_typed_input, read_line
from everturn.terminal.text.screen import LineScreen


async def confirm(screen: LineScreen, question: str) -> bool:
    """Return whether the person answers yes; anything else, Ctrl-C and the end of the input mean no."""
    interrupted = asyncio.Event()
    with handle_ctrl_c(interrupted.set):
        discard_typed_input()
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
        screen.record_echo("^C" if interrupted.is_set() else "")
        screen.end()
        return False
    screen.record_echo("\n")
    return line.strip().casefold() in ("y", "yes")
