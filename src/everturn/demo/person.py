"""The person in front of the terminal: the lines they type → answers to a gate."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading

from everturn import Gate, Turn
from everturn.core.canonical import parse_object
from everturn.errors import BadArguments, GateClosed
from everturn.terminal.screen import Screen

LINE = 4096  # bytes; more than a terminal lets a person type before Enter


async def read_line() -> str | None:
    """A line from the terminal; None at the end of the input.

    A thread reads, so the loop goes on; it is a daemon and locks nothing, so the process can end while it waits.
    """
    loop = asyncio.get_running_loop()
    line: asyncio.Future[bytes] = loop.create_future()

    def give(data: bytes) -> None:
        if not line.done():
            line.set_result(data)

    def read() -> None:
        try:
            data = os.read(sys.stdin.fileno(), LINE)
        except OSError:
            data = b""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(give, data)

    threading.Thread(target=read, daemon=True).start()
    data = await line
    return data.decode(errors="replace").strip() if data else None


def forget_typed() -> None:
    """Drop what was typed before there was a question: it cannot be the answer to it."""
    try:
        import termios
    except ImportError:  # Windows
        return
    with contextlib.suppress(termios.error, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


class Desk:
    """Where a person is asked about a gate; with `auto`, where nobody sits and everything is allowed."""

    def __init__(self, screen: Screen, turn: Turn, auto: bool) -> None:
        self._screen, self._turn, self._auto = screen, turn, auto

    async def ask(self, gate: Gate) -> None:
        """Show exactly what would run, and ask until there is an answer."""
        self._screen.line(f"{gate.tool} would run with exactly these arguments:", "ask")
        pretty = json.dumps(json.loads(gate.arguments), indent=2, ensure_ascii=False)
        for line in pretty.split("\n"):
            self._screen.row(" " * (2 + len(line) - len(line.lstrip())), line.lstrip())
        with contextlib.suppress(GateClosed):  # the turn was cancelled meanwhile
            while not await self._answer(gate):
                pass

    async def _answer(self, gate: Gate) -> bool:
        answer = await self._prompt("[y] allow once", "[e] edit the arguments", "[n] deny", auto="y")
        match answer and answer.casefold():
            case "y" | "yes":
                await self._turn.answer(gate, allow="once")
            case "e" | "edit":
                return await self._edit(gate)
            case "n" | "no":
                reason = await self._prompt("Why not? The model reads it. Enter: no reason")
                await self._turn.answer(gate, deny=reason or True)
            case None:  # the end of the input: nobody is left who could answer
                await self._turn.cancel()
            case _:
                self._screen.line("Type y, e or n, then Enter; Ctrl-C cancels the turn.", "dim")
                return False
        return True

    async def _edit(self, gate: Gate) -> bool:
        """Ask until the changes fit; False when there are none, and the choices are to be asked again."""
        while line := await self._prompt('What changes? JSON such as {"time": "13:00"}', "Enter: back"):
            if (changes := parse_object(line)) is None:
                self._screen.line("That is not a JSON object; nothing was changed.", "bad")
                continue
            try:
                await self._turn.answer(gate, allow="once", arguments={**json.loads(gate.arguments), **changes})
            except BadArguments as error:
                self._screen.line(str(error), "bad")
            else:
                return True
        return False

    async def _prompt(self, *texts: str, auto: str = "") -> str | None:
        """Ask, on one line or, where they do not fit beside each other, with each text on a line of its own."""
        forget_typed()
        beside = "   ".join(texts)
        self._screen.line(beside if len(beside) <= self._screen.room else "\n".join(texts), "ask")
        self._screen.prompt("> ", "ask")
        if self._auto:
            self._screen.write(f"{auto} (because of --auto)")
            self._screen.end()
            return auto
        if (line := await read_line()) is not None:
            self._screen.echoed("\n")
        return line
