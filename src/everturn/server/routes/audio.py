"""Audio routes: transcription of a recording, and speech."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from everturn import api
from everturn.access.conversations.audio import AudioAccess
from everturn.server.route import HttpRequestContext, Param, Route
from everturn.server.routes.api import MESSAGE, SESSION, route_for

SPOKEN: Final = ("audio/mpeg", "audio/wav", "audio/ogg", "audio/flac", "audio/mp4", "audio/webm", "audio/aac")


async def _speak(context: HttpRequestContext) -> Response:
    data, media_type = await context.access.audio.speak(context.ids["session"], context.body)
    kind = media_type if media_type in SPOKEN else "application/octet-stream"
    return Response(data, media_type=kind, headers={"content-disposition": "attachment"})


ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/audio",
        AudioAccess.get,
        "Say whether recordings can be transcribed and texts spoken, and the limits.",
        lambda a: a.access.audio.get(),
        name="audio",
        answer=api.AudioView,
    ),
    route_for(
        "POST",
        "/api/transcription",
        AudioAccess.transcribe,
        "Transcribe a recording, a WAV file with one channel of 16 bits. `session` is where its text will be sent. Nothing "
        "is stored.",
        lambda a: a.access.audio.transcribe(a.body, **a.query),
        takes="bytes",
        media=("audio/wav",),
        upload=True,
        query=(Param("session", MESSAGE),),
        answer=api.TranscriptView,
    ),
    route_for(
        "POST",
        SESSION + "/speech",
        AudioAccess.speak,
        "Speak a text of a session. The answer is audio, of the type that the model sends. Nothing is stored.",
        _speak,
        body=api.SpeakText,
        gives="bytes",
        media=(*SPOKEN, "application/octet-stream"),
    ),
]
