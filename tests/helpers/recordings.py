"""Recordings as a browser sends them for dictation."""

from __future__ import annotations

import io
import wave


def a_recording(seconds: float = 0.5, rate: int = 16_000, channels: int = 1) -> bytes:
    """Silence, as a WAV file."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(bytes(2 * channels * int(seconds * rate)))
    return out.getvalue()
