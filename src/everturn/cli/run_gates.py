"""A gate that opens while nobody sits there → its answer: as it was allowed before, by a terminal, or a denial."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from shlex import quote
from typing import Any, Final, TextIO

from everturn import Gate
from everturn.access.explaining import explained
from everturn.cli.run_outputs import NOBODY
from everturn.core.asking import WITHIN
from everturn.core.canonical import JsonObject, parse_object
from everturn.core.options import TurnOptions
from everturn.core.policy import Policy, Rule
from everturn.errors import ConfigError, GateClosed, ToolError
from everturn.terminal.asking import Asks, shortened
from everturn.terminal.desk import Desk
from everturn.terminal.exact import seen
from everturn.terminal.screen import Screen, typeset
from everturn.turn.permit import is_acting

BY: Final = "everturn run"
MOST_TOLD: Final = 4  # parts of a call
UNRULED: Final = (  # why a call asks that no rule asks about
    "{name} asks every time",
    "no rule fits this call of {name}",
    "no rule says anything of this call of {name}",
)
NO_TERMINAL: Final = "--ask asks on a terminal, and there is none here; leave it out, or say --wait or --allow RULE"


class Nobody:
    """Denies, and says so: to the model, and on stderr."""

    def __init__(self, chat: Any, tell: Callable[[str], None], options: TurnOptions | None = None) -> None:
        self._chat, self._tell, self._options = chat, tell, options
        self.has_denied = False

    def close(self, gate: str, how: str) -> None:
        """Nothing: nobody is being asked."""

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Deny it."""
        done = "its result was withheld" if gate.kind == "result" else "it was denied"
        asks = "waits for a client" if gate.kind == "client" else "asks"
        why = shortened(seen(gate.why or gate.arguments)) if gate.kind in WITHIN else gate.why or "a person decides"
        with suppress(GateClosed):
            await self._chat.answer(gate, deny=NOBODY, by=BY)
            self.has_denied = True
            hint = await self._uncovered(gate) or _hint(gate)
            self._tell(f"{gate.tool} {asks}, and {NOBODY}, so {done}: {why}{hint}")
        return True

    async def _uncovered(self, gate: Gate) -> str:
        """The parts of a call that no rule covers, where it has more of them than one; with the rules that would."""
        runtime: Any = getattr(self._chat, "runtime", None)
        tool = runtime.tools.get(gate.tool) if runtime is not None and gate.kind == "call" else None
        if runtime is None or tool is None or self._options is None or gate.session not in ("", self._chat.session):
            return ""
        written = parse_object(gate.arguments) or {}
        try:
            meant = tool.validate(written) or written
            found = await explained(runtime.permits, tool.spec, written, meant, self._options)
        except ToolError:
            return ""
        if len(found.each) < 2 or not found.uncovered:
            return ""
        parts = "; ".join(
            f"no rule covers {seen(part)}: --allow {quote(seen(str(rule)))} would"
            for part, rule in found.uncovered[:MOST_TOLD]
        )
        more = len(found.uncovered) - MOST_TOLD
        return f"; {parts}{f'; and {more} more' if more > 0 else ''}"


def _hint(gate: Gate) -> str:
    if gate.kind == "call" and gate.offers:
        # It is pasted into a shell, and a model has chosen what is in it.
        return f"; --allow {quote(seen(str(gate.offers[0])))} would let it run"
    return ""


class Leaving:
    """Answers nothing: the turn is to wait."""

    def close(self, gate: str, how: str) -> None:
        """Nothing: nobody is being asked."""

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Nobody is there who could answer anything."""
        return False


class Beforehand:
    """Allows what was allowed on the command line, and leaves everything else to another desk.

    A tool that asks every time (`execute="ask"`) is not silenced by a rule: whoever has started this is asked, and has
    said on the command line what they answer. What a rule asks for is asked, whatever was said there.
    """

    def __init__(
        self, chat: Any, allowed: Sequence[Rule], options: TurnOptions, otherwise: Asks, pause: Callable[[], None]
    ) -> None:
        self._chat, self._options, self._otherwise, self._pause = chat, options, otherwise, pause
        self._allowed = Policy(allowed) if allowed else None

    def close(self, gate: str, how: str) -> None:
        """Tell it on."""
        self._otherwise.close(gate, how)

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Allow it, or let the other desk ask."""
        if await self._is_allowed(gate):
            with suppress(GateClosed):
                await self._chat.answer(gate, allow="once", by=f"{BY} --allow")
            return True
        self._pause()
        return await self._otherwise.ask(gate, place)

    async def _is_allowed(self, gate: Gate) -> bool:
        tool = self._chat.runtime.tools.get(gate.tool) if self._allowed is not None else None
        if self._allowed is None or tool is None or gate.kind != "call" or gate.session not in ("", self._chat.session):
            return False
        # A rule asks, perhaps about a value that the tool itself has put in.
        if gate.why not in (text.format(name=gate.tool) for text in UNRULED):
            return False
        written = parse_object(gate.arguments) or {}
        try:
            return await self._fits(tool, written) and await self._fits(tool, tool.validate(written) or written)
        except ToolError:
            return False

    async def _fits(self, tool: Any, arguments: JsonObject) -> bool:
        permits, assured = self._chat.runtime.permits, self._allowed
        cases = await permits.read_cases(tool.spec, arguments, self._options)
        judged = permits.judge(tool.spec, cases, self._options)
        asks_of_itself = judged.action == "ask" and judged.rule is not None and judged.rule.layer == "defaults"
        # A turn that is gone on with has not heard of the rules that are given now; the gate is open all the same.
        is_free = asks_of_itself or judged.action == "allow"
        return (
            is_free
            and assured is not None
            and assured.judge(tool.spec.name, cases, is_acting(tool.spec)).action == "allow"
        )


def terminal_desk(chat: Any) -> Desk:
    """A desk at the terminal, though stdin and stdout may be pipes."""
    reading, writing = _terminal()
    sys.stdin = reading  # where lines are read from; what came on stdin was read before
    return Desk(Screen(writing, False, gutter=0, width=0, safe=typeset), chat)


def check_terminal() -> None:
    """Refuse to begin where nobody could be asked.

    Raises:
        ConfigError: there is no terminal.
    """
    for stream in _terminal():
        stream.close()


def _terminal() -> tuple[TextIO, TextIO]:
    names = ("CONIN$", "CONOUT$") if os.name == "nt" else ("/dev/tty", "/dev/tty")
    try:
        return open(names[0], encoding="utf-8", errors="replace"), open(names[1], "w", encoding="utf-8")
    except OSError:
        raise ConfigError(NO_TERMINAL) from None
