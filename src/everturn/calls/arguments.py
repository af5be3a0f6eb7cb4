"""Arguments of a call: parses the JSON that a model wrote, and repairs it only if it is unambiguous.

Strict JSON is parsed at once and costs nothing more. Anything else is rewritten as strict JSON (`json_repair`) and then
parsed by the same parser. Ambiguous text is refused with an error that tells the model how to fix it: truncated
arguments are never completed, and never taken for none.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from msgspec import Struct

from everturn.calls.json_repair import JsonRepairer, refuse_arguments
from everturn.core.canonical_json import JsonObject, encode_canonical, parse_object
from everturn.core.parts import Finish
from everturn.errors import BadArguments

MAX_REPAIRED_LENGTH = 8192  # characters; longer invalid text is not repaired
# In a text this short, the check for duplicate keys takes about a microsecond; longer valid texts are not checked.
MAX_DUPLICATE_CHECK_LENGTH = 128

# A stream that ended like this may be truncated anywhere, so its arguments are not repaired.
TRUNCATED_FINISH_REASONS: dict[Finish, str] = {
    "length": "the answer was cut off at its length limit",
    "content_filter": "the provider filtered the answer",
    "refusal": "the model refused to answer",
    "cancelled": "the answer was cancelled",
    "error": "the stream broke off",
}


class ParsedArguments(Struct, frozen=True):
    """The parsed arguments of a call, and the repairs that were needed, as a text for people."""

    value: JsonObject
    repaired: str = ""


async def parse_arguments(text: str, finish: Finish) -> ParsedArguments:
    """Parse the arguments of a call. Empty text is an empty object.

    Raises:
        BadArguments: they are not a JSON object, and no unambiguous repair exists.
    """
    if (value := parse_strict_arguments(text)) is not None:
        return ParsedArguments(value)
    if finish in TRUNCATED_FINISH_REASONS:
        refuse_arguments(TRUNCATED_FINISH_REASONS[finish])
    if not text or text.isspace():
        return ParsedArguments({})
    if len(text) > MAX_REPAIRED_LENGTH:
        refuse_arguments("there is a mistake in them, and they are too long to look for it")
    return await asyncio.to_thread(repair_arguments, text)


def parse_strict_arguments(text: str) -> JsonObject | None:
    """The arguments if they are strict JSON, as nearly all are; None: `parse_arguments` repairs or refuses them.

    Raises:
        BadArguments: a key is there twice.
    """
    value = parse_object(text)
    if value is not None:
        _check_keys(text, value)
    return value


def try_repair_arguments(text: str) -> ParsedArguments | None:
    """The result of `repair_arguments`; None if it refuses."""
    try:
        return repair_arguments(text)
    except BadArguments:
        return None


def repair_arguments(text: str) -> ParsedArguments:
    """Parse a text, with repairs if needed, in linear time; long invalid texts are refused.

    Raises:
        BadArguments: the text cannot be repaired; the error names the mistake.
    """
    value = parse_object(text)
    if value is not None:
        if repeated := _repeated_key(text):
            refuse_arguments(repeated)
        return ParsedArguments(value)
    if len(text) > MAX_REPAIRED_LENGTH:
        refuse_arguments("there is a mistake in them, and they are too long to look for it")
    notes: dict[str, None] = {}
    body = _unfence(_trim(text, notes), notes)
    if body[:1] == '"':
        body = _trim(_decode(body, notes), notes)
    return _parse_rewritten(JsonRepairer(body, notes).rewrite(), notes)


def _parse_rewritten(strict: str, notes: dict[str, None]) -> ParsedArguments:
    value = parse_object(strict)
    try:
        # A value that cannot be encoded again cannot be shown to a person, hashed or started.
        is_whole = value is not None and parse_object(encode_canonical(value)) == value
    except (OverflowError, ValueError):
        is_whole = False
    if value is None or not is_whole:
        # Everything else was checked: only a number, or a pair of escapes, can still be wrong.
        is_half = re.search(r"\\u[dD][89a-fA-F]", strict) is not None
        refuse_arguments("a \\u escape in them is half of a character" if is_half else "a number in them is too large")
    if repeated := _repeated_key(strict):
        refuse_arguments(repeated)
    return ParsedArguments(value, ", ".join(notes))


# Duplicate keys --------------------------------------------------------------------------------------------------


def _check_keys(text: str, value: JsonObject) -> None:
    """Refuse a duplicate key, if the check is cheap: JSON parsers silently keep the last one."""
    if len(text) > MAX_DUPLICATE_CHECK_LENGTH:
        return
    colons = text.count(":")
    if colons == len(value):  # one for each key, so there are no duplicates
        return
    try:
        # A dropped member would have taken its colon along. (A `\u003a` could make up for it.)
        if encode_canonical(value).count(":") == colons and "\\u003" not in text:
            return
    except (OverflowError, ValueError):
        pass  # it cannot be encoded; the code that encodes it raises
    if repeated := _repeated_key(text):
        refuse_arguments(repeated)


def _repeated_key(text: str) -> str:
    """The reason that names a duplicate key; "" if there is none."""
    duplicates: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                duplicates.append(key)
            seen.add(key)

    try:
        json.loads(text, object_pairs_hook=look, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return ""
    return f"the key {duplicates[0][:60]!r} is there twice in one object" if duplicates else ""


# What is around the object ---------------------------------------------------------------------------------------

_AROUND = " \t\r\n\f\v\u00a0\ufeff"
_TAG = re.compile(r"(?:json[5c]?\b)?", re.IGNORECASE)


def _trim(text: str, notes: dict[str, None]) -> str:
    if text.strip(" \t\r\n") != (trimmed := text.strip(_AROUND)):
        notes["odd spaces or a byte order mark"] = None
    return trimmed


def _unfence(text: str, notes: dict[str, None]) -> str:
    """Remove one code fence around the whole text."""
    if not text.startswith("```"):
        return text
    if len(text) < 6 or not text.endswith("```"):
        refuse_arguments("they begin with a code fence that is not closed at their end; send only the object")
    notes["code fence"] = None
    body = text[3:-3]
    tag = _TAG.match(body)
    return body[tag.end() if tag else 0 :].strip(_AROUND)


def _decode(text: str, notes: dict[str, None]) -> str:
    """Decode an object that was encoded as a JSON string, one level only."""
    repairer = JsonRepairer(text, notes)
    kind, piece = repairer.next()
    if kind != "string" or repairer.at < len(text):
        refuse_arguments("they begin with a string and not with an object")
    inner = parse_object(f'{{"":{repairer.string(piece)}}}')
    if inner is None:
        refuse_arguments("a \\u escape in them is half of a character")
    if not inner[""].lstrip(_AROUND).startswith("{"):
        refuse_arguments("they are a string and not an object")
    notes["encoded twice"] = None
    return inner[""]
