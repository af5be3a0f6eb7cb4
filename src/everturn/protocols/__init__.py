"""Native events → other people's protocols. Each is a pure encoder: what a reader of a turn is shown goes in, bytes come out.

Nothing of a conversation comes in this way: an encoder forgets everything but what it needs to go on with its stream.
"""

from __future__ import annotations

from typing import Protocol

from everturn.core.deltas import Shown

__all__ = ["Encoder"]


class Encoder(Protocol):
    """One stream in somebody's protocol."""

    is_done: bool
    """Nothing more is to be said in this stream, though the turn may go on: it waits for an answer, say."""

    def begin(self) -> bytes:
        """What comes before everything."""
        ...

    def feed(self, shown: Shown) -> bytes:
        """What a reader is shown next, in the words of the protocol; often nothing."""
        ...

    def end(self, why: str) -> bytes:
        """What comes last: "over", or why it is cut short ("drain", "slow", "revoked", "lost")."""
        ...
