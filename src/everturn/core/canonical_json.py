"""Canonical JSON: one text for each value, so that hashes, comparisons and displays use the same bytes."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import Any, cast

import msgspec

_encoder = msgspec.json.Encoder(order="sorted")

JsonObject = dict[str, Any]


def encode_canonical(value: object) -> str:
    """Write a JSON value with sorted keys and no spaces, so that equal values are equal text."""
    return _encoder.encode(value).decode()


def hash_values(*values: object) -> str:
    """Hash a list of JSON values. The list is encoded as a whole, so no two lists share an encoding."""
    return hashlib.sha256(_encoder.encode(values)).hexdigest()


def parse_object(text: str) -> JsonObject | None:
    """Read a JSON object; None when the text is anything else (broken, truncated, a list, a bare value)."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return cast(JsonObject, value) if isinstance(value, dict) else None


def parse_json(text: str) -> Any:
    """Read a JSON value.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError(f"this is not JSON: {error}") from None


def is_same_value(first: str, second: str) -> bool:
    """Whether two JSON texts have the same value, ignoring key order, whitespace and escapes.

    Numbers are compared to the last digit. A text with a duplicate key equals no other: parsers differ in which of the
    two values they take.
    """
    if first == second or _is_same_canonical(first, second):
        return True
    try:
        return _EXACT.decode(first) == _EXACT.decode(second)
    except (ValueError, ArithmeticError, RecursionError):
        return False


def _is_same_canonical(first: str, second: str) -> bool:
    """Whether two texts without floats and duplicate keys have the same canonical form: the common case, decided quickly.

    False says nothing: `is_same_value` then compares exactly.
    """
    try:
        canonical = _encoder.encode(_integers_only.decode(first))
        if canonical != _encoder.encode(_integers_only.decode(second)):
            return False
    except (ValueError, RecursionError):  # msgspec's errors, and those for surrogates, are ValueErrors
        return False
    # A dropped duplicate would have taken its colon along; a `\u003a` could make up for it.
    colons = canonical.count(b":")
    return first.count(":") == colons == second.count(":") and "\\u003" not in first and "\\u003" not in second


def _refuse_float(text: str) -> Any:
    raise ValueError(f"{text} may lose digits")


_integers_only = msgspec.json.Decoder(float_hook=_refuse_float)


def _number(text: str) -> tuple[str, Decimal]:
    return ("number", Decimal(text))  # not the number itself: to Python, 1 is True


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name is there twice")
    return members


_EXACT = json.JSONDecoder(object_pairs_hook=_members, parse_int=_number, parse_float=_number, parse_constant=_not_json)


def replace_surrogates_in(value: Any) -> Any:
    """`clean` every text in a JSON value."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {
            replace_surrogates_in(key): replace_surrogates_in(item)
            for key, item in cast("dict[Any, Any]", value).items()
        }
    if isinstance(value, list | tuple):
        return [replace_surrogates_in(item) for item in cast("list[Any]", value)]
    return value


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates: they are legal in Python but illegal in UTF-8, so no store can encode them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
