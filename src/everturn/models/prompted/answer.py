"""The text of an answer → text and calls, as it comes.

A call begins at the beginning of a line, outside code fences and thoughts: what is quoted, fenced or talked about in
the middle of a sentence is no call. Text goes out as soon as it has come; what is held back is only the beginning of a
line that may become a call, and blanks, which belong to nobody when a call follows. A call that is not whole is never
one that could run: what is there of it is shown, and is no JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from everturn.core.chunks import CallChunk, Chunk, TextChunk
from everturn.models.prompted.source import Reading, Source, more, rest, run

MALFORMED = "malformed_call"  # the name of a call that has none
LONGEST = 256  # characters at the beginning of a line in which a call must show itself

_FENCE = re.compile(r"`{3,}|~{3,}")
_RESULT = ("{", '"tool_call_result"')
_THINK, _THOUGHT = ("<think>", "<thinking>"), re.compile(r"</think(?:ing)?>")
_HALF_THOUGHT = re.compile(r"<(?:/(?:t(?:h(?:i(?:n(?:k(?:i(?:n(?:g)?)?)?)?)?)?)?)?)?\Z")

NO, MAYBE = -1, -2  # where something could have begun: it does not; it is too early to tell


Forbids = Callable[[str, int], str]
"""Why a call of this name, with this many before it, may not be made now; "" if it may."""


class Heard:
    """What an answer has said so far: chunks on their way out, and how many calls there are."""

    def __init__(self, forbids: Forbids) -> None:
        self._forbids = forbids
        self.out: list[Chunk] = []
        self.calls = 0
        self.is_whole = True  # no call so far was broken, or may not run
        self._said: list[str] = []
        self._blanks: list[str] = []
        self._is_after_call = False

    def say(self, text: str) -> None:
        """Text, with the blanks before it; those behind it wait for more."""
        if self._is_after_call:
            text = text.lstrip()
        bare = text.rstrip()
        if bare:
            self._said += self._blanks
            self._said.append(bare)
            self._blanks.clear()
            self._is_after_call = False
        if len(bare) < len(text):
            self._blanks.append(text[len(bare) :])

    def flush(self) -> None:
        """Send out what was said."""
        if self._said:
            self.out.append(TextChunk("".join(self._said)))
            self._said.clear()

    def begin(self, name: str, id: str = "") -> int:
        """A call begins; blanks before it are not text."""
        self.flush()
        self._blanks.clear()
        self._is_after_call = True
        self.out.append(CallChunk(self.calls, "", name or MALFORMED, id))
        self.calls += 1
        if why := self._forbids(name, self.calls - 1):
            self.spoil([self.calls - 1], why)
        return self.calls - 1

    def grow(self, slot: int, arguments: str) -> None:
        """A call goes on."""
        if arguments:
            self.out.append(CallChunk(slot, arguments))

    def spoil(self, slots: Sequence[int], why: str) -> None:
        """Calls that must not run: their arguments are made no JSON."""
        self.is_whole = False
        for slot in slots:
            self.out.append(CallChunk(slot, f" [this call does not count: {why}] "))

    def end(self) -> None:
        """There is nothing more: blanks at the end were meant."""
        self._said += self._blanks
        self._blanks.clear()
        self.flush()


Begins = Callable[[str, int], int]
"""Whether a call begins at a place in a text: a number from 0 on if it does, else NO or MAYBE."""
ReadCalls = Callable[[Source, Heard], Reading[None]]
"""Reads the call, or calls, that begin right there."""


class Answer:
    """Reads one answer."""

    def __init__(self, begins: Begins, read: ReadCalls, forbids: Forbids = lambda _name, _before: "") -> None:
        self._begins, self._read = begins, read
        self._source, self._heard = Source(), Heard(forbids)
        self._fence = ""  # that is open
        self._is_dropped = False
        self._reading = self._lines()

    @property
    def calls(self) -> int:
        """How many calls it has made."""
        return self._heard.calls

    @property
    def is_dropped(self) -> bool:
        """Whether all that it said after its calls, which are whole, was made up and dropped."""
        return self._is_dropped and self._heard.is_whole

    def feed(self, text: str, out: list[Chunk]) -> None:
        """A piece of the answer."""
        self._source.feed(text)
        self._heard.out = out
        run(self._reading)
        self._heard.flush()

    def end(self, out: list[Chunk]) -> None:
        """There is nothing more."""
        self._source.feed("")
        self._source.is_over, self._heard.out = True, out
        run(self._reading)
        self._heard.end()

    def _lines(self) -> Reading[None]:
        source, heard = self._source, self._heard
        while source.at < len(source.text) or (yield from more(source)):
            match (yield from self._look()):
                case "call":
                    yield from self._read(source, heard)
                case "thought":
                    yield from self._thought()
                case "result":  # made up: only we know what a call came to
                    self._is_dropped = True
                    yield from rest(source)
                case "fence":
                    yield from self._fenced()
                case _:
                    yield from self._line()

    def _look(self) -> Reading[str]:
        """What begins with this line; the blanks before it are read."""
        source = self._source
        while True:
            # Only so much is looked at, however much there is, or it would matter how the text was split.
            line = source.text[source.at : source.at + LONGEST]
            indent = len(line) - len(line.lstrip(" \t"))
            if indent < len(line):
                what = self._what(line, indent) if indent < 4 and "\t" not in line[:indent] else ""
                if what != "?":
                    self._heard.say(source.take(source.at + indent))
                    return what
            if len(line) == LONGEST or not (yield from more(source)):
                return ""

    def _what(self, text: str, at: int) -> str:
        """What begins here: a `call`, a `fence`, a `thought`, a `result`, nothing (""), or too early to tell (`?`)."""
        if text[at] in "`~":
            run_of = _FENCE.match(text, at)
            end = len(text) - len(text[at:].lstrip(text[at]))
            return "?" if end == len(text) else "fence" if run_of is not None else ""
        if self._fence:
            return ""
        seen = [("call", self._begins(text, at)), ("thought", _one_of(_THINK, text, at))]
        if self._heard.calls:
            seen.append(("result", follows(_RESULT, text, at)))
        for what, found in seen:
            if found >= 0:
                return what
        return "?" if any(found == MAYBE for _, found in seen) else ""

    def _fenced(self) -> Reading[None]:
        """A line that begins with a fence: it opens one, closes the one that is open, or is a line like any other."""
        found = _FENCE.match(self._source.text, self._source.at)
        assert found is not None
        mark = found[0]
        self._heard.say(self._source.take(found.end()))
        line = yield from self._line()
        if not self._fence:
            self._fence = mark if "`" not in line or mark[0] == "~" else ""
        elif mark.startswith(self._fence) and not line.strip():
            self._fence = ""

    def _line(self) -> Reading[str]:
        """What is left of a line, its end included."""
        source, pieces = self._source, [""]
        while True:
            end = source.text.find("\n", source.at) + 1
            pieces.append(source.take(end or len(source.text)))
            self._heard.say(pieces[-1])
            if end or not (yield from more(source)):
                return "".join(pieces)

    def _thought(self) -> Reading[None]:
        """Thoughts in the middle of an answer, where nothing is a call."""
        source = self._source
        while True:
            found = _THOUGHT.search(source.text, source.at)
            if found is not None:
                self._heard.say(source.take(found.end()))
                return
            half = _HALF_THOUGHT.search(source.text, source.at)
            self._heard.say(source.take(half.start() if half is not None else len(source.text)))
            if not (yield from more(source)):
                self._heard.say(source.take(len(source.text)))
                return


def follows(signs: Sequence[str], text: str, at: int) -> int:
    """Where these signs end that should begin at `at`, with blanks in between as one likes; or NO, or MAYBE."""
    for number, sign in enumerate(signs):
        while number and at < len(text) and text[at] in " \t\r\n":
            at += 1
        if not text.startswith(sign, at):
            return MAYBE if sign.startswith(text[at : at + len(sign)]) else NO
        at += len(sign)
    return at


def _one_of(signs: Sequence[str], text: str, at: int) -> int:
    found = [follows((sign,), text, at) for sign in signs]
    return max(found) if max(found) >= 0 else MAYBE if MAYBE in found else NO
