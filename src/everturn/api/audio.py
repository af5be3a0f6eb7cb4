"""Audio: dictation and reading aloud."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from everturn.api.base import Body, View


class AudioView(View, frozen=True, kw_only=True):
    """What this server can do with audio, and its limits."""

    transcription: bool
    speech: bool
    max_seconds: float  # of a recording
    max_characters: int  # of a text that is spoken


class TranscriptView(View, frozen=True, kw_only=True):
    """The text of a recording."""

    text: str


class SpeakText(Body, frozen=True, kw_only=True):
    """A text to speak, without Markdown."""

    text: Annotated[str, Meta(min_length=1, max_length=100_000)]
