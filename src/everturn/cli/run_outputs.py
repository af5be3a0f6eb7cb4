"""What a turn shows → stdout: what the model says, or every event on a line; and what else is to be told → stderr."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import BinaryIO, Final, Protocol, TextIO

import msgspec

from everturn import TextDelta, wire
from everturn.core.deltas import Shown
from everturn.core.events import Event, GateAnswered, LimitReached, StepStarted, Terminal, TurnFailed
from everturn.terminal.answer import Answer
from everturn.terminal.screen import Screen, printable, prose, typeset

NOBODY: Final = "nobody is there to ask"
"""Why a call was denied, as the model reads it; and by which an exit code knows it, in a turn that is read again."""

COMPLETED, FAILED, UNUSABLE, DENIED, LIMITED, PARKED, CANCELLED, READER_GONE = 0, 1, 2, 3, 4, 5, 130, 141
DEADLINE: Final = "deadline"  # the kind of the problem of a turn that had its time
_HIDDEN: Final = re.compile(r"[^\x20-\x7e]")


class Output(Protocol):
    """Where a turn goes."""

    def begin(self, session: str, turn: str) -> None:
        """Say which turn it is."""
        ...

    def show(self, shown: Shown) -> None:
        """Write an event or a delta, as far as it is for this output."""
        ...

    def pause(self) -> None:
        """Let something else be written on the same terminal."""
        ...

    def end(self) -> None:
        """Write what is due."""
        ...


class TextOutput:
    """What the model says, exactly; on a terminal without what that would obey. It ends with one newline."""

    def __init__(self, out: BinaryIO, is_terminal: bool) -> None:
        self._out, self._is_terminal = out, is_terminal
        self._due = ""  # newlines that are written only before more text
        self._has_said = False
        self._is_open = False  # a line was begun, and not ended

    def begin(self, session: str, turn: str) -> None:
        """Nothing: that is not what the model says."""

    def show(self, shown: Shown) -> None:
        """Write what the model says; steps are kept apart by a line."""
        if isinstance(shown, TextDelta):
            self._write(shown.text)
        elif isinstance(shown, StepStarted) and self._has_said:
            self._due = self._due or "\n"
        elif isinstance(shown, Terminal):
            self.end()

    def _write(self, text: str) -> None:
        if not (said := text.rstrip("\n")):
            self._due += text
            return
        due = self._due if self._is_open else self._due.removeprefix("\n") if self._has_said else self._due
        whole, self._due = due + said, text[len(said) :]
        self._has_said = self._is_open = True
        if self._is_terminal:
            whole = "\n".join(map(prose, whole.split("\n")))
        self._out.write(whole.encode("utf-8", "backslashreplace"))
        self._out.flush()

    def pause(self) -> None:
        """End the line on a terminal, where another one would be written into it."""
        if self._is_terminal:
            self.end()

    def end(self) -> None:
        """End the last line, and no other."""
        if self._is_open:
            self._is_open = False
            self._out.write(b"\n")
            self._out.flush()


class JsonOutput:
    """Every event of the log as one line of JSON, as a store keeps it; with `deltas` also what is shown in between."""

    def __init__(self, out: BinaryIO, is_terminal: bool, deltas: bool) -> None:
        self._out, self._is_terminal, self._deltas = out, is_terminal, deltas

    def begin(self, session: str, turn: str) -> None:
        """Say which turn it is: an event does not know its session."""
        self._line(msgspec.json.encode({"v": wire.VERSION, "run": {"session": session, "turn": turn}}))

    def show(self, shown: Shown) -> None:
        """Write it."""
        if isinstance(shown, Event):
            self._line(wire.dump(shown))
        elif self._deltas:
            self._line(msgspec.json.encode({"v": wire.VERSION, "delta": shown}))

    def _line(self, data: bytes) -> None:
        if self._is_terminal:  # JSON lets characters stand as they are which a terminal would obey
            data = harmless(data.decode()).encode()
        self._out.write(data + b"\n")
        self._out.flush()

    def pause(self) -> None:
        """Nothing: lines are whole."""

    def end(self) -> None:
        """Nothing: lines are whole."""


def harmless(line: str) -> str:
    """A line of JSON that says the same, and that a terminal can only show."""
    return _HIDDEN.sub(_escaped, line)


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    if char.isprintable():
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04x}" for at in range(0, len(units), 2))


class Aside(Answer):
    """What is told beside the answer: what nobody may miss, and with `is_verbose` calls, thoughts and cost."""

    def __init__(self, turn: str, is_verbose: bool, pause: Callable[[], None]) -> None:
        self._pause, err = pause, _standard_error()
        self.is_denied = self.is_limited = False
        safe = typeset if err.isatty() else prose
        super().__init__(Screen(err, False, gutter=0, width=0, safe=safe), turn, self._tell_once, not is_verbose)

    def _tell_once(self, text: str) -> None:
        self._pause()
        say(text)

    def _say(self, text: str) -> None:
        """Nothing: what the model says goes elsewhere."""
        self.has_said = self.has_said or bool(text)

    def show(self, shown: Shown) -> None:
        """Tell it, and take note of what the exit code says."""
        match shown:
            case GateAnswered(verdict=verdict) if not verdict.allowed and verdict.reason == NOBODY:
                self.is_denied = True
            case LimitReached(text=text):
                self.is_limited = True
                self._tell_once(text)
            case StepStarted(closing=True) if not self.is_limited:
                self.is_limited = True
                self._tell_once("the turn has had all its steps, so this is the last answer; --max-steps allows more")
            case TurnFailed(problem=problem) if problem.kind == DEADLINE:
                self.is_limited = True
            case _:
                pass
        if not self._is_bare and not isinstance(shown, TextDelta):
            self._pause()
        super().show(shown)

    def code(self) -> int:
        """The exit code of the turn, once it is over."""
        if self.problem is not None:
            return LIMITED if self.problem.kind == DEADLINE else FAILED
        if self.is_cancelled:
            return CANCELLED
        return LIMITED if self.is_limited else DENIED if self.is_denied else COMPLETED


def say(text: str) -> None:
    """Say something on stderr, in one line."""
    print(f"everturn: {printable(' '.join(text.split()))}", file=_standard_error(), flush=True)


def _standard_error() -> TextIO:
    # `2>&-`: what is printed to nothing would be printed to stdout, in the middle of an answer.
    return sys.stderr if sys.stderr is not None else open(os.devnull, "w", encoding="utf-8")
