"""Configured models: the models of `[models]`, with their own names and keys by reference, and the default model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from everturn.config.schema import ModelTable
from everturn.core.chunks import Chunk
from everturn.core.file_uploads import AccountUploads, uploads_of
from everturn.core.modality import Modality, modality_of
from everturn.core.ports import Model
from everturn.core.rate_limits import RateLimit
from everturn.core.requests import ModelRequest
from everturn.models.limited import ModelDeployment
from everturn.models.offline import OFFLINE
from everturn.models.prices import ModelFacts, facts_of
from everturn.models.registry import find_key, get_model
from everturn.models.retry import FallbackModel
from everturn.transport import Transport

DEFAULT_MODELS: Final[Mapping[str, str]] = {
    "ANTHROPIC_API_KEY": "anthropic:claude-opus-5",
    "OPENAI_API_KEY": "openai:gpt-5.2",
    "GEMINI_API_KEY": "gemini:gemini-3-pro",
}
"""The default model, by the key that is in the environment; the first one counts."""


class ConfiguredModel:
    """A model with a name and default parameters from the configuration; a turn's parameters override them."""

    def __init__(self, name: str, model: Model, params: Mapping[str, Any]) -> None:
        self._name, self._model, self._params = name, model, dict(params)

    @property
    def name(self) -> str:
        """The configured name."""
        return self._name

    @property
    def modality(self) -> Modality:
        """What the model is for."""
        return modality_of(self._model)

    @property
    def uploads(self) -> tuple[AccountUploads, ...]:
        """The accounts to which it uploads files."""
        return uploads_of(self._model)

    def __repr__(self) -> str:
        """The model's own words for itself."""
        return f"<Configured {self._name} {self._model!r}>"

    async def facts(self) -> ModelFacts:
        """Return the model's price and context window, where they are known."""
        return await facts_of(self._model)

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Send the request."""
        return self._model.stream(replace(request, params={**self._params, **request.params}))


def default_model(environ: Mapping[str, str]) -> str:
    """Return the default model of an installation."""
    if name := environ.get("EVERTURN_MODEL", "").strip():
        return name
    return next((model for key, model in DEFAULT_MODELS.items() if find_key(key, environ).strip()), OFFLINE)


def make_model(
    name: str,
    table: ModelTable,
    environ: Mapping[str, str],
    tables: Mapping[str, ModelTable] | None = None,
    rate_limits: Mapping[str, RateLimit] | None = None,
    transport: Transport | None = None,
) -> Model:
    """Create a model of `[models]`; `tables` are all of them, among which its fallbacks are looked up.

    `transport` sends its requests, instead of one without an egress policy.

    Raises:
        ConfigError: its key cannot be resolved.
    """
    limits = rate_limits or {}
    key = table.api_key.resolved(environ) if table.api_key else ""
    model = get_model(
        table.model,
        base_url=table.base_url,
        key=key,
        price=table.price,
        window=table.window,
        tool_format=table.tool_format,
        upload_above=table.upload_above,
        retry=table.retry,
        rate_limit=limits.get(table.rate_limit),
        rate_limit_name=table.rate_limit,
        deployments=[
            ModelDeployment(
                place.model,
                place.base_url,
                place.api_key.resolved(environ) if place.api_key else "",
                limits.get(place.rate_limit),
                place.rate_limit,
            )
            for place in table.deployments
        ],
        transport=transport,
        environ=environ,
    )
    configured = ConfiguredModel(name, model, table.params)
    if not table.fallback:
        return configured
    return FallbackModel(configured, *(_fallback(other, environ, tables or {}, limits) for other in table.fallback))


def _fallback(
    name: str, environ: Mapping[str, str], tables: Mapping[str, ModelTable], rate_limits: Mapping[str, RateLimit]
) -> Model:
    table = tables.get(name)
    if table is None:
        return get_model(name, environ=environ)
    return make_model(
        name, replace(table, fallback=()), environ, None, rate_limits
    )  # only its own model: two may name each other
