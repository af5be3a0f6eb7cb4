"""A turn in a terminal, offline: a scripted model, two tools at once, a question to a person, Ctrl-C to cancel.

It is a face like any other: it draws events, sends commands and decides nothing. The model is a script and its tools
only pretend; everything between the two is the real runtime.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Final, TextIO

from msgspec import Struct

from everturn.chat import Chat, Turn
from everturn.core.canonical import JsonObject, parse_object
from everturn.core.chunks import FinishChunk, UsageChunk
from everturn.core.deltas import CallProgress, ReasoningDelta, Shown, TextDelta
from everturn.core.events import (
    CallSettled,
    CallStarted,
    Entry,
    Gate,
    GateAnswered,
    GateOpened,
    LateArrived,
    StepInterrupted,
    TurnCancelled,
    TurnEvent,
    TurnFailed,
)
from everturn.core.parts import Usage
from everturn.core.ports import Progress, Tool
from everturn.core.requests import ModelRequest, RequestResult
from everturn.core.state import Phase, TurnState
from everturn.errors import BadArguments, GateClosed
from everturn.models.scripted import Batch, ScriptedModel, call, calls, say, think
from everturn.tools.function import tool

QUESTION = "Can Ada and I have lunch on Friday? Outside, if the weather is good."
LATE_PATIENCE = 5.0  # seconds we stay to see what a tool brings after its turn was cancelled
TICK = 0.05
EXIT_CODES: Final = {Phase.COMPLETED: 0, Phase.CANCELLED: 130}


class Options(Struct, frozen=True):
    """How the demo is played."""

    auto: bool = False
    fast: bool = False
    color: bool = False


# The story ---------------------------------------------------------------------------------------------------------


def make_tools(moment: float) -> list[Tool]:
    """The tools of the story; each takes a few moments of so many seconds."""

    @tool(effects="read")
    async def weather(city: str, day: str) -> AsyncIterator[Progress | str]:
        """Look up the weather of a day."""
        for doing in (f"asking the station in {city}", "reading the clouds", "waiting for the wind"):
            yield Progress(doing)
            await asyncio.sleep(moment)
        yield f"{day}: sunny, 22 degrees, hardly any wind"

    @tool(effects="read")
    async def calendar(day: str, people: list[str]) -> AsyncIterator[Progress | str]:
        """Find out when people are free."""
        for name in people:
            yield Progress(f"reading the {day} of {name}")
            await asyncio.sleep(1.2 * moment)
        yield f"{' and '.join(people)} are free from 12:30 to 14:00"

    @tool(effects="once", execute="ask")
    async def send_invitation(to: list[str], place: str, day: str, time: str) -> AsyncIterator[Progress | str]:
        """Send an invitation; it cannot be taken back."""
        for doing in ("writing it", "handing it to the mail server"):
            yield Progress(doing)
            await asyncio.sleep(moment)
        yield f"sent to {', '.join(to)}: lunch on {day} at {time}, {place}"

    return [weather, calendar, send_invitation]


def _look(_: ModelRequest) -> list[Batch]:
    return [
        *think("Two things to find out, and neither needs the other: the weather, and a time when both are free. "),
        *say("I will look at the weather and at both calendars."),
        [UsageChunk(Usage(input=212, output=61))],
        *calls(call("weather", city="Lisbon", day="Friday"), call("calendar", day="Friday", people=["Ada", "you"])),
    ]


def _invite(_: ModelRequest) -> list[Batch]:
    place = "in the garden of the museum"
    invitation = call("send_invitation", to=["ada@example.org"], place=place, day="Friday", time="12:30")
    return [
        *think("Sunny, and free from 12:30: the garden of the museum it is. "),
        *say("Friday will be sunny and you are both free from 12:30. Here is an invitation for Ada."),
        [UsageChunk(Usage(input=331, output=74))],
        *calls(invitation),
    ]


def _close(request: ModelRequest) -> list[Batch]:
    """Say how it went; like any model it knows that only from the result of its call."""
    result = next(part for part in request.messages[-1].parts if isinstance(part, RequestResult))
    note, _, output = result.text.rpartition("\n")
    if result.is_error:
        reason = result.text.partition("said why: ")[2]
        text = f"I have sent nothing. You said: {reason}" if reason else "All right, I have sent nothing."
        text += " Tell me what to change, and I will try again."
    elif note:
        text = f"Done, with your changes: {output}. See you there!"
    else:
        text = f"Done: {output}. Bring your sunglasses!"
    return [*say(text), [UsageChunk(Usage(input=422, output=29)), FinishChunk("stop")]]


# The screen --------------------------------------------------------------------------------------------------------


def printable(text: str) -> str:
    """Text that a terminal can only show, never obey: whatever is not a plain character is written as its escape.

    Models, tools and people write what they like. An escape sequence could retitle the window, wipe the screen or
    redraw what a person is about to allow, and an invisible or right-to-left mark could hide a part of it.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


WIDTH = 80
GUTTER = 13
STYLES: Final = {"": "", "dim": "2", "bold": "1", "good": "32", "bad": "31", "ask": "33"}


