"""How much of an answer is taken in. What is too big is an error, never memory."""

from __future__ import annotations

from msgspec import Struct

from everturn.errors import ModelError

MIB = 2**20


class Limits(Struct, frozen=True):
    """How long a line, an event and a whole stream may be, in bytes. Images inside a stream need more."""

    line: int = MIB
    event: int = 4 * MIB
    stream: int = 32 * MIB


WHOLE = Limits(line=32 * MIB, event=32 * MIB, stream=64 * MIB)
"""For formats in which a picture, or a call, comes whole and in one line."""


def too_long(what: str, limit: int) -> ModelError:
    """Something was longer than it may be."""
    return ModelError(
        f"the server sent a {what} of more than {limit:,} bytes; raise `Limits.{what}` if that is to be expected",
        kind="limit",
    )
