"""Stream chunks of a model: small provider-neutral pieces, in the batches in which they arrived.

This is the hot path. A chunk is made once per token, so it holds two or three fields and no behaviour.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from everturn.core.parts import Citation, Finish, Opaque, ProviderToolPart, Usage

MAX_CALLS_PER_STEP = 128  # calls that one step may run: more would block the event loop for too long
TOO_MANY_CALLS = f"at most {MAX_CALLS_PER_STEP} calls in one step; this one was not run. Make the others in the next"


class TextChunk(Struct, frozen=True, gc=False):
    """A piece of text."""

    text: str


class ReasoningChunk(Struct, frozen=True, gc=False):
    """A piece of reasoning."""

    text: str


class CallChunk(Struct, frozen=True, gc=False):
    """A piece of a call. The first one of a slot has the name; the arguments arrive in any number of pieces."""

    slot: int
    arguments: str = ""
    name: str = ""
    id: str = ""


class OpaqueChunk(Struct, frozen=True, gc=False):
    """A provider's opaque payload for the last streamed part or, with `part`, for reasoning, text or the call in
    `slot`.

    If the last part is of another kind or has a payload already, the payload becomes an empty part of its own.
    """

    opaque: Opaque
    part: Literal["last", "reasoning", "text", "call"] = "last"
    slot: int = 0


class TextEndChunk(Struct, frozen=True, gc=False):
    """The end of a text part: text that follows begins another, as the provider has it."""


class CitationChunk(Struct, frozen=True, gc=False):
    """A source of the text part that was streamed last; `in_answer`, its range counts in all text of the answer."""

    citation: Citation
    in_answer: bool = False


class ProviderToolChunk(Struct, frozen=True, gc=False):
    """A whole call or result of a tool that the provider runs; `is_started`, it only began: it is shown, and no part yet."""

    part: ProviderToolPart
    is_started: bool = False


class FileChunk(Struct, frozen=True, gc=False):
    """A whole file that the model generated: it is stored as a blob, and its part holds no bytes."""

    data: bytes
    media_type: str
    name: str = ""


class UsageChunk(Struct, frozen=True, gc=False):
    """Token usage so far; the last chunk wins, as providers send running totals."""

    usage: Usage


class FinishChunk(Struct, frozen=True, gc=False):
    """The stream completed. A stream that ends without this chunk was cut off."""

    reason: Finish
    raw: str = ""


class RetryChunk(Struct, frozen=True, gc=False):
    """The request failed before any content arrived, and is about to be sent again.

    A wrapper such as `RetryModel` yields it before it waits. The turn writes it as `RequestRetried`.
    """

    attempt: int  # the number of the attempt that follows
    attempts: int  # how many there are at most
    seconds: float  # how long it waits before it
    kind: str  # of the error
    reason: str
    model: str = ""  # another model that is asked instead; "": the same one


class WaitChunk(Struct, frozen=True, gc=False):
    """The request is not sent yet: it waits for a rate limit. Readers are shown it, and it is not written.

    `reason` is `rate_limit` or `breaker` (the provider failed several times and is left alone for a while); "" ends it.
    """

    seconds: float  # the estimated wait from now on
    reason: Literal["rate_limit", "breaker", ""] = "rate_limit"


Chunk = (
    TextChunk
    | ReasoningChunk
    | CallChunk
    | FileChunk
    | OpaqueChunk
    | TextEndChunk
    | CitationChunk
    | ProviderToolChunk
    | UsageChunk
    | RetryChunk
    | WaitChunk
    | FinishChunk
)


def exceeds_call_limit(call: str) -> bool:
    """Whether a call exceeds `MAX_CALLS_PER_STEP` in its step.

    The runtime makes call ids while streaming; they end in the number.
    """
    number = call.rpartition("-")[2]
    return number.isdecimal() and int(number) > MAX_CALLS_PER_STEP
