"""Sounds: a tone whose length follows from a text, as WAV or bare PCM; as MP3 only silence."""

from __future__ import annotations

import hashlib
import math
import struct

RATE = 24_000
"""Samples per second, as the real one has them."""

_MS_PER_CHARACTER = 10
_SHORTEST_MS = 200
# MPEG-1 layer III, 128 kbit/s, 44.1 kHz, one channel; 1152 empty samples. Encoding a tone would need a library, and a
# client that only passes the bytes on cannot tell the difference.
_MP3_FRAME = b"\xff\xfb\x90\xc0" + bytes(413)
_MP3_FRAME_MS = 1152 / 44.1


def pcm(text: str) -> bytes:
    """Samples of 16 bits, one channel; the pitch follows from the text."""
    period = 40 + hashlib.sha256(text.encode()).digest()[0] % 40  # samples: 300 to 600 Hz
    wave = [round(8000 * math.sin(2 * math.pi * at / period)) for at in range(period)]
    return struct.pack(f"<{period}h", *wave) * (RATE * _length(text) // 1000 // period)


def wav(text: str) -> bytes:
    """The same with a header in front."""
    data = pcm(text)
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, RATE, RATE * 2, 2, 16)
    body = b"WAVE" + form + struct.pack("<4sI", b"data", len(data)) + data
    return struct.pack("<4sI", b"RIFF", len(body)) + body


def mp3(text: str) -> bytes:
    """Silence of that length."""
    return _MP3_FRAME * math.ceil(_length(text) / _MP3_FRAME_MS)


def _length(text: str) -> int:
    return max(_SHORTEST_MS, _MS_PER_CHARACTER * len(text))
