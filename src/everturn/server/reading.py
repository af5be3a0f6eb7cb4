"""Bytes from outside → values that are safe to keep: typed, finite, of bounded depth, and text without poison.

JSON as we take it: at most 64 deep, no NaN and no infinity, lone surrogates become U+FFFD, NUL goes. Of a name that
comes twice in an object the last one counts.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from everturn.core.canonical import clean
from everturn.server.problems import Refusal
from everturn.server.routing import Param

DEPTH: Final = 64
CONTAINERS: Final = 200_000
"""Lists and objects in one body: an empty list is two bytes on the wire, and fifty times that here."""

ITEMS: Final = 200_000
"""Values in all of these together: each is looked at."""

MENDED: Final = 1024 * 1024
"""Bytes of a body in which surrogates on their own are mended; in a longer one they are a mistake."""

LONGEST_ID: Final = 200
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|u[dD][c-fC-F][0-9a-fA-F]{2}|.)", re.DOTALL
)
_AT = re.compile(r"^(.*) - at (?:key in )?`(.*)`$", re.DOTALL)


def read_body(data: bytes, kind: Any) -> Any:
    """JSON → a value of a type.

    Raises:
        Refusal: `bad_json`: it is none; `unfit`: it is no such value, and `where` says where.
    """
    try:
        value = read_json(data)
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text, where = _apart(str(error))
        raise Refusal("unfit", text, where) from None


def read_json(data: bytes) -> Any:
    """JSON → a clean value.

    Raises:
        Refusal: `bad_json`.
    """
    if data.count(b"[") + data.count(b"{") > CONTAINERS:
        raise Refusal("bad_json", f"this JSON has more than {CONTAINERS} lists and objects")
    try:
        return _Cleaner().clean(_decoded(data), DEPTH)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refusal("bad_json", f"this is not JSON: {error}") from None
    except RecursionError:
        raise Refusal("bad_json", f"this JSON is more than {DEPTH} deep") from None


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        if len(data) > MENDED or not (b"\\ud" in data or b"\\uD" in data):
            raise
        return msgspec.json.decode(_ESCAPE.sub(_mend, data))


def _mend(found: re.Match[bytes]) -> bytes:
    """An escape as it is: a pair, or any other one, is longer or shorter than a surrogate on its own."""
    return b"\\ufffd" if len(found.group()) == len(rb"\udXXX") else found.group()


def clean_text(text: str) -> str:
    """A text without NUL and lone surrogates: stores and other programs choke on both."""
    return clean(text.replace("\0", ""))


class _Cleaner:
    """Goes through a value, and counts."""

    def __init__(self) -> None:
        self._left = ITEMS

    def clean(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return clean_text(value)
        if isinstance(value, dict | list):
            if depth == 0:
                raise RecursionError
            self._left -= len(cast("list[Any]", value))
            if self._left < 0:
                raise Refusal("bad_json", f"this JSON has more than {ITEMS} values")
            if isinstance(value, list):
                return [self.clean(item, depth - 1) for item in cast("list[Any]", value)]
            items = cast("dict[str, Any]", value).items()
            return {clean_text(key): self.clean(item, depth - 1) for key, item in items}
        return value


def _apart(text: str) -> tuple[str, str]:
    found = _AT.match(text)
    return (found[1], found[2]) if found else (text, "$")


def read_segment(raw: str) -> str | None:
    """A piece of a path → the id that it is; None: nothing that we name can be this."""
    try:
        text = unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return None
    return text if 0 < len(text) <= LONGEST_ID and text.isprintable() else None


def read_query(raw: bytes, params: tuple[Param, ...], is_strict: bool) -> dict[str, Any]:
    """A query → what the route's parameters make of it.

    Raises:
        Refusal: `unfit`: a parameter is missing, unknown, given twice, or not of its type.
    """
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=50)
    except (ValueError, UnicodeDecodeError):
        raise Refusal("bad_request", "the query cannot be read") from None
    known = {param.name: param for param in params}
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name in given:
            raise Refusal("unfit", "a parameter is given twice", name[:LONGEST_ID])
        if name in known:
            given[name] = _read_param(known[name], clean_text(text))
        elif is_strict:
            raise Refusal("unfit", f"there is no such parameter; there are: {', '.join(known) or 'none'}", "query")
    for param in params:
        if param.is_needed and param.name not in given:
            raise Refusal("unfit", "this parameter is needed", param.name)
    return given


_TYPES: Final[dict[str, Any]] = {"integer": int, "number": float, "boolean": bool, "string": str}
_BOUNDS: Final = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "minLength": "min_length",
    "maxLength": "max_length",
    "pattern": "pattern",
}


def _read_param(param: Param, text: str) -> Any:
    from typing import Annotated

    kind = _TYPES[param.schema.get("type", "string")]
    bounds = {mine: param.schema[name] for name, mine in _BOUNDS.items() if name in param.schema}
    try:
        value = msgspec.convert(text, Annotated[kind, msgspec.Meta(**bounds)] if bounds else kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal("unfit", _apart(str(error))[0], param.name) from None
    if "enum" in param.schema and value not in param.schema["enum"]:
        raise Refusal("unfit", f"this is one of {', '.join(map(str, param.schema['enum']))}", param.name)
    if isinstance(value, float) and not -1e300 < value < 1e300:
        raise Refusal("unfit", "this is no number that can be meant", param.name)
    return value
