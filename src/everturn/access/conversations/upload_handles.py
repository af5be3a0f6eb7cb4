"""Upload handles: signed texts by which messages name uploaded files. No client can forge one, or use another tenant's. Pure.

Blobs are stored by hash and have no owner: a client that could name one by its hash could read any tenant's.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import Final

import msgspec

from everturn.core.canonical_json import encode_canonical, replace_surrogates
from everturn.core.parts import FilePart
from everturn.errors import UnknownFile

PREFIX: Final = "evf_"
NOT_A_FILE: Final = "this is no file"
LONGEST_NAME: Final = 240  # bytes; a handle has at most 1,000 characters
_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,80}")


def encode_handle(secret: bytes, tenant: str, part: FilePart) -> str:
    """The handle by which messages of this tenant may name a file."""
    data = encode_canonical(_fields(part)).encode()
    return f"{PREFIX}{_text(data)}.{_text(_mac(secret, tenant, part))}"


def decode_handle(secret: bytes, tenant: str, handle: str) -> FilePart:
    """The file of a handle.

    Raises:
        UnknownFile: this is no handle, or another tenant's.
    """
    try:
        data, mac = handle.removeprefix(PREFIX).split(".")
        part, signature = _decode_part(_bytes(data)), _bytes(mac)
    except (ValueError, msgspec.MsgspecError, binascii.Error):
        raise UnknownFile(NOT_A_FILE) from None
    # The handle is built anew: another text that decodes to the same would be a second name of the same file.
    if not hmac.compare_digest(signature, _mac(secret, tenant, part)) or handle != encode_handle(secret, tenant, part):
        raise UnknownFile(NOT_A_FILE)
    return part


def sanitize_file_name(name: str) -> str:
    """A file's name without its folders and without unprintable characters."""
    last = re.split(r"[/\\]", replace_surrogates(name))[-1]
    name_part = "".join(char for char in last if char.isprintable()).strip()
    while len(name_part.encode()) > LONGEST_NAME:  # from the front: the end has the extension
        name_part = name_part[max(1, (len(name_part.encode()) - LONGEST_NAME) // 4) :]
    return name_part


def sanitize_media_type(media_type: str) -> str:
    """A media type without its parameters; "" when it is invalid or generic."""
    plain = media_type.partition(";")[0].strip().lower()
    return plain if _TYPE.fullmatch(plain) and plain != "application/octet-stream" else ""


def _mac(secret: bytes, tenant: str, part: FilePart) -> bytes:
    # One JSON list: no two of them share an encoding, so nothing can be moved from one field to the next.
    data = encode_canonical(["file", tenant, *_fields(part)])
    return hmac.digest(secret, data.encode(), hashlib.sha256)


def _fields(part: FilePart) -> list[str | int]:
    document = [part.text, part.pages] if part.text else []
    return [part.blob, part.media_type, part.size, part.name, *document]


def _decode_part(data: bytes) -> FilePart:
    fields = msgspec.json.decode(data, type=list[str | int])
    if len(fields) == 4:
        return FilePart(*msgspec.convert(fields, tuple[str, str, int, str]))
    return FilePart(*msgspec.convert(fields, tuple[str, str, int, str, str, int]))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
