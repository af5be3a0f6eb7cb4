"""JSON as servers really write it → what we need of it, or a typed error.

The strict decoder is fast and right nearly always. What it refuses is tried once more by hand: NaN in a field nobody
reads, half an emoji, a number in quotes, bytes that are no UTF-8.
"""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

from everturn.core.canonical import clean, clean_all
from everturn.errors import ModelError

T = TypeVar("T")

EXCERPT = 200  # characters of what could not be read
BROKEN = (ValueError, RecursionError)  # what msgspec and json raise, over any bytes


def loosely(data: bytes, kind: type[T]) -> T:
    """Read JSON that the strict decoder refused.

    Raises:
        ModelError: there is no sense in it; kind `response`.
    """
    try:
        return msgspec.convert(clean_all(json.loads(data.decode("utf-8", "replace"))), kind, strict=False)
    except (*BROKEN, OverflowError, TypeError) as error:
        seen = clean(data[:EXCERPT].decode("utf-8", "replace"))
        raise ModelError(
            f"the server sent something that no model sends: {seen!r} ({error}); is the base URL that of a model?",
            kind="response",
        ) from None


def cut_off(why: str = "it ended without saying that it was finished") -> ModelError:
    """A stream that broke off, which is never taken for an answer."""
    return ModelError(f"the model's answer was cut off: {why}", kind="truncated", retryable=True)
