"""Decoding of requests: JSON bodies, path ids and query parameters become typed, bounded and clean values.

JSON is at most 64 levels deep and has neither NaN nor infinity; lone surrogates become U+FFFD and NUL is removed. Of
duplicate names in an object the last one counts.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from everturn.core.canonical_json import replace_surrogates
from everturn.server.choices import describe_choices
from everturn.server.errors import RequestError
from everturn.server.route import Param

DEPTH: Final = 64
CONTAINERS: Final = 200_000
"""Lists and objects in one body: an empty list is two bytes on the wire, and fifty times that in memory."""

ITEMS: Final = 200_000
"""Values in all of these together, because each is visited."""

SURROGATE_REPAIR_LIMIT: Final = 1024 * 1024
"""Bytes of a body in which lone surrogates are replaced; in a longer one they are an error."""

ID_LIMIT: Final = 200
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|u[dD][c-fC-F][0-9a-fA-F]{2}|.)", re.DOTALL
)
_AT = re.compile(r"^(.*) - at (?:key in )?`(.*)`$", re.DOTALL)


def read_body(data: bytes, kind: Any) -> Any:
    """Decode a JSON body into a value of the type `kind`.

    Raises:
        RequestError: `bad_json` if it is not JSON; `unfit` if it is no such value (`where` is the path of the field).
    """
    try:
        value = read_json(data)
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text, where = _split_error(str(error))
        raise RequestError("unfit", f"{text}{describe_choices(kind, where, text)}", where) from None


def read_json(data: bytes) -> Any:
    """Decode JSON into a value with clean texts.

    Raises:
        RequestError: `bad_json`.
    """
    if data.count(b"[") + data.count(b"{") > CONTAINERS:
        raise RequestError("bad_json", f"this JSON has more than {CONTAINERS} lists and objects")
    try:
        return _Cleaner().clean(_decode_json(data), DEPTH)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RequestError("bad_json", f"this is not JSON: {error}") from None
    except RecursionError:
        raise RequestError("bad_json", f"this JSON is nested more than {DEPTH} levels deep") from None


def _decode_json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        if len(data) > SURROGATE_REPAIR_LIMIT or not (b"\\ud" in data or b"\\uD" in data):
            raise
        return msgspec.json.decode(_ESCAPE.sub(_replace_lone_surrogate, data))


def _replace_lone_surrogate(escape: re.Match[bytes]) -> bytes:
    """Replace a lone surrogate escape by U+FFFD. Pairs and all other escapes have another length and stay."""
    return b"\\ufffd" if len(escape.group()) == len(rb"\udXXX") else escape.group()


def clean_text(text: str) -> str:
    """Remove NUL and lone surrogates from a text: stores and other programs fail on both."""
    return replace_surrogates(text.replace("\0", ""))


class _Cleaner:
    """Cleans a value recursively and counts its items."""

    def __init__(self) -> None:
        self._items_left = ITEMS

    def clean(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return clean_text(value)
        if isinstance(value, dict | list):
            if depth == 0:
                raise RecursionError
            self._items_left -= len(cast("list[Any]", value))
            if self._items_left < 0:
                raise RequestError("bad_json", f"this JSON has more than {ITEMS} values")
            if isinstance(value, list):
                return [self.clean(item, depth - 1) for item in cast("list[Any]", value)]
            items = cast("dict[str, Any]", value).items()
            return {clean_text(key): self.clean(item, depth - 1) for key, item in items}
        return value


def _split_error(text: str) -> tuple[str, str]:
    match = _AT.match(text)
    return (match[1], match[2]) if match else (text, "$")


def decode_path_id(raw: str) -> str | None:
    """Decode a path segment into an id; None if it cannot be one."""
    try:
        text = unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return None
    return text if 0 < len(text) <= ID_LIMIT and text.isprintable() else None


def read_query(raw: bytes, params: tuple[Param, ...], is_strict: bool) -> dict[str, Any]:
    """Decode a query string by the route's parameters.

    Raises:
        RequestError: `unfit` if a parameter is missing, unknown, repeated, or not of its type.
    """
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=50)
    except (ValueError, UnicodeDecodeError):
        raise RequestError("bad_request", "the query cannot be read") from None
    known = {param.name: param for param in params}
    values: dict[str, Any] = {}
    for name, text in pairs:
        if name in values:
            raise RequestError("unfit", "a parameter is given twice", name[:ID_LIMIT])
        if name in known:
            values[name] = _read_param(known[name], clean_text(text))
        elif is_strict:
            raise RequestError("unfit", f"there is no such parameter; there are: {', '.join(known) or 'none'}", "query")
    for param in params:
        if param.is_needed and param.name not in values:
            raise RequestError("unfit", "this parameter is required", param.name)
    return values


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
    bounds = {constraint: param.schema[name] for name, constraint in _BOUNDS.items() if name in param.schema}
    try:
        value = msgspec.convert(text, Annotated[kind, msgspec.Meta(**bounds)] if bounds else kind, strict=False)
    except msgspec.ValidationError as error:
        raise RequestError("unfit", _split_error(str(error))[0], param.name) from None
    if "enum" in param.schema and value not in param.schema["enum"]:
        raise RequestError("unfit", f"this must be one of {', '.join(map(str, param.schema['enum']))}", param.name)
    if isinstance(value, float) and not -1e300 < value < 1e300:
        raise RequestError("unfit", "this number is out of range", param.name)
    return value
