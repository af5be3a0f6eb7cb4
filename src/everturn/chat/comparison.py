"""Comparison: several models answer the same message, each in a turn and a branch of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from everturn.base_app import BaseApp
from everturn.core.commands import ComparedAnswer
from everturn.core.options import TurnOptions
from everturn.errors import ConfigError

MAX_COMPARED: Final = 4  # models that answer one message

ComparedModels = Mapping[str, Mapping[str, Any] | None] | Iterable[str]
"""The further models of a comparison; as a mapping with the parameters of each."""


def params_by_model(compare_with: ComparedModels) -> dict[str, Mapping[str, Any] | None]:
    """The further models, each with its parameters.

    Raises:
        ConfigError: too many models, or one of them twice.
    """
    if isinstance(compare_with, Mapping):
        return dict(cast("Mapping[str, Mapping[str, Any] | None]", compare_with))
    if isinstance(compare_with, str):
        raise ConfigError(f"compare_with={compare_with!r}: must be a list of models, such as ['openai:gpt-5.2']")
    names = list(compare_with)
    if len(set(names)) < len(names):
        raise ConfigError("compare_with: a model answers a message once; leave out the one that is named twice")
    return dict.fromkeys(names)


def compared_answers(app: BaseApp, own: TurnOptions, others: list[TurnOptions]) -> tuple[ComparedAnswer, ...]:
    """The answers beside that of `own`.

    Raises:
        ConfigError: the models cannot be compared; the text says which one, and why.
    """
    if len(others) + 1 > MAX_COMPARED:
        raise ConfigError(f"compare_with: {len(others) + 1} models answer this message; at most {MAX_COMPARED} may")
    models = [own.model, *(options.model for options in others)]
    if len(set(models)) < len(models):
        raise ConfigError("compare_with: a model answers a message once; leave out the one that is named twice")
    for model in models:
        if app.modality_of(model) != "chat":
            raise ConfigError(f"{model} is not a chat model; only chat models can be compared")
    return tuple(ComparedAnswer(app.ids.new("turn"), options.model, options.params) for options in others)
