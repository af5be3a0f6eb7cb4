"""Prompted response: splits the text of an answer into text and calls while it streams.

A call begins at the beginning of a line, outside code fences and reasoning: what is quoted, fenced or mentioned in the
middle of a sentence is no call. Text is emitted as soon as it arrives; only the beginning of a line that may become a
call is held back, and whitespace, which is dropped if a call follows. An incomplete call can never run: it is shown,
and its arguments are invalid JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from everturn.core.chunks import CallChunk, Chunk, TextChunk
from everturn.models.prompted.text_reader import TextParser, TextReader, advance, read_rest, wait_for_more

MALFORMED = "malformed_call"  # the name of a call without a name
LOOKAHEAD = 256  # characters of a line within which a call must begin

_FENCE = re.compile(r"`{3,}|~{3,}")
_RESULT = ("{", '"tool_call_result"')
_THINK, _THOUGHT = ("<think>", "<thinking>"), re.compile(r"</think(?:ing)?>")
_HALF_THOUGHT = re.compile(r"<(?:/(?:t(?:h(?:i(?:n(?:k(?:i(?:n(?:g)?)?)?)?)?)?)?)?)?\Z")

NO, MAYBE = -1, -2  # results of a match: no match; more text is needed


CallCheck = Callable[[str, int], str]
"""Returns why a call of this name, after this many others, is not allowed now; "" if it is."""


class ParsedAnswer:
    """The parsed part of an answer: chunks to emit, and the number of calls."""

    def __init__(self, forbids: CallCheck) -> None:
        self._forbids = forbids
        self.out: list[Chunk] = []
        self.calls = 0
        self.is_whole = True  # all calls so far are complete and allowed
        self._texts: list[str] = []
        self._blanks: list[str] = []
        self._is_after_call = False

    def add_text(self, text: str) -> None:
        """Add text, with the whitespace before it; trailing whitespace is held back."""
        if self._is_after_call:
            text = text.lstrip()
        bare = text.rstrip()
        if bare:
            self._texts += self._blanks
            self._texts.append(bare)
            self._blanks.clear()
            self._is_after_call = False
        if len(bare) < len(text):
            self._blanks.append(text[len(bare) :])

    def flush(self) -> None:
        """Emit the text."""
        if self._texts:
            self.out.append(TextChunk("".join(self._texts)))
            self._texts.clear()

    def begin(self, name: str, id: str = "") -> int:
        """Begin a call; whitespace before it is dropped."""
        self.flush()
        self._blanks.clear()
        self._is_after_call = True
        self.out.append(CallChunk(self.calls, "", name or MALFORMED, id))
        self.calls += 1
        if why := self._forbids(name, self.calls - 1):
            self.invalidate([self.calls - 1], why)
        return self.calls - 1

    def add_arguments(self, slot: int, arguments: str) -> None:
        """Add arguments to a call."""
        if arguments:
            self.out.append(CallChunk(slot, arguments))

    def invalidate(self, slots: Sequence[int], why: str) -> None:
        """Make the arguments of calls invalid JSON, so that they cannot run."""
        self.is_whole = False
        for slot in slots:
            self.out.append(CallChunk(slot, f" [this call does not count: {why}] "))

    def end(self) -> None:
        """End the answer: trailing whitespace is part of the text."""
        self._texts += self._blanks
        self._blanks.clear()
        self.flush()


CallMatcher = Callable[[str, int], int]
"""Returns whether a call begins at a position: a number from 0 on if it does, else NO or MAYBE."""
CallReader = Callable[[TextReader, ParsedAnswer], TextParser[None]]
"""Parses the call, or calls, at the current position."""


class AnswerParser:
    """Parses one answer."""

    def __init__(self, begins: CallMatcher, read: CallReader, forbids: CallCheck = lambda _name, _before: "") -> None:
        self._begins, self._read = begins, read
        self._source, self._answer = TextReader(), ParsedAnswer(forbids)
        self._fence = ""  # the open fence
        self._is_dropped = False
        self._reading = self._lines()

    @property
    def calls(self) -> int:
        """The number of calls so far."""
        return self._answer.calls

    @property
    def is_dropped(self) -> bool:
        """Whether the calls are complete, and an invented result after them was dropped."""
        return self._is_dropped and self._answer.is_whole

    def feed(self, text: str, out: list[Chunk]) -> None:
        """Parse a piece of the answer."""
        self._source.feed(text)
        self._answer.out = out
        advance(self._reading)
        self._answer.flush()

    def end(self, out: list[Chunk]) -> None:
        """End the answer."""
        self._source.feed("")
        self._source.is_over, self._answer.out = True, out
        advance(self._reading)
        self._answer.end()

    def _lines(self) -> TextParser[None]:
        source, answer = self._source, self._answer
        while source.at < len(source.text) or (yield from wait_for_more(source)):
            match (yield from self._look()):
                case "call":
                    yield from self._read(source, answer)
                case "thought":
                    yield from self._thought()
                case "result":  # invented by the model: only the runtime reports results
                    self._is_dropped = True
                    yield from read_rest(source)
                case "fence":
                    yield from self._fenced()
                case _:
                    yield from self._line()

    def _look(self) -> TextParser[str]:
        """Return what begins with this line; the indentation is consumed."""
        source = self._source
        while True:
            # The lookahead is fixed, however much text there is, or the split of the text would matter.
            line = source.text[source.at : source.at + LOOKAHEAD]
            indent = len(line) - len(line.lstrip(" \t"))
            if indent < len(line):
                kind = self._kind_at(line, indent) if indent < 4 and "\t" not in line[:indent] else ""
                if kind != "?":
                    self._answer.add_text(source.take(source.at + indent))
                    return kind
            if len(line) == LOOKAHEAD or not (yield from wait_for_more(source)):
                return ""

    def _kind_at(self, text: str, at: int) -> str:
        """Return what begins here: `call`, `fence`, `thought`, `result`, nothing (""), or not known yet (`?`)."""
        if text[at] in "`~":
            run_of = _FENCE.match(text, at)
            end = len(text) - len(text[at:].lstrip(text[at]))
            return "?" if end == len(text) else "fence" if run_of is not None else ""
        if self._fence:
            return ""
        candidates = [("call", self._begins(text, at)), ("thought", _one_of(_THINK, text, at))]
        if self._answer.calls:
            candidates.append(("result", match_tokens(_RESULT, text, at)))
        for kind, end_or_state in candidates:
            if end_or_state >= 0:
                return kind
        return "?" if any(end_or_state == MAYBE for _, end_or_state in candidates) else ""

    def _fenced(self) -> TextParser[None]:
        """Parse a line that begins with a fence: it opens one, closes the open one, or is plain text."""
        match = _FENCE.match(self._source.text, self._source.at)
        assert match is not None
        mark = match[0]
        self._answer.add_text(self._source.take(match.end()))
        line = yield from self._line()
        if not self._fence:
            self._fence = mark if "`" not in line or mark[0] == "~" else ""
        elif mark.startswith(self._fence) and not line.strip():
            self._fence = ""

    def _line(self) -> TextParser[str]:
        """Parse the rest of a line, including its end."""
        source, pieces = self._source, [""]
        while True:
            end = source.text.find("\n", source.at) + 1
            pieces.append(source.take(end or len(source.text)))
            self._answer.add_text(pieces[-1])
            if end or not (yield from wait_for_more(source)):
                return "".join(pieces)

    def _thought(self) -> TextParser[None]:
        """Parse reasoning in the middle of an answer, where nothing is a call."""
        source = self._source
        while True:
            match = _THOUGHT.search(source.text, source.at)
            if match is not None:
                self._answer.add_text(source.take(match.end()))
                return
            half = _HALF_THOUGHT.search(source.text, source.at)
            self._answer.add_text(source.take(half.start() if half is not None else len(source.text)))
            if not (yield from wait_for_more(source)):
                self._answer.add_text(source.take(len(source.text)))
                return


def match_tokens(signs: Sequence[str], text: str, at: int) -> int:
    """Return where a sequence of tokens that begins at `at` ends, with whitespace between them; or NO, or MAYBE."""
    for number, sign in enumerate(signs):
        while number and at < len(text) and text[at] in " \t\r\n":
            at += 1
        if not text.startswith(sign, at):
            return MAYBE if sign.startswith(text[at : at + len(sign)]) else NO
        at += len(sign)
    return at


def _one_of(signs: Sequence[str], text: str, at: int) -> int:
    ends = [match_tokens((sign,), text, at) for sign in signs]
    return max(ends) if max(ends) >= 0 else MAYBE if MAYBE in ends else NO
