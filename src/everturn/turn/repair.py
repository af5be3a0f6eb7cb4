"""The arguments a model wrote → a JSON object, mended only where there is one way to read them.

Strict JSON is read at once and costs nothing more. Anything else is written anew as strict JSON (`rewriting.py`) and then
read by the same parser. Whatever could mean two things is refused in words a model can act on: arguments that were
cut off are never completed, and never taken for none.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from msgspec import Struct

from everturn.core.canonical import JsonObject, canonical, parse_object
from everturn.core.parts import Finish
from everturn.errors import BadArguments
from everturn.turn.rewriting import Rewriter, refuse

LONGEST = 8192  # characters; what is longer and broken is not even looked at
# In a text this short, looking for repeated keys takes about a microsecond; longer strict ones are not looked through.
LONGEST_CHECKED = 128

# A stream that ended like this may have ended anywhere, so nothing that came of it is mended.
CUT: dict[Finish, str] = {
    "length": "the answer was cut off at its length limit",
    "content_filter": "the provider filtered the answer",
    "refusal": "the model refused to answer",
    "cancelled": "the answer was cancelled",
    "error": "the stream broke off",
}


class Arguments(Struct, frozen=True):
    """What a call is given, and what had to be mended to read it, in words for people."""

    value: JsonObject
    repaired: str = ""


async def read_arguments(text: str, finish: Finish) -> Arguments:
    """Read the arguments of a call. None at all are an empty object.

    Raises:
        BadArguments: they are not one JSON object, and there is no one way to make them one.
    """
    value = parse_object(text)
    if value is not None:
        _check_keys(text, value)
        return Arguments(value)
    if finish in CUT:
        refuse(CUT[finish])
    if not text or text.isspace():
        return Arguments({})
    if len(text) > LONGEST:
        refuse("there is a mistake in them, and they are too long to look for it")
    return await asyncio.to_thread(mend, text)


def repair(text: str) -> Arguments | None:
    """What `mend` makes of a text; None where it refuses."""
    try:
        return mend(text)
    except BadArguments:
        return None


def mend(text: str) -> Arguments:
    """Read a text that may be broken. It takes time in proportion to the text, and looks at no long one.

    Raises:
        BadArguments: it says which mistake it is that cannot be mended.
    """
    value = parse_object(text)
    if value is not None:
        if repeated := _repeated_key(text):
            refuse(repeated)
        return Arguments(value)
    if len(text) > LONGEST:
        refuse("there is a mistake in them, and they are too long to look for it")
    notes: dict[str, None] = {}
    body = _unfence(_trim(text, notes), notes)
    if body[:1] == '"':
        body = _trim(_decode(body, notes), notes)
    return _finish(Rewriter(body, notes).rewrite(), notes)


def _finish(strict: str, notes: dict[str, None]) -> Arguments:
    value = parse_object(strict)
    try:
        # What cannot be written down again cannot be shown to a person, hashed or started.
        is_whole = value is not None and parse_object(canonical(value)) == value
    except (OverflowError, ValueError):
        is_whole = False
    if value is None or not is_whole:
        # All else was seen to: only a number, or a pair of escapes, can still be wrong.
        is_half = re.search(r"\\u[dD][89a-fA-F]", strict) is not None
        refuse("a \\u escape in them is half of a character" if is_half else "a number in them is too large")
    if repeated := _repeated_key(strict):
        refuse(repeated)
    return Arguments(value, ", ".join(notes))


# Keys that are there twice ---------------------------------------------------------------------------------------


def _check_keys(text: str, value: JsonObject) -> None:
    """Refuse a key that is there twice, where that is cheap to see: JSON parsers keep the last one in silence."""
    if len(text) > LONGEST_CHECKED:
        return
    colons = text.count(":")
    if colons == len(value):  # one for each key, so there are no others
        return
    try:
        # A member that was dropped took its colon along. (A `\u003a` has none, and might make up for it.)
        if canonical(value).count(":") == colons and "\\u003" not in text:
            return
    except (OverflowError, ValueError):
        pass  # it cannot be written down; whoever writes it down says so
    if repeated := _repeated_key(text):
        refuse(repeated)


def _repeated_key(text: str) -> str:
    """Which key of an object is there twice, as a reason; empty if none is."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                found.append(key)
            seen.add(key)

    try:
        json.loads(text, object_pairs_hook=look, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return ""
    return f"the key {found[0][:60]!r} is there twice in one object" if found else ""


# What is around the object ---------------------------------------------------------------------------------------

_AROUND = " \t\r\n\f\v\u00a0\ufeff"
_TAG = re.compile(r"(?:json[5c]?\b)?", re.IGNORECASE)


def _trim(text: str, notes: dict[str, None]) -> str:
    if text.strip(" \t\r\n") != (trimmed := text.strip(_AROUND)):
        notes["odd spaces or a byte order mark"] = None
    return trimmed


def _unfence(text: str, notes: dict[str, None]) -> str:
    """Take one code fence off, if it is around the whole."""
    if not text.startswith("```"):
        return text
    if len(text) < 6 or not text.endswith("```"):
        refuse("they begin with a code fence that does not end with them; send only the object")
    notes["code fence"] = None
    body = text[3:-3]
    tag = _TAG.match(body)
    return body[tag.end() if tag else 0 :].strip(_AROUND)


def _decode(text: str, notes: dict[str, None]) -> str:
    """Read an object that was encoded once more, as a string; once, and no more often."""
    reader = Rewriter(text, notes)
    kind, piece = reader.next()
    if kind != "string" or reader.at < len(text):
        refuse("they begin with a string and not with an object")
    inner = parse_object(f'{{"":{reader.string(piece)}}}')
    if inner is None:
        refuse("a \\u escape in them is half of a character")
    if not inner[""].lstrip(_AROUND).startswith("{"):
        refuse("they are a string and not an object")
    notes["encoded twice"] = None
    return inner[""]
