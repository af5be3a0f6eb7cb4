"""Output of `everturn run`: the answer or its events on stdout, notes on stderr, and the exit code of the turn."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import BinaryIO, Final, Protocol, TextIO

import msgspec

from everturn import wire
from everturn.core.deltas import TurnItem
from everturn.core.events import (
    Event,
    GateResolved,
    LimitReached,
    StepFinished,
    StepStarted,
    Terminal,
    TurnCompleted,
    TurnFailed,
)
from everturn.core.parts import join_text
from everturn.events import TextDelta
from everturn.terminal.lines.turn_view import TurnPrinter
from everturn.terminal.text.screen import LineScreen, escape_and_expand_blanks, escape_prose, escape_unprintable

NOBODY_TO_ASK: Final = "nobody is there to ask"
"""Reason of a denial, as the model reads it.

The exit code is derived from it, also when a turn is read again from its log.
"""

COMPLETED, FAILED, UNUSABLE, DENIED, LIMITED, PARKED, CANCELLED, READER_GONE = 0, 1, 2, 3, 4, 5, 130, 141
DEADLINE: Final = "deadline"  # the problem kind of a turn that timed out
_NOT_PRINTABLE_ASCII: Final = re.compile(r"[^\x20-\x7e]")
STEP_LIMIT: Final = (
    "step limit reached, so this is the last answer; --max-steps allows more, as does max_steps in everturn.toml"
)


class TurnOutput(Protocol):
    """Destination of a turn's events and deltas."""

    def begin(self, session: str, turn: str) -> None:
        """Announce the session and the turn."""
        ...

    def show(self, shown: TurnItem) -> None:
        """Write an event or a delta, if this output has it."""
        ...

    def pause(self) -> None:
        """Let other text be written on the same terminal."""
        ...

    def end(self) -> None:
        """Write what is still pending."""
        ...


class TextOutput:
    """The text of the model, unchanged; on a terminal without control characters. It ends with one newline."""

    def __init__(self, out: BinaryIO, is_terminal: bool) -> None:
        self._out, self._is_terminal = out, is_terminal
        self._due = ""  # newlines that are written only when more text follows
        self._has_said = False
        self._is_open = False  # the current line has text and no newline yet

    def begin(self, session: str, turn: str) -> None:
        """Do nothing: only the text of the model is written."""

    def show(self, shown: TurnItem) -> None:
        """Write the text of the model; steps are separated by a newline."""
        if isinstance(shown, TextDelta):
            self._write(shown.text)
        elif isinstance(shown, StepStarted) and self._has_said:
            self._due = self._due or "\n"
        elif isinstance(shown, Terminal):
            self.end()

    def _write(self, text: str) -> None:
        if not (stripped := text.rstrip("\n")):
            self._due += text
            return
        newlines = self._due if self._is_open else self._due.removeprefix("\n") if self._has_said else self._due
        output, self._due = newlines + stripped, text[len(stripped) :]
        self._has_said = self._is_open = True
        if self._is_terminal:
            output = "\n".join(map(escape_prose, output.split("\n")))
        self._out.write(output.encode("utf-8", "backslashreplace"))
        self._out.flush()

    def pause(self) -> None:
        """End the line on a terminal, so that other text does not continue it."""
        if self._is_terminal:
            self.end()

    def end(self) -> None:
        """End the last line, if it is open."""
        if self._is_open:
            self._is_open = False
            self._out.write(b"\n")
            self._out.flush()


class TypedOutput(TextOutput):
    """The JSON of --output-schema: the answer of the last step, once the turn completed. Rejected answers are not written."""

    def __init__(self, out: BinaryIO, is_terminal: bool) -> None:
        super().__init__(out, is_terminal)
        self._answer = ""

    def show(self, shown: TurnItem) -> None:
        """Keep the text of a step; write the last one when the turn completed."""
        if isinstance(shown, StepFinished):
            self._answer = join_text(shown.parts)
        elif isinstance(shown, TurnCompleted):
            self._write(self._answer)
            self.end()


