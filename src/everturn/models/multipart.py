"""Multipart form data: encodes fields and files. The same input gives the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from msgspec import Struct


class MultipartFile(Struct, frozen=True):
    """A file in a form."""

    field: str
    filename: str
    media_type: str
    data: bytes


def encode(fields: Sequence[tuple[str, str]], files: Sequence[MultipartFile]) -> tuple[bytes, str]:
    """Return the body and its content type."""
    parts = [
        (f'Content-Disposition: form-data; name="{_plain(name)}"\r\n', value.encode("utf-8", "replace"))
        for name, value in fields
    ]
    for file in files:
        head = f'Content-Disposition: form-data; name="{_plain(file.field)}"; filename="{_plain(file.filename)}"\r\n'
        parts.append((f"{head}Content-Type: {_plain(file.media_type)}\r\n", file.data))
    boundary = _boundary([data for _, data in parts])
    body = b"".join(
        b"--%s\r\n%s\r\n%s\r\n" % (boundary.encode(), head.encode("utf-8", "replace"), data) for head, data in parts
    )
    return body + b"--%s--\r\n" % boundary.encode(), f"multipart/form-data; boundary={boundary}"


def _boundary(contents: Sequence[bytes]) -> str:
    """Return a boundary that occurs in none of the contents; derived from them, so that it is reproducible."""
    boundary = hashlib.sha256(b"\0".join(contents)).hexdigest()[:32]
    while any(boundary.encode() in data for data in contents):
        boundary = hashlib.sha256(boundary.encode()).hexdigest()[:32]
    return boundary


def _plain(text: str) -> str:
    """Return a name that cannot end its quotes or its line."""
    return "".join(char if char.isprintable() and char not in '"\\' else "_" for char in text)
