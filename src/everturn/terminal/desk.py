"""Where a person is asked about a gate: the lines they type → its answer, and nothing without one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Final, Unpack

from msgspec.structs import replace

from everturn import Chat, Gate
from everturn.chat.answering import Reply
from everturn.core.asking import WITHIN
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
from everturn.terminal.filling import as_json, fill_in
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
        self.screen, self._chat, self._auto = screen, chat, auto
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
            self.screen.end()
            if self._how:
                self.tell(self._how)
        except (GateClosed, UnknownGate, HashMismatch) as error:
            self.tell(TOLD.get(type(error), str(error)))
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
                draw(self.screen, asked)
            keys = choices(asked)
            try:
                line = await self.prompt(*keys.values(), auto="y" if "y" in keys else "n")
                if line is None:
                    return False
                changed = await self._act(asked, line)
            except (BadArguments, AnswerUnfit, ConfigError) as error:
                self.tell(str(error), "bad")
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
            case "y" if gate.kind == "form" and asked.edited:
                await self._answer(gate, result=asked.edited)
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
            case "f":
                return _with(asked, await fill_in(self, gate.form, asked.edited))
            case "j":
                return _with(asked, await as_json(self, gate.form, asked.edited))
            case "r" | "t":
                return await self._done(asked)
            case _:
                for text in help_for(asked):
                    self.tell(text)
                return asked
        return None

    async def _answer(self, gate: Gate, **reply: Unpack[Reply]) -> None:
        await self._chat.answer(gate, **reply)

    async def _always(self, asked: Asked, rest: str) -> Asked | None:
        offers = asked.gate.offers
        if len(offers) > 1 and not rest:
            for number, offer in enumerate(asked.offers, 1):
                write(self.screen, f"    {number}  ", [offer])
            rest = await self.prompt(f"Which of them? 1 to {len(offers)}", "Enter: back") or ""
            if not rest.strip():
                return asked
        which = rest.strip() or "1"
        if not which.isdecimal() or not 1 <= int(which) <= len(offers):
            raise ConfigError(f"there is no rule {which}; nothing was answered")
        await self._answer(asked.gate, allow=offers[int(which) - 1])
        self.tell("stored, for this conversation:")
        write(self.screen, "    ", [asked.offers[int(which) - 1]])
        return None

    async def _deny(self, asked: Asked, is_all: bool) -> Asked | None:
        reader = "tool" if asked.gate.kind in WITHIN else "model"
        reason = await self.prompt(f"Why not? The {reader} reads it.", "Enter: no reason")
        if reason is None:  # Ctrl-D takes it back
            return asked
        await self._answer(asked.gate, deny=reason.strip() or True, others=is_all)
        return None

    async def _edit(self, asked: Asked) -> Asked:
        now = asked.edited or asked.gate.arguments
        if words := editor(os.environ):
            edited = fitting(await self.in_editor(words, pretty(now), ".json"), asked.tool)
        else:
            while True:
                line = await self.prompt('What changes? JSON such as {"time": "13:00"}', "Enter: back")
                if not line or not line.strip():
                    return asked
                try:
                    edited = fitting(line, asked.tool, onto=now)
                    break
                except BadArguments as error:
                    self.tell(str(error), "bad")
        if edited == now:
            self.tell("nothing was changed")
            return asked
        return replace(asked, edited="" if edited == asked.gate.arguments else edited)

    async def _redact(self, asked: Asked) -> Asked:
        output = asked.gate.output
        assert output is not None
        now = left = output.text if asked.text is None else asked.text
        if words := editor(os.environ):
            left = await self.in_editor(words, now, ".txt")
            left = left if now.endswith("\n") else left.removesuffix("\n")  # editors end every text with a line
        else:
            while line := await self.prompt("What is to be taken out? Each time it occurs.", "Enter: done"):
                try:
                    left = taken_out(left, line)
                except ConfigError as error:
                    self.tell(str(error), "bad")
        if left == now:
            self.tell("nothing was taken out")
            return asked
        return replace(asked, text=None if left == output.text else left)

    async def _done(self, asked: Asked) -> Asked | None:
        """Take what came of it, line by line. An empty line ends it, unless it was pasted with more behind it."""
        what = (
            "Your answer? The tool reads it." if asked.gate.kind == "form" else "What came of it? The model reads it."
        )
        line, lines = await self.prompt(what, "An empty line, or Ctrl-D, ends it; nothing at all: back"), list[str]()
        while line is not None and (line.strip() or is_more_typed()):
            lines.append(line)
            line = await self._read()
        if not any(map(str.strip, lines)):
            return asked
        await self._answer(asked.gate, result="\n".join(lines))
        self.tell(f"handed in: {len(lines)} {'line' if len(lines) == 1 else 'lines'}")
        return None

    async def in_editor(self, words: Sequence[str], text: str, suffix: str) -> str:
        self.screen.end()
        return await edit([*words], text, suffix)

    def tell(self, text: str, style: str = "dim") -> None:
        self.screen.row(f"{self.screen.sign('·')} ", "; ".join(seen(line) for line in text.split("\n")), style)

    async def prompt(self, *texts: str, auto: str = "") -> str | None:
        """Ask, with as many texts on a line as fit beside each other.

        Raises:
            _Over: somebody else has answered, or nobody asks any more.
            ConfigError: a part of the line is lost, so that it is no answer.
        """
        forget_typed()
        beside = ""
        for text in texts:
            if beside and columns(beside + GAP + text) > self.screen.room:
                self.screen.line(beside, "ask")
                beside = ""
            beside += (GAP if beside else "") + text
        self.screen.line(beside, "ask")
        self.screen.prompt("> ", "ask")
        if self._auto:
            self.screen.write(f"{auto} (because of --auto)")
            self.screen.end()
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
            self.screen.end()
        else:
            self.screen.echoed("\n")
            if is_too_long(line):
                raise ConfigError(TOO_LONG)
        return line


def _with(asked: Asked, answer: str) -> Asked:
    return asked if answer == asked.edited else replace(asked, edited=answer)
