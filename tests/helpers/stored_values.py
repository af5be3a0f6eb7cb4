"""Stored values as somebody who has the database can read them: what is compressed, as its text as well."""

from __future__ import annotations

from everturn.stores.sql.body_compression import decompress_message
from everturn.stores.sql.event_packs import unpack_body


def readable(value: object) -> bytes:
    """Return the bytes of a value, and behind them the text that is compressed in it."""
    if not isinstance(value, bytes):
        return str(value).encode()
    return b"\n".join([value, *unpack_body(value), decompress_message(value)])
