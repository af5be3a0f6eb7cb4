"""OpenAI media validation: which endpoint has which rules, and which models it does not accept."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.testing.provider.faults import Format, Refused
from everturn.testing.provider.media.requests import PATHS, Media, MediaRequest
from everturn.testing.provider.script import Call, Image, Item, Redacted, Refuse, Say, Speech, Think, Transcription
from everturn.testing.provider.strict.audio import check_speech, check_transcription
from everturn.testing.provider.strict.images import check_edit, check_image

_MAKES: dict[Media, type[Item]] = {"images": Image, "edits": Image, "transcriptions": Transcription, "speech": Speech}
_CHAT = (Say, Think, Redacted, Call, Refuse)
_MADE = (Image, Transcription, Speech)


def check_media(request: MediaRequest) -> None:
    """Refuse what the real provider refuses.

    Raises:
        Refused: with the provider's message.
    """
    match request.media:
        case "images":
            check_image(request)
        case "edits":
            check_edit(request)
        case "transcriptions":
            check_transcription(request)
        case "speech":
            check_speech(request)


def check_media_model(media: Media, model: str, items: Sequence[Item]) -> None:
    """Check that the model's script makes this kind of media.

    Raises:
        Refused: it makes another kind.
    """
    if not any(isinstance(item, (*_CHAT, *_MADE)) and not isinstance(item, _MAKES[media]) for item in items):
        return
    if media in ("images", "edits"):
        raise Refused(f"Invalid model {model}. The model argument should be left blank.", "model", "invalid_value")
    text = f"The model `{model}` is not supported in the {PATHS[media][1:]} endpoint."
    raise Refused(text, "model", "model_not_found", status=404)


def check_chat_model(format: Format, model: str, items: Sequence[Item]) -> None:
    """Check that the model is not one that makes files.

    Raises:
        Refused: it is one.
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