class Screen:
    """Lines of at most 80 columns, only ever added to: the phase in the gutter, beside it what happens."""

    def __init__(self, out: TextIO, color: bool) -> None:
        self._out, self._color = out, color
        self._width = max(min(WIDTH, shutil.get_terminal_size().columns), 3 * GUTTER)
        self._column = 0
        self._label = ""

    def begin(self, label: str, note: str = "") -> None:
        """Begin a section; its label stands before its first line."""
        self.end()
        self._out.write("\n")
        self._label = label
        if note:
            self.line(note, "dim")

    def line(self, text: str, style: str = "") -> None:
        """Write lines of their own."""
        self.end()
        self.write(text, style)
        self.end()

    def mark(self, mark: str, name: str, text: str, style: str = "") -> None:
        """Write one line about a call, cut where the screen ends."""
        room = self._width - GUTTER
        text = printable(f"{mark} {name}  {text}")
        self.line(text if len(text) <= room else text[: room - 1] + "…", style)

    def write(self, text: str, style: str = "") -> None:
        """Write on, and wrap between words. Everything that is shown passes here and is made printable."""
        for piece in re.findall(r"\n|[^\S\n]+|\S+", text):
            if piece == "\n":
                self.end()
            else:
                self._word(printable(piece), style)
        self._out.flush()

    def _word(self, word: str, style: str) -> None:
        if self._column and self._column + len(word) > self._width:
            self.end()
            word = word.lstrip()
        while word:
            self._margin()
            room = self._width - self._column
            self._out.write(self._paint(word[:room], style))
            self._column += len(word[:room])
            if word := word[room:]:
                self.end()

    def _margin(self) -> None:
        if not self._column:
            self._out.write(self._paint(f" {self._label:<{GUTTER - 1}}", "dim"))
            self._label, self._column = "", GUTTER

    def _paint(self, text: str, style: str) -> str:
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if self._color and style else text

    def end(self) -> None:
        """End the line, if one was begun."""
        if self._column:
            self._out.write("\n")
            self._column = 0
            self._out.flush()

    def typed(self) -> None:
        """A person has ended the line."""
        self._column = 0


NOTES: Final = {
    Phase.PREPARING: "your message is in the log and cannot be lost",
    Phase.WAITING: "nothing runs, and nothing is held in memory, until you answer",
    Phase.FINALIZING: "every call gets its one result",
}
SETTLED: Final = {"completed": ("✓", "good"), "cancelled": ("×", "ask")}


class View:
    """Draws what a turn shows. Its state is the fold of the events it has seen, like everybody's."""

    def __init__(self, screen: Screen, turn: str) -> None:
        self._screen, self.state = screen, TurnState(turn)
        self._is_thinking = False

    def show(self, shown: Shown) -> bool:
        """Draw one event or delta, and say whether the turn now waits for a person."""
        before = self.state.phase
        if isinstance(shown, TurnEvent):
            self.state.apply(shown)
        phase = self.state.phase
        if phase is not before:
            self._screen.begin(phase, NOTES.get(phase, ""))
        self._draw(shown)
        return phase is not before and phase is Phase.WAITING

    def _draw(self, shown: Shown) -> None:
        match shown:
            case TextDelta(text=text):
                self._say(text, is_thinking=False)
            case ReasoningDelta(text=text):
                self._say(text, is_thinking=True)
            case StepInterrupted():
                self._screen.write(" …", "dim")
            case GateOpened(gate=gate):
                self._call(gate.call, "?", "may it run? a person is asked before it does", "ask")
            case GateAnswered(call=call, verdict=verdict):
                edited = "allowed once, with your changes" if verdict.arguments else "allowed once"
                self._call(call, "?", edited if verdict.allowed else "not allowed", "ask")
            case CallStarted(call=call, arguments=arguments):
                self._call(call, "→", arguments, "bold")
            case CallProgress(call=call, text=text):
                self._call(call, "·", text, "dim")
            case CallSettled(call=call, state=state, output=output):
                mark, style = SETTLED.get(state, ("×", "bad"))
                self._call(call, mark, output.text if state == "completed" else f"{state}: {output.text}", style)
            case LateArrived(call=call, output=output):
                self._call(call, "+", f"late: {output.text}", "good")
            case TurnCancelled():
                self._screen.line("the turn is over", "ask")
            case TurnFailed(problem=problem):
                self._screen.line(f"{problem.kind}: {problem.text}", "bad")
            case _:
                pass

    def _say(self, text: str, is_thinking: bool) -> None:
        if is_thinking is not self._is_thinking:
            self._screen.end()
            self._is_thinking = is_thinking
        self._screen.write(text, "dim" if is_thinking else "")

    def _call(self, call: str, mark: str, text: str, style: str) -> None:
        step = self.state.step
        pad = max((len(made.name) for made in step.calls), default=0) if step is not None else 0
        self._screen.mark(mark, self.state.calls[call].name.ljust(pad), text, style)
