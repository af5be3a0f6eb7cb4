"""Lenient JSON decoding of server events: tries once more what the strict decoder refused, or raises a typed error.

The strict decoder is fast and nearly always sufficient. Servers also send NaN in unused fields, lone surrogates,
numbers in quotes, and bytes that are not UTF-8.
"""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

from everturn.core.canonical_json import replace_surrogates, replace_surrogates_in
from everturn.errors import ModelError

T = TypeVar("T")

EXCERPT = 200  # characters of undecodable data in the error
DECODE_ERRORS = (ValueError, RecursionError)  # what msgspec and json raise for any bytes


def decode_leniently(data: bytes, kind: type[T]) -> T:
    """Decode JSON that the strict decoder refused.

    Raises:
        ModelError: the data cannot be decoded; kind `response`.
    """
    try:
        return msgspec.convert(replace_surrogates_in(json.loads(data.decode("utf-8", "replace"))), kind, strict=False)
    except (*DECODE_ERRORS, OverflowError, TypeError) as error:
        excerpt = replace_surrogates(data[:EXCERPT].decode("utf-8", "replace"))
        raise ModelError(
            f"the response is not that of a model: {excerpt!r} ({error}); check the base URL",
            kind="response",
        ) from None


def truncated_error(why: str = "it ended without saying that it was finished") -> ModelError:
    """Return the error for a stream that ended early, which is never taken for a complete answer."""
    return ModelError(f"the model's answer was cut off: {why}", kind="truncated", retryable=True)
