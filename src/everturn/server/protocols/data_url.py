"""Data URLs: files that a client sends inside of a message."""

from __future__ import annotations

import base64
from typing import NamedTuple
from urllib.parse import unquote_to_bytes


class DataUrl(NamedTuple):
    """The media type and the content of a data URL."""

    media_type: str
    content: bytes


def decode_data_url(url: str) -> DataUrl | None:
    """Decode a data URL; None if it is another URL, which is never fetched.

    Raises:
        ValueError: its content is not base64, although it says so.
    """
    head, comma, data = url.partition(",")
    if not head.startswith("data:") or not comma:
        return None
    media_type, *marks = head.removeprefix("data:").split(";")
    content = base64.b64decode(data, validate=True) if "base64" in marks else unquote_to_bytes(data)
    return DataUrl(media_type or "application/octet-stream", content)
