"""Multipart forms: reads `multipart/form-data` strictly. Knows no endpoint."""

from __future__ import annotations

import re
from itertools import pairwise

from msgspec import Struct

from everturn.testing.provider.faults import Refused

_BOUNDARY = re.compile(r"""multipart/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]+)"|([^\s;"]+))""", re.IGNORECASE)
_OPTION = re.compile(r""";\s*([a-zA-Z]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))""")
_ESCAPES = {"%22": '"', "%0D": "\r", "%0A": "\n", '\\"': '"', "\\\\": "\\"}  # as browsers write them, and as others do


class Field(Struct, frozen=True):
    """A field of a form. A field with a filename is a file."""

    name: str
    data: bytes
    filename: str | None = None
    content_type: str = ""


def read_form(content_type: str, raw: bytes) -> list[Field]:
    """The fields of a form, in order.

    Raises:
        Refused: this is not a form, or an incomplete one.
    """
    match = _BOUNDARY.match(content_type)
    if match is None:
        raise _unreadable()
    boundary = re.escape((match[1] or match[2]).encode("latin-1"))
    # A whole line, so that bytes of a file which only begin like a boundary are not taken for one.
    lines = list(re.finditer(rb"(?:\A|\r\n)--" + boundary + rb"(--)?[ \t]*(?=\r\n|\Z)", raw))
    if len(lines) < 2 or lines[0].start() or lines[-1][1] is None or any(line[1] for line in lines[:-1]):
        raise _unreadable()
    return [_field(raw[line.end() + 2 : after.start()]) for line, after in pairwise(lines)]


def _field(part: bytes) -> Field:
    head, blank, data = part.partition(b"\r\n\r\n")
    if not blank:
        raise _unreadable()
    headers: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, colon, value = line.partition(":")
        if not colon:
            raise _unreadable()
        headers[name.strip().lower()] = value.strip()
    disposition = headers.get("content-disposition", "")
    options = {key.lower(): _plain(quoted or bare) for key, quoted, bare in _OPTION.findall(disposition)}
    if not disposition.startswith("form-data") or not options.get("name"):
        raise _unreadable()
    return Field(options["name"], data, options.get("filename"), headers.get("content-type", ""))


def _plain(text: str) -> str:
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text


def _unreadable() -> Refused:
    return Refused("Could not parse multipart form")
