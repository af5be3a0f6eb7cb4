"""Text with <think> tags → reasoning and text, wherever the stream is split.

Only an answer that begins with the tag thinks: the same word in the middle of a text is a word. Blanks around the tags
belong to nobody.
"""

from __future__ import annotations

from collections.abc import Callable

from everturn.core.chunks import Chunk, ReasoningChunk, TextChunk

BLANKS = 1024  # in front of a tag
_OPEN = ("<think>", "<thinking>")
_CLOSE = ("</think>", "</thinking>")


class Thinking:
    """Reads an answer until it is known to be plain text; from then on `is_over`, and nobody need ask it again."""

    def __init__(self, is_open: bool = False) -> None:
        self._held = ""  # what may still turn out to be (part of) a tag
        self._read: Callable[[list[Chunk]], None] = self._inside if is_open else self._before
        self._is_fresh = False
        self.is_over = False

    def feed(self, text: str, out: list[Chunk]) -> None:
        """Read a piece of the answer."""
        self._held += text
        self._read(out)

    def end(self, out: list[Chunk]) -> None:
        """The answer is over: what was held back is what it looked like."""
        if self._held and not self.is_over:
            kind = ReasoningChunk if self._read == self._inside else TextChunk
            if self._read != self._after:
                out.append(kind(self._held))
        self._held, self.is_over = "", True

    def _before(self, out: list[Chunk]) -> None:
        start = self._held.lstrip()
        if not start and len(self._held) > BLANKS:  # nobody thinks after that, and to look again and again costs
            self._finish(self._held, out)
            return
        for tag in _OPEN:
            if start.startswith(tag):
                self._held, self._read, self._is_fresh = start[len(tag) :], self._inside, True
                self._inside(out)
                return
        if not any(tag.startswith(start) for tag in _OPEN):
            self._finish(self._held, out)

    def _inside(self, out: list[Chunk]) -> None:
        held = self._held
        if self._is_fresh:  # line ends behind the tag belong to nobody, in whichever pieces they come
            held = held.lstrip("\n")
            self._is_fresh = not held
        for tag in _CLOSE:
            at = held.find(tag)
            if at >= 0:
                if at:
                    out.append(ReasoningChunk(held[:at]))
                self._held, self._read = held[at + len(tag) :], self._after
                self._after(out)
                return
        at = held.rfind("<")
        if at < 0 or not any(tag.startswith(held[at:]) for tag in _CLOSE):
            at = len(held)
        if at:
            out.append(ReasoningChunk(held[:at]))
        self._held = held[at:]

    def _after(self, out: list[Chunk]) -> None:
        text, self._held = self._held.lstrip(), ""
        if text:
            self._finish(text, out)

    def _finish(self, text: str, out: list[Chunk]) -> None:
        out.append(TextChunk(text))
        self._held, self.is_over = "", True
