"""Refuses requests for media that OpenAI refuses: which endpoint has which rules, and which models are not for it."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.testing.provider.asked import PATHS, Asked, Media
from everturn.testing.provider.faults import Format, Refused
from everturn.testing.provider.script import Call, Heard, Image, Item, Redacted, Refuse, Say, Speech, Think
from everturn.testing.provider.strict_audio import check_speech, check_transcription
from everturn.testing.provider.strict_images import check_edit, check_image

_MAKES: dict[Media, type[Item]] = {"images": Image, "edits": Image, "transcriptions": Heard, "speech": Speech}
_CHAT = (Say, Think, Redacted, Call, Refuse)
_MADE = (Image, Heard, Speech)


def check_media(asked: Asked) -> None:
    """Refuse what the real one refuses.

    Raises:
        Refused: with what it says.
    """
    match asked.media:
        case "images":
            check_image(asked)
        case "edits":
            check_edit(asked)
        case "transcriptions":
            check_transcription(asked)
        case "speech":
            check_speech(asked)


def check_makes(media: Media, model: str, items: Sequence[Item]) -> None:
    """A model is for what its script makes.

    Raises:
        Refused: this one makes something else.
    """
    if not any(isinstance(item, (*_CHAT, *_MADE)) and not isinstance(item, _MAKES[media]) for item in items):
        return
    if media in ("images", "edits"):
        raise Refused(f"Invalid model {model}. The model argument should be left blank.", "model", "invalid_value")
    text = f"The model `{model}` is not supported in the {PATHS[media][1:]} endpoint."
    raise Refused(text, "model", "model_not_found", status=404)


def check_talks(format: Format, model: str, items: Sequence[Item]) -> None:
    """A model that makes files does not chat.

    Raises:
        Refused: this is one.
    """
    if not any(isinstance(item, _MADE) for item in items):
        return
    if format == "chat":
        text = (
            "This is not a chat model and thus not supported in the v1/chat/completions endpoint. "
            "Did you mean to use v1/completions?"
        )
        raise Refused(text, "model", status=404)
    if format == "responses":
        text = f"The requested model '{model}' cannot be used with the Responses API."
        raise Refused(text, "model", "unsupported_model")
    raise Refused(f"model: {model}", status=404)
