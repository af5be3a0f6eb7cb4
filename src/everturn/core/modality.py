"""Model types (chat, image, audio) and the input that each needs, checked before a turn is created.

A `chat` model converses and calls tools. The others convert one kind of input into one output and call no tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

from everturn.core.messages import Message
from everturn.core.parts import FilePart, Part, ToolPart, join_text

Modality = Literal["chat", "image-gen", "image-edit", "audio-stt", "audio-tts"]
# What a tool that a provider runs can be beside in a request: any other tool; only others that the provider runs; or, of
# those, only others that search.
ProviderToolMix = Literal["mixed", "alone", "searches"]
SEARCHES: Final = frozenset({"web_search", "web_fetch", "file_search"})
MODALITIES: Final[tuple[Modality, ...]] = get_args(Modality)

# The media types it works on; a transcription model reads the sound of a video as well.
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
    """The type of a model; `chat` if it declares none."""
    return getattr(model, "modality", "chat")


def provider_tools_of(model: object) -> frozenset[str]:
    """The tools that the provider of a model runs itself; none if it declares none."""
    return getattr(model, "provider_tools", frozenset())


def provider_tool_mix(model: object) -> ProviderToolMix:
    """What the tools that the provider of a model runs can be beside in a request; anything, if it does not say."""
    return getattr(model, "provider_tool_mix", "mixed")


def explain_missing_input(modality: Modality, branch: Sequence[Message], message_parts: Sequence[Part]) -> str:
    """Why a model of this type cannot answer a message, as a text for its author; "" if it can."""
    if problem := explain_invalid_message(modality, message_parts):
        return problem
    if modality in _READS and not input_files(modality, branch, message_parts):
        return f"a model of the type {modality} needs a file: {_LACKS[modality]}"
    return ""


def explain_invalid_message(modality: Modality, message_parts: Sequence[Part]) -> str:
    """Why a message is invalid for a model of this type, whatever the branch before it; "" if it is valid."""
    if modality in _ASKS and not join_text(tuple(message_parts)).strip():
        return f"a model of the type {modality} needs words: {_ASKS[modality]}"
    if modality in _ASKS and modality not in _READS and any(isinstance(part, FilePart) for part in message_parts):
        hint = "; one that changes pictures is called vendor:model@image-edit" if modality == "image-gen" else ""
        return f"a model of the type {modality} works from words alone: leave the file out{hint}"
    return ""


def _files(part: Part) -> tuple[FilePart, ...]:
    if isinstance(part, ToolPart):
        return part.output.attachments if part.output is not None else ()
    return (part,) if isinstance(part, FilePart) else ()


def input_files(modality: Modality, branch: Sequence[Message], message_parts: Sequence[Part]) -> list[FilePart]:
    """The files the model works on: those of the message or, if it has none, the last ones of the branch."""
    kinds = _READS.get(modality)
    if kinds is None:
        return []
    for parts in (message_parts, *(message.parts for message in reversed(branch) if not message.hidden)):
        files = [file for part in parts for file in _files(part) if file.media_type.startswith(kinds)]
        if files:
            return files
    return []
