"""Call index: lists the calls that a compaction replaced, so that one of them is found without reading the branch.

Each summary has a page of it, a blob: the calls above the summary that no earlier page lists, and the name of the page
before. The pages of a branch are thus a list of all calls above its last summary, and of no other branch. The log stays
the truth: a branch whose page is missing or cannot be read is read from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from everturn.core.messages import Message
from everturn.core.parts import LATE_NOTICE_PREFIX, NoticePart, ToolPart


class IndexedCall(Struct, frozen=True, array_like=True, gc=False):
    """A call above a summary: its message has everything else about it."""

    call: str
    message: str
    name: str
    has_private: bool = False  # its result has private values


class CallIndexPage(Struct, frozen=True):
    """The calls that one summary replaced, oldest first."""

    earlier: str = ""  # the blob of the page before; "": there is none
    calls: tuple[IndexedCall, ...] = ()
    reported: tuple[str, ...] = ()  # calls whose late result a notice reported: of this page and all before it


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(CallIndexPage).decode


def make_page(messages: Iterable[Message], earlier: str = "", reported: Iterable[str] = ()) -> CallIndexPage:
    """The page of messages that a summary replaces; `reported` is that of the page before."""
    calls: list[IndexedCall] = []
    reported_ids = dict.fromkeys(reported)
    for message in messages:
        for part in message.parts:
            if type(part) is ToolPart:
                outputs = (part.output, part.late)
                has_private = any(output is not None and bool(output.private) for output in outputs)
                calls.append(IndexedCall(part.call, message.id, part.name, has_private))
            elif type(part) is NoticePart and part.kind.startswith(LATE_NOTICE_PREFIX):
                reported_ids[part.kind[len(LATE_NOTICE_PREFIX) :]] = None
    return CallIndexPage(earlier, tuple(calls), tuple(reported_ids))


def dump_page(page: CallIndexPage) -> bytes:
    """Write a page."""
    return _encode(page)


def load_page(data: bytes) -> CallIndexPage | None:
    """Read a page; None if these bytes are none."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
