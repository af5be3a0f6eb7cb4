"""What a model is for, and what it must be given: known before anything is created.

`chat` talks and calls tools. The others make one thing out of another and call nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

from everturn.core.messages import Message
from everturn.core.parts import FilePart, Part, ToolPart, text_of

Modality = Literal["chat", "image-gen", "image-edit", "audio-stt", "audio-tts"]
MODALITIES: Final[tuple[Modality, ...]] = get_args(Modality)

# The kinds of files it works on; what is said in a film is heard as well.
_READS: Final[dict[Modality, tuple[str, ...]]] = {"image-edit": ("image/",), "audio-stt": ("audio/", "video/")}
_ASKS: Final[dict[Modality, str]] = {
    "image-gen": "say what the picture should show",
    "image-edit": "say what should be different in the picture",
    "audio-tts": "write what should be spoken",
}
_LACKS: Final[dict[Modality, str]] = {
    "image-edit": "attach a picture, or ask in a branch that has one",
    "audio-stt": "attach a recording, or ask in a branch that has one",
}


def modality_of(model: object) -> Modality:
    """What a model is for; one that does not say is for chat."""
    return getattr(model, "modality", "chat")


def missing(modality: Modality, branch: Sequence[Message], said: Sequence[Part]) -> str:
    """What a message lacks to be worked on, or has too much, in words for whoever wrote it; "" when it is right."""
    if wrong := unfit(modality, said):
        return wrong
    if modality in _READS and not files_for(modality, branch, said):
        return f"a model of the type {modality} needs a file: {_LACKS[modality]}"
    return ""


def unfit(modality: Modality, said: Sequence[Part]) -> str:
    """What is wrong with a message in itself, whatever stands before it."""
    if modality in _ASKS and not text_of(tuple(said)).strip():
        return f"a model of the type {modality} needs words: {_ASKS[modality]}"
    if modality in _ASKS and modality not in _READS and any(isinstance(part, FilePart) for part in said):
        hint = "; one that changes pictures is called vendor:model@image-edit" if modality == "image-gen" else ""
        return f"a model of the type {modality} works from words alone: leave the file out{hint}"
    return ""


def _files(part: Part) -> tuple[FilePart, ...]:
    if isinstance(part, ToolPart):
        return part.output.attachments if part.output is not None else ()
    return (part,) if isinstance(part, FilePart) else ()


def files_for(modality: Modality, branch: Sequence[Message], said: Sequence[Part]) -> list[FilePart]:
    """The files it works on: those that came with the message or, when there are none, the last ones of the branch."""
    kinds = _READS.get(modality)
    if kinds is None:
        return []
    for parts in (said, *(message.parts for message in reversed(branch) if not message.hidden)):
        found = [file for part in parts for file in _files(part) if file.media_type.startswith(kinds)]
        if found:
            return found
    return []
