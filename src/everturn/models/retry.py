"""Retries and fallbacks: wrappers that send a failed request again, or to another model.

They act only until the first chunk: what a person has begun to read is not taken back, and the turn handles a step that
breaks off later. Before each further attempt they yield a `RetryChunk`, which the turn writes as an event: nobody waits
in front of a screen that does not say why.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.chunks import Chunk, ProviderToolChunk, RetryChunk, UsageChunk, WaitChunk
from everturn.core.file_uploads import AccountUploads, uploads_of
from everturn.core.modality import Modality, ProviderToolMix, modality_of, provider_tool_mix, provider_tools_of
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError, ModelError
from everturn.models.load import load
from everturn.models.prices import ModelFacts, facts_of

log = logging.getLogger(__name__)


class RetryPolicy(Struct, frozen=True):
    """How often to try, and how long to wait in between, in seconds."""

    attempts: int = 3
    initial_delay: float = 0.5
    max_delay: float = 8.0
    max_retry_after: float = (
        60.0  # the longest Retry-After, and their sum after `attempts`; beyond it, the request fails
    )
    first_chunk_timeout: float | None = None  # timeout for the first chunk of a try; None: the turn's own

    def delay(self, tried: int, error: ModelError, chance: float, waited: float = 0.0) -> float | None:
        """Return the wait after try number `tried`; None without another try. `chance` is from 0 to 1.

        A server that says when to come back is asked again after `attempts`, too, until `max_retry_after` seconds have
        been `waited` in all.
        """
        if not error.retryable:
            return None
        if error.retry_after is not None and tried >= self.attempts > 1:
            pause = max(error.retry_after, self.initial_delay)
            return pause if 0 < waited + pause <= self.max_retry_after else None
        if tried >= self.attempts:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.max_retry_after else None
        longest = min(self.initial_delay * 2 ** (tried - 1), self.max_delay)
        return longest * (0.5 + chance / 2)  # jitter, so that requests that failed together are not retried together


class RetryModel:
    """A model whose requests are retried until the first chunk."""

    def __init__(
        self, model: Model, retry: RetryPolicy | None = None, chance: Callable[[], float] = random.random
    ) -> None:
        self._model, self._retry, self._chance = model, retry or RetryPolicy(), chance

    @property
    def name(self) -> str:
        """The name that a UI shows."""
        return self._model.name

    @property
    def modality(self) -> Modality:
        """What the model is for."""
        return modality_of(self._model)

    @property
    def uploads(self) -> tuple[AccountUploads, ...]:
        """The accounts to which it uploads files."""
        return uploads_of(self._model)

    @property
    def provider_tools(self) -> frozenset[str]:
        """The tools that its provider can run."""
        return provider_tools_of(self._model)

    @property
    def provider_tool_mix(self) -> ProviderToolMix:
        """What such a tool can be beside in a request."""
        return provider_tool_mix(self._model)

    def __repr__(self) -> str:
        """The model's own words for itself."""
        return f"<Retrying {self._model!r}>"

    async def facts(self) -> ModelFacts:
        """Return the model's price and context window, where they are known."""
        return await facts_of(self._model)

    def load(self) -> None:
        """Import what the first request needs."""
        load(self._model)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Send the request, and retry it."""
        tried, waited = 0, 0.0
        while True:
            tried += 1
            has_spoken = False
            batches = self._model.stream(request)
            if self._retry.first_chunk_timeout is not None:
                batches = _first_within(batches, self._retry.first_chunk_timeout)
            try:
                async for batch in batches:
                    has_spoken = has_spoken or has_content(batch)
                    yield batch
                return
            except ModelError as error:
                if error.kind == "seal" and not has_spoken and (unsealed := without_opaque(request)) is not None:
                    request, pause = unsealed, 0.0
                else:
                    pause = None if has_spoken else self._retry.delay(tried, error, self._chance(), waited)
                if pause is None:
                    raise
                log.info("%s failed (%s); attempt %d follows in %.1f s", self.name, error, tried + 1, pause)
                kind, reason = error.kind, str(error)
            finally:
                await _close(batches)
            attempts = max(self._retry.attempts, tried + 1)  # a request without seals is sent even after the last
            yield (RetryChunk(tried + 1, attempts, pause, kind, reason),)
            waited += pause
            await asyncio.sleep(pause)


class FallbackModel:
    """Models in order: the next one is used when the one before failed before its first chunk.

    It has the name of the first; a step that another one wrote says so (`StepFinished.model`).
    """

    def __init__(self, *models: Model) -> None:
        if not models:
            raise ConfigError("Fallback needs models: Fallback('openai:gpt-5.2', 'anthropic:claude-opus-5')")
        if len(kinds := {modality_of(model) for model in models}) > 1:
            raise ConfigError(f"the models of a Fallback must be of one type; these are {sorted(kinds)}")
        self._models = models

    @property
    def name(self) -> str:
        """The name of the first model."""
        return self._models[0].name

    @property
    def modality(self) -> Modality:
        """What the models are for."""
        return modality_of(self._models[0])

    @property
    def uploads(self) -> tuple[AccountUploads, ...]:
        """The accounts to which it uploads files."""
        return tuple(account for model in self._models for account in uploads_of(model))

    @property
    def provider_tools(self) -> frozenset[str]:
        """The tools that the first model's provider can run."""
        return provider_tools_of(self._models[0])

    @property
    def provider_tool_mix(self) -> ProviderToolMix:
        """What such a tool can be beside in a request."""
        return provider_tool_mix(self._models[0])

    def load(self) -> None:
        """Import what the first request needs, of any of them."""
        for model in self._models:
            load(model)

    async def facts(self) -> ModelFacts:
        """Return the price and context window of the first model, where they are known."""
        return await facts_of(self._models[0])

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Send the request to one model after the other."""
        for number, model in enumerate(self._models, 1):
            has_spoken = False
            sent = request
            if request.sender is not None and number < len(self._models):
                sent = replace(request, sender=replace(request.sender, can_fall_back=True))
            batches = model.stream(sent)
            try:
                async for batch in batches:
                    has_spoken = has_spoken or has_content(batch)
                    yield batch
                return
            except ModelError as error:
                if has_spoken or number == len(self._models):
                    raise
                log.warning("%s failed (%s); the next model is used", model.name, error)
                kind, reason = error.kind, str(error)
            finally:
                await _close(batches)
            yield (RetryChunk(number + 1, len(self._models), 0.0, kind, reason, self._models[number].name),)


def has_content(batch: Sequence[Chunk]) -> bool:
    """Return whether a batch has content: more than a keep-alive, usage or the news of a retry, a wait or a search."""
    return any(
        type(chunk) not in (UsageChunk, RetryChunk, WaitChunk)
        and not (isinstance(chunk, ProviderToolChunk) and chunk.is_started)
        for chunk in batch
    )


def without_opaque(request: ModelRequest) -> ModelRequest | None:
    """Return the request without opaque provider data; None if it has none."""
    messages = [
        replace(
            message,
            parts=tuple(
                replace(part, opaque=None) if getattr(part, "opaque", None) else part for part in message.parts
            ),
        )
        for message in request.messages
    ]
    return None if messages == request.messages else replace(request, messages=messages, memo={})


async def _first_within(batches: AsyncIterator[Sequence[Chunk]], limit: float) -> AsyncGenerator[Sequence[Chunk], None]:
    """Yield the batches, with a timeout for the first chunk."""
    deadline = asyncio.get_running_loop().time() + limit
    try:
        has_spoken = False
        while not has_spoken:
            try:
                async with asyncio.timeout_at(deadline):
                    batch = await anext(batches, None)
            except TimeoutError:
                raise ModelError(f"the model sent nothing for {limit:g} s", kind="stalled", retryable=True) from None
            if batch is None:
                return
            if any(type(chunk) is WaitChunk for chunk in batch):  # the model has not been asked yet
                deadline = asyncio.get_running_loop().time() + limit
            has_spoken = has_content(batch)
            yield batch
        async for batch in batches:
            yield batch
    finally:
        await _close(batches)


async def _close(batches: AsyncIterator[Any]) -> None:
    if (aclose := getattr(batches, "aclose", None)) is not None:
        await aclose()
