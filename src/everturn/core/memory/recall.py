"""Recall: messages as a model reads them again, and search in them. Pure.

A compaction leaves messages out of requests; they stay in the log. What is recalled of a message is what a model could
read of it before: its text, its calls as the model wrote them, and the results that were not withheld, with placeholder
tokens in place of private values. A message has the marks of everything above it: an answer may repeat what it read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from everturn.core.memory.search_terms import query_terms, text_terms
from everturn.core.messages import Message
from everturn.core.parts import (
    FilePart,
    NoticePart,
    Output,
    ProviderToolPart,
    SummaryPart,
    TextPart,
    ToolPart,
    provider_tool_note,
)

EXCERPT_LENGTH = 400  # characters around the first term that was found
RECALL_TOOLS: Final = frozenset(("recall", "recall_sessions"))  # their results repeat what is searched
_WITHHELD = "withheld"


class RecalledMessage(Struct, frozen=True):
    """A message as a model recalls it."""

    message: str
    role: str
    text: str
    session: str = ""  # "": the present one
    untrusted: bool = False
    sensitive: bool = False


class ConversationRecall(Protocol):
    """What a running tool may read of earlier messages."""

    async def branch(self) -> Sequence[RecalledMessage]:
        """All messages of the present branch, oldest first, also those that a compaction has left out of requests."""
        ...

    async def search_sessions(self, query: str, limit: int) -> Sequence[RecalledMessage]:
        """Messages in the other sessions of the user who started the turn, newest first."""
        ...

    async def session_branch(self, session: str, message: str) -> Sequence[RecalledMessage]:
        """The branch of a session of that user that a message is on.

        Raises:
            ToolError: the user has no such session, or there is no such message in it.
        """
        ...


def recall_messages(
    messages: Iterable[Message], results: Mapping[str, Output] | None = None, session: str = ""
) -> list[RecalledMessage]:
    """The messages of a branch, oldest first. `results`: those that may be read, by call; None: all that ever could."""
    recalled: list[RecalledMessage] = []
    untrusted = sensitive = False
    for message in messages:
        for part in message.parts:
            if isinstance(part, NoticePart | SummaryPart):
                untrusted |= part.untrusted
                sensitive |= isinstance(part, SummaryPart) and part.private
            elif isinstance(part, ProviderToolPart):
                untrusted = True
            elif isinstance(part, ToolPart):
                for output in (part.output, part.late):
                    if output is not None:
                        untrusted |= output.untrusted
                        sensitive |= bool(output.private) or output.sensitive
        if message.hidden or message.refused:
            continue
        if text := _text(message, results):
            recalled.append(RecalledMessage(message.id, message.role, text, session, untrusted, sensitive))
    return recalled


def _text(message: Message, results: Mapping[str, Output] | None) -> str:
    pieces: list[str] = []
    for part in message.parts:
        match part:
            case TextPart() | NoticePart():
                pieces.append(part.text)
            case FilePart():
                pieces.append(f"[file {part.name or part.media_type}]")
            case ProviderToolPart():
                pieces.append(provider_tool_note(part))
            case ToolPart():
                pieces += _call(part, results)
            case _:
                pass
    return "\n".join(piece for piece in pieces if piece)


def _call(part: ToolPart, results: Mapping[str, Output] | None) -> Iterable[str]:
    if part.parent or part.name in RECALL_TOOLS:
        return
    yield f"[call {part.call}: {part.name} {part.arguments}]"
    output = results.get(part.call) if results is not None else _readable(part)
    if output is not None:
        yield f"[result of {part.call}: {output.text}]"


def _readable(part: ToolPart) -> Output | None:
    """The result of a call that ran and was not withheld."""
    if part.late is not None:
        return part.late if part.late.code != _WITHHELD else None
    output = part.output
    is_result = part.state == "completed" or (part.state == "failed" and output is not None and bool(output.origin))
    return output if is_result else None


def search_recalled(messages: Sequence[RecalledMessage], query: str, most: int) -> list[RecalledMessage]:
    """The messages with most of the words (or words with these prefixes): those with more words first, then the newest.

    Their texts are excerpts.
    """
    terms = query_terms(query)
    scored: list[tuple[int, int]] = []
    for at, message in enumerate(messages):
        text = " " + " ".join(text_terms(message.text))
        if score := sum(f" {term}" in text for term in terms):
            scored.append((score, at))
    best = sorted(scored, reverse=True)[:most]
    return [excerpt_of(messages[at], terms) for _, at in best]


def excerpt_of(message: RecalledMessage, terms: Collection[str]) -> RecalledMessage:
    """The message with the piece of its text in which a term is found first."""
    text, folded = message.text, message.text.casefold()
    if len(text) <= EXCERPT_LENGTH:
        return message
    found = [at for term in terms if (at := folded.find(term)) >= 0]
    start = max(0, min(found, default=0) - EXCERPT_LENGTH // 4)
    start = min(start, len(text) - EXCERPT_LENGTH)
    cut = text[start : start + EXCERPT_LENGTH]
    front, back = "…" if start else "", "…" if start + EXCERPT_LENGTH < len(text) else ""
    return RecalledMessage(
        message.message, message.role, f"{front}{cut}{back}", message.session, message.untrusted, message.sensitive
    )


def messages_around(messages: Sequence[RecalledMessage], message: str, around: int) -> list[RecalledMessage]:
    """A message and those before and after it; empty if it is not there."""
    at = next((at for at, other in enumerate(messages) if other.message == message), None)
    return [] if at is None else list(messages[max(0, at - around) : at + around + 1])