class JsonOutput:
    """Every event of the log as one line of JSON, in the format of the store; with `deltas` also the deltas in between."""

    def __init__(self, out: BinaryIO, is_terminal: bool, deltas: bool) -> None:
        self._out, self._is_terminal, self._deltas = out, is_terminal, deltas

    def begin(self, session: str, turn: str) -> None:
        """Write the session and the turn: an event does not name its session."""
        self._line(msgspec.json.encode({"v": wire.UNCHANGED, "run": {"session": session, "turn": turn}}))

    def show(self, shown: TurnItem) -> None:
        """Write an event, or a delta if deltas are wanted."""
        if isinstance(shown, Event):
            self._line(wire.dump_event(shown))
        elif self._deltas:
            self._line(msgspec.json.encode({"v": wire.UNCHANGED, "delta": shown}))

    def _line(self, data: bytes) -> None:
        if self._is_terminal:  # JSON leaves characters unescaped that a terminal interprets
            data = escape_json_line(data.decode()).encode()
        self._out.write(data + b"\n")
        self._out.flush()

    def pause(self) -> None:
        """Do nothing: lines are always complete."""

    def end(self) -> None:
        """Do nothing: lines are always complete."""


def escape_json_line(line: str) -> str:
    """Escape the control characters in a line of JSON: the value stays the same, and a terminal does not interpret it."""
    return _NOT_PRINTABLE_ASCII.sub(_escape, line)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char.isprintable():
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04x}" for at in range(0, len(units), 2))


class StderrOutput(TurnPrinter):
    """Notes beside the answer: denials, limits and problems, and with `is_verbose` also calls, reasoning and cost."""

    def __init__(self, turn: str, is_verbose: bool, pause: Callable[[], None]) -> None:
        self._pause, err = pause, _standard_error()
        self.is_denied = self.is_limited = False
        safe = escape_and_expand_blanks if err.isatty() else escape_prose
        super().__init__(LineScreen(err, False, gutter=0, width=0, safe=safe), turn, self._tell_once, not is_verbose)

    def _tell_once(self, text: str) -> None:
        self._pause()
        print_note(text)

    def _draw_text(self, text: str) -> None:
        """Do nothing: the text of the model goes to stdout."""
        self.has_text = self.has_text or bool(text)

    def show(self, shown: TurnItem) -> None:
        """Print an event as a note, and record what the exit code depends on."""
        match shown:
            case GateResolved(resolution=resolution) if not resolution.allowed and resolution.reason == NOBODY_TO_ASK:
                self.is_denied = True
            case LimitReached(limit="denied", text=text):
                self.is_denied = True
                self._tell_once(text)
            case LimitReached(text=text):
                self.is_limited = True
                self._tell_once(text)
            case StepStarted(closing=True) if not self.is_limited:
                self.is_limited = True
                self._tell_once(STEP_LIMIT)
            case TurnFailed(problem=problem) if problem.kind == DEADLINE:
                self.is_limited = True
            case _:
                pass
        if not self._is_bare and not isinstance(shown, TextDelta):
            self._pause()
        super().show(shown)

    def code(self) -> int:
        """Return the exit code of the turn, once it is over."""
        if self.problem is not None:
            return LIMITED if self.problem.kind == DEADLINE else FAILED
        if self.is_cancelled:
            return CANCELLED
        return LIMITED if self.is_limited else DENIED if self.is_denied else COMPLETED


def print_note(text: str) -> None:
    """Print one line on stderr."""
    print(f"everturn: {escape_unprintable(' '.join(text.split()))}", file=_standard_error(), flush=True)


def _standard_error() -> TextIO:
    # `2>&-`: print(file=None) would write to stdout, in the middle of an answer.
    return sys.stderr if sys.stderr is not None else open(os.devnull, "w", encoding="utf-8")
