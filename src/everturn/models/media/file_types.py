"""File types: detects the type of a file, and whether it is complete, from its bytes. A content type is only a hint."""

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
DETECTED_AUDIO: Final = frozenset(
    {"audio/wav", "audio/mpeg", "audio/ogg", "audio/flac", "audio/mp4"}
)  # audio types that `look` detects
_REAL_SIZES = range(1, 0x7FFFF000)  # other sizes are placeholders of streamed files


class FileType(Struct, frozen=True):
    """The detected type of a file; `media_type` is empty if it is unknown."""

    media_type: str = ""
    is_whole: bool = True


def detect_type(data: bytes) -> FileType:
    """Detect the type from a file's first bytes, and completeness from its last."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return FileType("image/png", data.rfind(b"IEND\xaeB`\x82") > 0)
    if data.startswith(b"\xff\xd8\xff"):
        return FileType("image/jpeg", b"\xff\xd9" in data[-64:])
    if data.startswith((b"GIF87a", b"GIF89a")):
        return FileType("image/gif", data.endswith(b";"))
    if data.startswith(b"RIFF") and data[8:12] in (b"WAVE", b"WEBP"):
        size = int.from_bytes(data[4:8], "little")
        kind = "audio/wav" if data[8:12] == b"WAVE" else "image/webp"
        return FileType(kind, size not in _REAL_SIZES or len(data) >= size + 8)
    if data.startswith(b"ID3") or (len(data) > 1 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2):
        return FileType("audio/mpeg")
    if data.startswith(b"OggS"):
        return FileType("audio/ogg")
    if data.startswith(b"fLaC"):
        return FileType("audio/flac")
    if data[4:8] == b"ftyp":
        return FileType("audio/mp4")
    if data.startswith(b"\x1a\x45\xdf\xa3"):
        return FileType("audio/webm")
    return FileType()


def extension(media_type: str) -> str:
    """Return the file name extension of a media type."""
    return EXTENSIONS.get(media_type, "bin")
