"""Stream limits: how much of a response is read. A response that is too large is an error, so memory stays bounded."""

from __future__ import annotations

from msgspec import Struct

from everturn.errors import ModelError

MIB = 2**20


class StreamLimits(Struct, frozen=True):
    """How long a line, an event and a whole stream may be, in bytes. Images inside a stream need more."""

    line: int = MIB
    event: int = 4 * MIB
    stream: int = 32 * MIB


WHOLE_LINE_LIMITS = StreamLimits(line=32 * MIB, event=32 * MIB, stream=64 * MIB)
"""For formats that send an image, or a call, whole and in one line."""


def too_long_error(field: str, limit: int) -> ModelError:
    """The error for a line, event or stream that is too long."""
    return ModelError(
        f"the server sent a {field} of more than {limit:,} bytes; raise `Limits.{field}` if that is to be expected",
        kind="limit",
    )
