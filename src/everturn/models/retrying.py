"""Models that fail → one that tries again, or another one.

Only until the first chunk: what a person has begun to read is not taken back, and a step that broke off later is the
turn's to settle.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.chunks import Chunk, UsageChunk
from everturn.core.modality import Modality, modality_of
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError, ModelError
from everturn.models.prices import NO_FACTS, Facts

log = logging.getLogger(__name__)


class Patience(Struct, frozen=True):
    """How often to try, and how long to wait in between, in seconds."""

    tries: int = 3
    first: float = 0.5
    most: float = 8.0
    asked: float = 60.0  # the longest wait a provider may ask for; if it wants more, the turn is told at once
    first_chunk: float | None = None  # how long one try may take to say anything; None: as long as the turn waits

    def pause(self, tried: int, error: ModelError, chance: float) -> float | None:
        """How long to wait after try number `tried`; None when there is no point. `chance` is from 0 to 1."""
        if not error.retryable or tried >= self.tries:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.asked else None
        longest = min(self.first * 2 ** (tried - 1), self.most)
        return longest * (0.5 + chance / 2)  # so that those who failed together do not come back together


class Retrying:
    """A model that is asked again while it has said nothing."""

    def __init__(
        self, model: Model, patience: Patience | None = None, chance: Callable[[], float] = random.random
    ) -> None:
        self._model, self._patience, self._chance = model, patience or Patience(), chance

    @property
    def name(self) -> str:
        """The badge a face shows."""
        return self._model.name

    @property
    def modality(self) -> Modality:
        """What the model is for."""
        return modality_of(self._model)

    def __repr__(self) -> str:
        """The model's own words for itself."""
        return f"<Retrying {self._model!r}>"

    async def facts(self) -> Facts:
        """What the model costs and how much it can read, where that is known."""
        facts = getattr(self._model, "facts", None)
        return NO_FACTS if facts is None else await facts()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Ask, and ask again."""
        tried = 0
        while True:
            tried += 1
            has_spoken = False
            batches = self._model.stream(request)
            if self._patience.first_chunk is not None:
                batches = _first_within(batches, self._patience.first_chunk)
            try:
                async for batch in batches:
                    has_spoken = has_spoken or says_something(batch)
                    yield batch
                return
            except ModelError as error:
                if error.kind == "seal" and not has_spoken and (unsealed := without_seals(request)) is not None:
                    request, pause = unsealed, 0.0
                else:
                    pause = None if has_spoken else self._patience.pause(tried, error, self._chance())
                if pause is None:
                    raise
                log.info("%s failed (%s); try %d follows in %.1f s", self.name, error, tried + 1, pause)
            finally:
                await _close(batches)
            await asyncio.sleep(pause)


class Fallback:
    """Models in the order in which they are asked: the next one when the one before failed without a word."""

    def __init__(self, *models: Model) -> None:
        if not models:
            raise ConfigError("Fallback needs models: Fallback(named('a:b'), named('c:d'))")
        if len(kinds := {modality_of(model) for model in models}) > 1:
            raise ConfigError(f"one model can stand in for another of the same type only; these are {sorted(kinds)}")
        self._models = models

    @property
    def name(self) -> str:
        """The badge of the first."""
        return self._models[0].name

    @property
    def modality(self) -> Modality:
        """What the models are for."""
        return modality_of(self._models[0])

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Ask one after the other."""
        for left, model in zip(range(len(self._models) - 1, -1, -1), self._models, strict=True):
            has_spoken = False
            batches = model.stream(request)
            try:
                async for batch in batches:
                    has_spoken = has_spoken or says_something(batch)
                    yield batch
                return
            except ModelError as error:
                if has_spoken or not left:
                    raise
                log.warning("%s failed (%s); another one is asked", model.name, error)
            finally:
                await _close(batches)


def says_something(batch: Sequence[Chunk]) -> bool:
    """Whether there is more in a batch than a sign of life, or a count of tokens."""
    return any(type(chunk) is not UsageChunk for chunk in batch)


def without_seals(request: ModelRequest) -> ModelRequest | None:
    """The same request with nothing in it that a provider has sealed; None if there was nothing."""
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
    """The same, with an end to the wait for the first chunk."""
    until = asyncio.get_running_loop().time() + limit
    try:
        has_spoken = False
        while not has_spoken:
            try:
                async with asyncio.timeout_at(until):
                    batch = await anext(batches, None)
            except TimeoutError:
                raise ModelError(f"the model said nothing for {limit:g} s", kind="stalled", retryable=True) from None
            if batch is None:
                return
            has_spoken = says_something(batch)
            yield batch
        async for batch in batches:
            yield batch
    finally:
        await _close(batches)


async def _close(batches: AsyncIterator[Any]) -> None:
    if (aclose := getattr(batches, "aclose", None)) is not None:
        await aclose()
