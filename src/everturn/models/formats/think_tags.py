"""Think tags: splits text with <think> tags into reasoning and text, wherever the stream is split.

Only an answer that begins with the tag has reasoning: the same tag in the middle of a text is text. Whitespace around
the tags is dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from everturn.core.chunks import Chunk, ReasoningChunk, TextChunk

BLANKS = 1024  # whitespace characters in front of a tag
_OPEN = ("<think>", "<thinking>")
_CLOSE = ("</think>", "</thinking>")


class ThinkTagReader:
    """Reads an answer until the rest of it is plain text; from then on `is_over` is true, and it is not needed."""

    def __init__(self, is_open: bool = False) -> None:
        self._held = ""  # text that may still be (part of) a tag
        self._read: Callable[[list[Chunk]], None] = self._inside if is_open else self._before
        self._is_fresh = False
        self.is_over = False

    def feed(self, text: str, out: list[Chunk]) -> None:
        """Read a piece of the answer."""
        self._held += text
        self._read(out)

    def end(self, out: list[Chunk]) -> None:
        """End the answer: append the text that was held back."""
        if self._held and not self.is_over:
            kind = ReasoningChunk if self._read == self._inside else TextChunk
            if self._read != self._after:
                out.append(kind(self._held))
        self._held, self.is_over = "", True

    def _before(self, out: list[Chunk]) -> None:
        start = self._held.lstrip()
        if (
            not start and len(self._held) > BLANKS
        ):  # no model starts reasoning after that, and checking again and again is slow
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
        if self._is_fresh:  # line breaks after the tag are dropped, however they are split
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
