"""Token estimate: the tokens of texts and message parts, from their length. No tokenizer is needed.

A text has a token for every four bytes of UTF-8, and one for each Chinese, Japanese or Korean character. What a model
really counts differs by a factor, which `context_size` learns from the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from everturn.core.messages import Message
from everturn.core.parts import (
    ContextPart,
    FilePart,
    NoticePart,
    Output,
    Part,
    ProviderToolPart,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolPart,
)

BYTES_PER_TOKEN: Final = 4
FILE_TOKENS: Final = 1_200  # of a file that a model sees, such as a picture: only its provider knows its tokens
DOCUMENT_TOKENS: Final = 3_000  # of the first part of a document, of which a model reads at most 12,000 characters
MESSAGE_TOKENS: Final = 4  # of the markup around a message, a call or a result


@cache
def _wide() -> re.Pattern[str]:
    """Return the pattern of wide letters, of which each is about a token; compiling takes 8 ms."""
    return re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


def estimate_tokens(text: str) -> int:
    """The estimated tokens of a text."""
    if text.isascii():
        return -(-len(text) // BYTES_PER_TOKEN)
    wide = _wide().findall(text)
    size = len(text.encode("utf-8", "surrogatepass")) - sum(3 if char < "\U00010000" else 4 for char in wide)
    return len(wide) - (-size // BYTES_PER_TOKEN)


def estimate_output(output: Output | None) -> int:
    """The estimated tokens of a result."""
    if output is None:
        return 2 * MESSAGE_TOKENS
    return estimate_tokens(output.text) + MESSAGE_TOKENS + FILE_TOKENS * len(output.attachments)


def estimate_part(part: Part) -> int:
    """The estimated tokens of a part in a request, the result of a call included."""
    match part:
        case ToolPart():
            if part.parent:  # no model sees a nested call
                return 0
            return estimate_written(part) + estimate_output(part.output)
        case FilePart():
            return DOCUMENT_TOKENS if part.text else FILE_TOKENS
        case SummaryPart():
            return estimate_summary(part)
        case _:
            return estimate_written(part)


def estimate_written(part: Part) -> int:
    """The estimated tokens of what was written: of a call, without its result."""
    match part:
        case TextPart() | ReasoningPart() | NoticePart():
            return estimate_tokens(part.text)
        case ProviderToolPart():  # its issuer reads the payload, every other model the text
            return estimate_tokens(part.opaque.data if part.opaque is not None else part.title + part.text)
        case ContextPart():
            return estimate_tokens(part.kind + part.title + part.source + part.text) + 4 * MESSAGE_TOKENS
        case ToolPart():
            return 0 if part.parent else estimate_tokens(part.name + part.arguments) + MESSAGE_TOKENS
        case _:
            return 0


def estimate_summary(part: SummaryPart) -> int:
    """The estimated tokens of a summary as a request has it."""
    quotes = sum(estimate_tokens(quote.text) + MESSAGE_TOKENS for quote in part.quotes)
    artifacts = sum(estimate_tokens(line) + 1 for line in part.artifacts)
    return estimate_tokens(part.text) + quotes + artifacts + 10 * MESSAGE_TOKENS


def estimate_message(message: Message, start: int = 0) -> int:
    """The estimated tokens of a message, from part number `start` on; a hidden or refused one has none."""
    if message.hidden or message.refused:
        return 0
    return estimate_parts(message.parts[start:]) + MESSAGE_TOKENS


def estimate_parts(parts: Iterable[Part]) -> int:
    """The estimated tokens of some parts."""
    return sum(estimate_part(part) for part in parts)
