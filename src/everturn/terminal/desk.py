"""Where a person is asked about a gate: the lines they type → its answer, and nothing without one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Final, Unpack

from msgspec.structs import replace

from everturn import Chat, Gate
from everturn.chat.answering import Reply
from everturn.core.canonical import parse_object
from everturn.errors import (
    AnsweredOtherwise,
    AnswerUnfit,
    BadArguments,
    ConfigError,
    EverturnError,
    GateClosed,
    GateExpired,
    HashMismatch,
    UnknownGate,
)
from everturn.terminal.choices import choices, help_for, key_of
from everturn.terminal.editing import edit, editor, fitting, pretty, taken_out
from everturn.terminal.exact import seen, write
from everturn.terminal.gate import Asked, draw
from everturn.terminal.lines import forget_typed, is_more_typed, is_too_long, read_line
from everturn.terminal.screen import Screen, columns

GAP: Final = "   "
TOO_LONG: Final = "a terminal takes no longer lines, and the end of this one is lost; shorten it, or set EDITOR"
NOBODY_ASKS: Final = "nobody asks that any more; nothing was answered"
TOLD: Final[dict[type[EverturnError], str]] = {
    AnsweredOtherwise: "somebody else was first, and answered otherwise; yours was not taken",
    GateExpired: "the time to answer is over; yours was not taken",
    GateClosed: NOBODY_ASKS,
    UnknownGate: NOBODY_ASKS,
}


class _Over(Exception):
    """The gate was closed while the person was asked."""


class Desk:
    """Where a person is asked about a gate; with `auto`, where nobody sits and everything is allowed."""

    def __init__(self, screen: Screen, chat: Chat, auto: bool = False) -> None:
        self._screen, self._chat, self._auto = screen, chat, auto
        self._gate, self._over = "", asyncio.Event()
        self._how = ""

    def close(self, gate: str, how: str) -> None:
        """Tell that nobody has to answer this gate any more, if it is the one that is asked; `how` is told on."""
        if gate == self._gate and not self._over.is_set():
            self._how = how
            self._over.set()

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Show what is asked, all of it, until there is an answer; False if the input ended without one."""
        self._gate, self._how = gate.id, ""
        self._over.clear()
        try:
            return await self._ask(self._asked(gate, place))
        except _Over:
            self._screen.end()
            if self._how:
                self._tell(self._how)
        except (GateClosed, UnknownGate, HashMismatch) as error:
            self._tell(TOLD.get(type(error), str(error)))
        finally:
            self._gate = ""
        return True

    def _asked(self, gate: Gate, place: str) -> Asked:
        runtime = self._chat.runtime
        below = gate.session if gate.session not in ("", self._chat.session) else ""
        left = max(gate.expires - runtime.clock.now(), 1.0) if gate.expires else 0.0
        return Asked(gate, runtime.tools.get(gate.tool), place, below, left)

    async def _ask(self, asked: Asked) -> bool:
        is_shown = False
        while True:
            if not is_shown:
                draw(self._screen, asked)
            line = await self._prompt(*choices(asked).values(), auto="y")
            if line is None:
                return False
            try:
                changed = await self._act(asked, line)
            except (BadArguments, AnswerUnfit, ConfigError) as error:
                self._tell(str(error), "bad")
                changed = asked
            if changed is None:
                return True
            is_shown, asked = changed is asked, changed

    async def _act(self, asked: Asked, line: str) -> Asked | None:
        """Do what a line says: None when that was an answer, else what is to be asked now."""
        key, rest = key_of(line, asked)
        gate = asked.gate
        match key:
            case "y" if gate.kind == "result":
                await self._answer(gate, allow="once", text=asked.text)
            case "y":
                await self._answer(gate, allow="once", arguments=parse_object(asked.edited) if asked.edited else None)
            case "a":
                return await self._always(asked, rest)
            case "n":
                return await self._deny(asked, rest == "all")
            case "e" if gate.kind == "result":
                return await self._redact(asked)
            case "e":
                return await self._edit(asked)
            case "r":
                return await self._done(asked)
            case _:
                for text in help_for(asked):
                    self._tell(text)
                return asked
        return None

    async def _answer(self, gate: Gate, **reply: Unpack[Reply]) -> None:
        await self._chat.answer(gate, **reply)

    async def _always(self, asked: Asked, rest: str) -> Asked | None:
        offers = asked.gate.offers
        if len(offers) > 1 and not rest:
            for number, offer in enumerate(asked.offers, 1):
                write(self._screen, f"    {number}  ", [offer])
            rest = await self._prompt(f"Which of them? 1 to {len(offers)}", "Enter: back") or ""
            if not rest.strip():
                return asked
        which = rest.strip() or "1"
        if not which.isdecimal() or not 1 <= int(which) <= len(offers):
            raise ConfigError(f"there is no rule {which}; nothing was answered")
        await self._answer(asked.gate, allow=offers[int(which) - 1])
        self._tell("stored, for this conversation:")
        write(self._screen, "    ", [asked.offers[int(which) - 1]])
        return None

    async def _deny(self, asked: Asked, is_all: bool) -> Asked | None:
        reason = await self._prompt("Why not? The model reads it.", "Enter: no reason")
        if reason is None:  # Ctrl-D takes it back
            return asked
        await self._answer(asked.gate, deny=reason.strip() or True, others=is_all)
        return None

    async def _edit(self, asked: Asked) -> Asked:
        now = asked.edited or asked.gate.arguments
        if words := editor(os.environ):
            edited = fitting(await self._in_editor(words, pretty(now), ".json"), asked.tool)
        else:
            while True:
                line = await self._prompt('What changes? JSON such as {"time": "13:00"}', "Enter: back")
                if not line or not line.strip():
                    return asked
                try:
                    edited = fitting(line, asked.tool, onto=now)
                    break
                except BadArguments as error:
                    self._tell(str(error), "bad")
        if edited == now:
            self._tell("nothing was changed")
            return asked
        return replace(asked, edited="" if edited == asked.gate.arguments else edited)

    async def _redact(self, asked: Asked) -> Asked:
        output = asked.gate.output
        assert output is not None
        now = left = output.text if asked.text is None else asked.text
        if words := editor(os.environ):
            left = await self._in_editor(words, now, ".txt")
            left = left if now.endswith("\n") else left.removesuffix("\n")  # editors end every text with a line
        else:
            while line := await self._prompt("What is to be taken out? Each time it occurs.", "Enter: done"):
                try:
                    left = taken_out(left, line)
                except ConfigError as error:
                    self._tell(str(error), "bad")
        if left == now:
            self._tell("nothing was taken out")
            return asked
        return replace(asked, text=None if left == output.text else left)

    async def _done(self, asked: Asked) -> Asked | None:
        """Take what came of it, line by line. An empty line ends it, unless it was pasted with more behind it."""
        texts = ("What came of it? The model reads it.", "An empty line, or Ctrl-D, ends it; nothing at all: back")
        line, lines = await self._prompt(*texts), list[str]()
        while line is not None and (line.strip() or is_more_typed()):
            lines.append(line)
            line = await self._read()
        if not any(map(str.strip, lines)):
            return asked
        await self._answer(asked.gate, result="\n".join(lines))
        self._tell(f"handed in: {len(lines)} {'line' if len(lines) == 1 else 'lines'}")
        return None

    async def _in_editor(self, words: Sequence[str], text: str, suffix: str) -> str:
        self._screen.end()
        return await edit([*words], text, suffix)

    def _tell(self, text: str, style: str = "dim") -> None:
        self._screen.row(f"{self._screen.sign('·')} ", "; ".join(seen(line) for line in text.split("\n")), style)

    async def _prompt(self, *texts: str, auto: str = "") -> str | None:
        """Ask, with as many texts on a line as fit beside each other.

        Raises:
            _Over: somebody else has answered, or nobody asks any more.
        """
        forget_typed()
        beside = ""
        for text in texts:
            if beside and columns(beside + GAP + text) > self._screen.room:
                self._screen.line(beside, "ask")
                beside = ""
            beside += (GAP if beside else "") + text
        self._screen.line(beside, "ask")
        self._screen.prompt("> ", "ask")
        if self._auto:
            self._screen.write(f"{auto} (because of --auto)")
            self._screen.end()
            return auto
        return await self._read()

    async def _read(self) -> str | None:
        reading, over = asyncio.ensure_future(read_line()), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait([reading, over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
            reading.cancel()
        if self._over.is_set() or reading.cancelled():
            raise _Over
        if (line := reading.result()) is None:
            self._screen.end()
        else:
            self._screen.echoed("\n")
            if is_too_long(line):
                self._tell(TOO_LONG, "bad")
                return ""
        return line
