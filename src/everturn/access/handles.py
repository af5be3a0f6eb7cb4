"""A file that was uploaded ⇄ the text that a message names it by. Nobody can make one up, nor use another tenant's. Pure.

Blobs are kept by their hash and belong to nobody: whoever could name one by its hash would have it, whosever it is.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import Final

import msgspec

from everturn.core.canonical import canonical, clean
from everturn.core.parts import FilePart
from everturn.errors import UnknownFile

PREFIX: Final = "evf_"
LONGEST_NAME: Final = 240  # bytes; a handle has at most 1,000 characters
_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,80}")


def handle_of(secret: bytes, tenant: str, part: FilePart) -> str:
    """The text by which messages of this tenant may name a file."""
    said = canonical([part.blob, part.media_type, part.size, part.name]).encode()
    return f"{PREFIX}{_text(said)}.{_text(_mac(secret, tenant, part))}"


def file_of(secret: bytes, tenant: str, handle: str) -> FilePart:
    """The file that is meant.

    Raises:
        UnknownFile: it is no handle, or another tenant's.
    """
    try:
        said, mac = handle.removeprefix(PREFIX).split(".")
        blob, media_type, size, name = msgspec.json.decode(_bytes(said), type=tuple[str, str, int, str])
        part, given = FilePart(blob, media_type, size, name), _bytes(mac)
    except (ValueError, msgspec.MsgspecError, binascii.Error):
        raise UnknownFile("this is no file") from None
    # The text is made anew: one that decodes to the same would be a second name of the same file.
    if not hmac.compare_digest(given, _mac(secret, tenant, part)) or handle != handle_of(secret, tenant, part):
        raise UnknownFile("this is no file")
    return part


def plain_name(name: str) -> str:
    """A file's name without its folders, and without what is not to be seen in it."""
    last = re.split(r"[/\\]", clean(name))[-1]
    shown = "".join(char for char in last if char.isprintable()).strip()
    while len(shown.encode()) > LONGEST_NAME:  # from the front: the end says what it is
        shown = shown[max(1, (len(shown.encode()) - LONGEST_NAME) // 4) :]
    return shown


def plain_type(media_type: str) -> str:
    """A media type without its parameters; "" when it is none, or says nothing."""
    plain = media_type.partition(";")[0].strip().lower()
    return plain if _TYPE.fullmatch(plain) and plain != "application/octet-stream" else ""


def _mac(secret: bytes, tenant: str, part: FilePart) -> bytes:
    # One JSON list: no two of them share an encoding, so nothing can be moved from one field to the next.
    said = canonical(["file", tenant, part.blob, part.media_type, part.size, part.name])
    return hmac.digest(secret, said.encode(), hashlib.sha256)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
