"""Media answers of the provider: answers a request for an image, a sound or a text, and keeps images to be fetched."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from everturn.testing.provider.answers import Answer
from everturn.testing.provider.media.requests import MediaRequest
from everturn.testing.provider.render.media import render_media
from everturn.testing.provider.script import Image, Item, Script, Speech, Transcription
from everturn.testing.provider.strict.media import check_media_model

MAX_FILES = 256
_FOLDER = "/v1/files/"
_BUILTIN: tuple[tuple[re.Pattern[str], Item], ...] = (
    (re.compile(r"image|picture.*|gpt-image-.+|dall-e-[23]", re.DOTALL), Image()),
    (re.compile(r"voice|tts-1.*|gpt-4o-mini-tts.*", re.DOTALL), Speech()),
    (re.compile(r"ear|whisper-1|gpt-4o-(?:mini-)?transcribe.*", re.DOTALL), Transcription()),
)


def builtin_media(model: str) -> Script | None:
    """The script of a built-in model: `image`, `voice`, `ear`, and the names of the real ones."""
    return next((Script(((item,),)) for name, item in _BUILTIN if name.fullmatch(model)), None)


class MediaMaker:
    """Makes images, sounds and texts."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    def answer(self, request: MediaRequest, items: Sequence[Item], pace: float, url: str) -> Answer:
        """The answer to a request, as the items of a step have it."""
        check_media_model(request.media, request.body["model"], items)
        return render_media(request, items, pace, lambda data: url + self._keep(data))

    def file(self, path: str) -> bytes | None:
        """An image that was made before, if it is still kept."""
        return self._files.get(path)

    def _keep(self, data: bytes) -> str:
        path = f"{_FOLDER}{hashlib.sha256(data).hexdigest()[:32]}.png"
        self._files[path] = data
        while len(self._files) > MAX_FILES:
            del self._files[next(iter(self._files))]
        return path
