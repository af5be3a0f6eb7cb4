"""Our neutral request → the body a vendor's wire format wants; the events of its answer → our neutral chunks.

No I/O: bytes in, chunks out. One pair of files per format, `*_request.py` and `*_stream.py`; what they share:

    tidy.py      a history that no vendor can refuse: every call beside its one result
    names.py     names of tools and ids of calls as the vendor wants them
    schemas.py   schemas as the vendor wants them
    files.py     what becomes of a file the model can, or cannot, read
    think.py     reasoning in <think> tags
    slots.py     which call a piece belongs to, when the vendor does not say
    loose.py     JSON as servers really write it
    written.py   what was written of a conversation in an earlier request of the turn
    made.py      what was made of a tool once, and need not be again
    params.py    the few parameters that mean the same everywhere
    words.py     what we say to a model where a format leaves no other way
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from everturn.core.chunks import Chunk


class Built(Struct, frozen=True):
    """A request as it goes out, and the names of tools that had to change on the way."""

    path: str
    body: bytes
    names: dict[str, str]  # as the vendor knows it -> ours


class Decoder(Protocol):
    """Reads one answer."""

    is_done: bool
    """The answer has said that it is complete; nothing more need be read."""

    def feed(self, data: bytes, out: list[Chunk]) -> None:
        """Read one event.

        Raises:
            ModelError: the provider reports an error, or what it sent makes no sense.
        """
        ...

    def end(self, out: list[Chunk]) -> None:
        """The stream is over.

        Raises:
            ModelError: it was cut off; kind `truncated`.
        """
        ...
