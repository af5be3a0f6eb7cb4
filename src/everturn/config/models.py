"""`[models]` → models: under a name of one's own, with a key by reference; and the one that is meant if none is named."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from everturn.config.schema import ModelTable
from everturn.core.chunks import Chunk
from everturn.core.modality import Modality, modality_of
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.models.named import named
from everturn.models.offline import OFFLINE
from everturn.models.prices import NO_FACTS, Facts

USUAL_MODELS: Final[Mapping[str, str]] = {
    "ANTHROPIC_API_KEY": "anthropic:claude-opus-5",
    "OPENAI_API_KEY": "openai:gpt-5.2",
    "GEMINI_API_KEY": "gemini:gemini-3-pro",
}
"""The model that is meant if none is named, by the key that is in the environment; the first one counts."""


class Configured:
    """A model under a name of one's own, with parameters of its own; a turn's come last."""

    def __init__(self, name: str, model: Model, params: Mapping[str, Any]) -> None:
        self._name, self._model, self._params = name, model, dict(params)

    @property
    def name(self) -> str:
        """As it is configured."""
        return self._name

    @property
    def modality(self) -> Modality:
        """What the model is for."""
        return modality_of(self._model)

    def __repr__(self) -> str:
        """The model's own words for itself."""
        return f"<Configured {self._name} {self._model!r}>"

    async def facts(self) -> Facts:
        """What the model costs and how much it can read, where that is known."""
        facts = getattr(self._model, "facts", None)
        return NO_FACTS if facts is None else await facts()

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Ask."""
        return self._model.stream(replace(request, params={**self._params, **request.params}))


def usual_model(environ: Mapping[str, str]) -> str:
    """The model of an installation for which nobody has named one."""
    if name := environ.get("EVERTURN_MODEL", "").strip():
        return name
    return next((model for key, model in USUAL_MODELS.items() if environ.get(key, "").strip()), OFFLINE)


def make_model(name: str, table: ModelTable, environ: Mapping[str, str]) -> Model:
    """A model that is configured under a name.

    Raises:
        ConfigError: its key cannot be had.
    """
    key = table.api_key.resolved(environ) if table.api_key else ""
    made = named(
        table.model,
        base_url=table.base_url,
        key=key,
        price=table.price,
        window=table.window,
        paradigm=table.paradigm,
        environ=environ,
    )
    return Configured(name, made, table.params)
