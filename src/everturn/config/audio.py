"""Configured audio: the models of `[audio.transcription]` and `[audio.speech]`, which are servers, models of `[models]`,
or local programs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from everturn.access.context.audio_service import AudioLimits, AudioModel, AudioService
from everturn.config.decode import ConfigDecoder
from everturn.config.models import make_model
from everturn.config.schema import AudioModelTable, Config, ModelTable, SpeechTable
from everturn.core.modality import MODALITIES, Modality, modality_of
from everturn.errors import ConfigError
from everturn.models.media.command import CommandModel
from everturn.models.registry import get_model

TYPES: dict[str, Modality] = {"transcription": "audio-stt", "speech": "audio-tts"}


def check_audio(config: Config, reader: ConfigDecoder) -> None:
    """Check the tables; problems are added to the decoder."""
    for name, modality in TYPES.items():
        table: AudioModelTable | None = getattr(config.audio, name)
        if table is None:
            continue
        path = ("audio", name)
        if bool(table.command) == bool(table.model):
            reader.add_problem(path, "set either `model`, with a `base_url` or a vendor, or `command`, a local program")
            continue
        keys = ("model", "base_url", "api_key", "params", "voice") if table.command else ("command",)
        for key in keys:
            if getattr(table, key, None):
                reader.add_problem((*path, key), "a `command` has arguments of its own; leave this out")
        if table.command:
            if reader.has((*path, "command")) and not reader.where((*path, "command")).line:
                reader.add_problem((*path, "command"), "what is started is named in a file, and not in the environment")
            continue
        named = config.models.get(table.model)
        if named is not None and (table.base_url or table.api_key):
            key = "base_url" if table.base_url else "api_key"
            reader.add_problem((*path, key), f"[models.{table.model}] has its own; leave this out")
            continue
        placed = named or _placed(table, modality)
        try:
            model = get_model(placed.model, base_url=placed.base_url, key="unknown", environ=os.environ)
        except ConfigError as error:
            reader.add_problem((*path, "base_url" if "base URL" in str(error) else "model"), str(error))
            continue
        if modality_of(model) != modality:
            reader.add_problem((*path, "model"), f"this is a model of the type {modality_of(model)}, not {modality}")


def make_audio(config: Config, environ: Mapping[str, str]) -> AudioService:
    """Return the audio service of a configuration.

    Raises:
        ConfigError: a key cannot be resolved, or the program does not exist; the message names the setting.
    """
    table = config.audio
    made: dict[str, AudioModel | None] = {}
    for name, modality in TYPES.items():
        entry: AudioModelTable | None = getattr(table, name)
        try:
            made[name] = None if entry is None else _make(entry, modality, config, environ)
        except ConfigError as error:
            key = "command" if entry is not None and entry.command else "model"
            raise ConfigError(f"audio.{name}.{key}: {error}") from None
    limits = AudioLimits(table.max_seconds, table.max_characters, table.timeout, table.concurrent)
    return AudioService(made["transcription"], made["speech"], limits)


def _make(table: AudioModelTable, modality: Modality, config: Config, environ: Mapping[str, str]) -> AudioModel:
    if table.command:
        return AudioModel(CommandModel(table.command, modality, environ))
    params: dict[str, Any] = dict(table.params)
    if isinstance(table, SpeechTable) and table.voice:
        params["voice"] = table.voice
    placed = config.models.get(table.model) or _placed(table, modality)
    model = make_model(table.model, replace(placed, fallback=()), environ, None, config.rate_limits)
    return AudioModel(model, params)


def _placed(table: AudioModelTable, modality: Modality) -> ModelTable:
    """The table as one of `[models]`, with the type of the model in its name."""
    has_type = table.model.rpartition("@")[2] in MODALITIES
    return ModelTable(table.model if has_type else f"{table.model}@{modality}", table.base_url, table.api_key)
