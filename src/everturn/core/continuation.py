"""Continued answers: a text that the output limit of a model cut is continued in the next step of the turn.

The step that was cut has `continues` in the log, so a process that takes the turn over continues the same text. A wire
format whose server continues the last message of a request gets that; every other one gets a notice of the runtime.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Final, cast

from msgspec.structs import replace

from everturn.core.chunks import Chunk, TextChunk
from everturn.core.parts import NoticePart, Part, ProviderToolPart, StepPart, TextPart, ToolPart
from everturn.core.requests import ModelRequest, RequestMessage

MAX_CONTINUATIONS: Final = 2  # of a turn
CONTINUE_KIND: Final = "continue"
CONTINUE_REQUEST: Final = RequestMessage(
    "user",
    (
        NoticePart(
            CONTINUE_KIND,
            "Your message above was cut off at the output limit. Continue it exactly where it ends, in the middle of a word "
            "if need be. Repeat nothing, and do not comment on this: your text is appended to it as it is.",
        ),
    ),
)
MIN_ECHO: Final = 24  # characters of the end of a text which, repeated, are taken for a repetition


def is_continued(part: Part) -> bool:
    """Whether a part is the end of a step whose text the next step continues."""
    return type(part) is StepPart and part.continues


def join_continued(parts: Sequence[Part]) -> tuple[list[Part | None], int]:
    """The parts of an answer as they are shown: a text that was cut and its continuation are one, and so are texts side
    by side, and a call of a provider's tool and its result, each in the place of the first.

    None takes the place of what is shown elsewhere. The number is that of the text that the next step continues; -1:
    there is none.
    """
    shown: list[Part | None] = list(parts)
    into = last = -1
    for index, part in enumerate(parts):
        first = shown[into] if into >= 0 else None
        if type(part) is TextPart and type(first) is TextPart:
            shown[into], shown[index] = _join(first, part), None
        elif type(part) is TextPart and last >= 0 and last == index - 1 - _joined_before(shown, index):
            before = shown[last]
            assert isinstance(before, TextPart)
            shown[last], shown[index] = _join(before, part), None
        elif type(part) is ProviderToolPart and part.state != "called":
            call = next((at for at in range(index) if _is_call_of(shown[at], part)), -1)
            if call >= 0:
                shown[call], shown[index] = replace(part, title=cast("ProviderToolPart", shown[call]).title), None
        elif type(part) is TextPart:
            last = index
        elif type(part) is ToolPart:
            into = last = -1
        elif type(part) is StepPart:
            shown[index] = None if part.continues else part
            into = last = max(into, last) if part.continues else -1
    return shown, into


def _join(first: TextPart, second: TextPart) -> TextPart:
    size = len(first.text)
    moved = (replace(each, start=each.start + size, end=each.end + size) for each in second.citations)
    return TextPart(first.text + second.text, citations=(*first.citations, *moved))


def _joined_before(shown: Sequence[Part | None], index: int) -> int:
    """How many parts in a row before this one are shown elsewhere."""
    count = 0
    while count < index and shown[index - 1 - count] is None:
        count += 1
    return count


def _is_call_of(shown: Part | None, result: ProviderToolPart) -> bool:
    return type(shown) is ProviderToolPart and shown.state == "called" and bool(shown.id) and shown.id == result.id


def with_footnotes(part: TextPart) -> str:
    """A text with the numbers of its sources behind what they are for, and the sources under it."""
    sources: dict[tuple[str, str], int] = {}
    marks: dict[int, list[int]] = {}
    for citation in part.citations:
        number = sources.setdefault((citation.title, citation.source), len(sources) + 1)
        if number not in marks.setdefault(citation.end, []):
            marks[citation.end].append(number)
    text = part.text
    for end in sorted(marks, reverse=True):
        text = text[:end] + "".join(f"[{number}]" for number in marks[end]) + text[end:]
    notes = [f"[{n}] {' '.join(f'{title} {source}'.split())}" for (title, source), n in sources.items()]
    return "\n\n".join([text, *notes]) if notes else text


def continued_text(request: ModelRequest) -> str | None:
    """The text that a request asks to continue; None: it asks for an answer."""
    messages = request.messages
    if len(messages) < 2 or messages[-1] != CONTINUE_REQUEST or messages[-2].role != "assistant":
        return None
    return "".join(part.text for part in messages[-2].parts if isinstance(part, TextPart))


class EchoFilter:
    """Drops the repetition of the end of a text at the beginning of its continuation.

    A model that is asked to continue often begins with the last words or lines of its text, and some servers return the
    whole of it. Text is held back as long as it may be such a repetition. Less than `MIN_ECHO` characters, or an end
    that occurs elsewhere in the text, as in a table, may well be meant: then nothing is dropped.
    """

    def __init__(self, text: str) -> None:
        self._text, self._held = text, ""
        self._is_over = len(text) < MIN_ECHO or text.find(text[-MIN_ECHO:]) < len(text) - MIN_ECHO

    @property
    def holds(self) -> bool:
        """Whether text is held back."""
        return bool(self._held)

    def feed(self, text: str) -> str:
        """Add a piece of the continuation; returns what of it can be shown."""
        if self._is_over:
            return text
        self._held += text
        start = self._text.find(self._held)
        if 0 <= start <= len(self._text) - max(MIN_ECHO, len(self._held) + 1):
            return ""  # so far it repeats something, and may reach the end
        return self.end()

    def end(self) -> str:
        """End the beginning; returns what can be shown."""
        held, self._held, self._is_over = self._held, "", True
        for size in range(min(len(held), len(self._text)), MIN_ECHO - 1, -1):
            if held.startswith(self._text[-size:]):
                return held[size:]
        return held


async def drop_echo(batches: AsyncIterator[Sequence[Chunk]], text: str) -> AsyncGenerator[Sequence[Chunk]]:
    """Pass a stream on without a repetition of the end of a text at its beginning."""
    echo = EchoFilter(text)
    try:
        async for batch in batches:
            passed: list[Chunk] = []
            for chunk in batch:
                if isinstance(chunk, TextChunk):
                    if shown := echo.feed(chunk.text):
                        passed.append(TextChunk(shown))
                    continue
                if echo.holds:
                    passed.append(TextChunk(echo.end()))
                passed.append(chunk)
            yield passed
        if echo.holds:
            yield [TextChunk(echo.end())]
    finally:
        if (aclose := getattr(batches, "aclose", None)) is not None:
            await aclose()
