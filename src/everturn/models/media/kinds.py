"""Bytes → what kind of file they are, and whether it is all there. What a server says of them is only a hint."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

EXTENSIONS: Final = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/gif": "gif",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/mp4": "m4a",
    "audio/x-m4a": "m4a",
    "audio/ogg": "ogg",
    "audio/opus": "ogg",
    "audio/flac": "flac",
    "audio/x-flac": "flac",
    "audio/aac": "aac",
    "audio/webm": "webm",
    "video/mp4": "mp4",
    "video/webm": "webm",
}
SEEN: Final = frozenset({"audio/wav", "audio/mpeg", "audio/ogg", "audio/flac", "audio/mp4"})  # sounds known at sight
_SOME_SIZE = range(1, 0x7FFFF000)  # any other is that of a file that was written before its end was known


class Look(Struct, frozen=True):
    """What a file looks like; `media_type` is empty where nothing is known."""

    media_type: str = ""
    is_whole: bool = True


def look(data: bytes) -> Look:
    """Look at a file's first bytes, and at its last."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return Look("image/png", data.rfind(b"IEND\xaeB`\x82") > 0)
    if data.startswith(b"\xff\xd8\xff"):
        return Look("image/jpeg", b"\xff\xd9" in data[-64:])
    if data.startswith((b"GIF87a", b"GIF89a")):
        return Look("image/gif", data.endswith(b";"))
    if data.startswith(b"RIFF") and data[8:12] in (b"WAVE", b"WEBP"):
        size = int.from_bytes(data[4:8], "little")
        kind = "audio/wav" if data[8:12] == b"WAVE" else "image/webp"
        return Look(kind, size not in _SOME_SIZE or len(data) >= size + 8)
    if data.startswith(b"ID3") or (len(data) > 1 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2):
        return Look("audio/mpeg")
    if data.startswith(b"OggS"):
        return Look("audio/ogg")
    if data.startswith(b"fLaC"):
        return Look("audio/flac")
    if data[4:8] == b"ftyp":
        return Look("audio/mp4")
    if data.startswith(b"\x1a\x45\xdf\xa3"):
        return Look("audio/webm")
    return Look()


def extension(media_type: str) -> str:
    """How the name of such a file ends."""
    return EXTENSIONS.get(media_type, "bin")
