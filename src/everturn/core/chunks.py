"""What a model streams: small neutral chunks, in the batches in which they arrived.

This is the hot path. A chunk is made once per token, so it holds two or three fields and no behaviour.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from everturn.core.parts import Finish, Opaque, Usage

MOST_CALLS = 128  # that one step may run: more take the event loop too long at once
TOO_MANY = f"at most {MOST_CALLS} calls in one step; this one was not run. Make the others in the next"


class TextChunk(Struct, frozen=True, gc=False):
    """A piece of text."""

    text: str


class ReasoningChunk(Struct, frozen=True, gc=False):
    """A piece of reasoning."""

    text: str


class CallChunk(Struct, frozen=True, gc=False):
    """A piece of a call. The first one of a slot brings the name; the arguments arrive in any number of pieces."""

    slot: int
    arguments: str = ""
    name: str = ""
    id: str = ""


class OpaqueChunk(Struct, frozen=True, gc=False):
    """A sealed payload, of the part streamed last or, said outright, of reasoning, of text, or of the call in `slot`.

    Where the last part is of another kind or sealed already, the payload is a part that shows nothing of itself.
    """

    opaque: Opaque
    part: Literal["last", "reasoning", "text", "call"] = "last"
    slot: int = 0


class FileChunk(Struct, frozen=True, gc=False):
    """A file the model made, whole: it is kept as a blob, and the part that shows it holds no bytes."""

    data: bytes
    media_type: str
    name: str = ""


class UsageChunk(Struct, frozen=True, gc=False):
    """Tokens so far; the last one wins, as providers send running totals."""

    usage: Usage


class FinishChunk(Struct, frozen=True, gc=False):
    """The stream ended well. One that ends without it was cut off."""

    reason: Finish
    raw: str = ""


Chunk = TextChunk | ReasoningChunk | CallChunk | FileChunk | OpaqueChunk | UsageChunk | FinishChunk


def is_beyond(call: str) -> bool:
    """Whether a call is one too many for its step. Its id, which we made when it was streamed, ends in its number."""
    number = call.rpartition("-")[2]
    return number.isdecimal() and int(number) > MOST_CALLS
