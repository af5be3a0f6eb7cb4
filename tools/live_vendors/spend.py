"""Spend: what requests have cost and could cost, and a model that sends none which could exceed the cap.

Before a request, the most that it can cost is set aside: its size, the longest answer that it allows, and the fees and texts of searches. After
it, its real cost counts. A request without a reported cost, such as one that was cancelled, counts as the most that it could cost.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from everturn.core.chunks import Chunk, UsageChunk
from everturn.core.parts import Usage
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models.prices import ModelFacts

BYTES_PER_TOKEN: Final = 2  # fewer than any tokenizer needs for English and JSON
SEARCHES: Final = 3  # that one request may make
SEARCH_TOKENS: Final = 30_000  # of what they find
REFUSED: Final = frozenset({"key", "quota", "unknown_model", "context", "seal", "request", "rate"})
DEFAULT_OUTPUT: Final = 1024  # where a request has no max_tokens


CAP: Final = "cap"  # the kind of the error: a turn reports it


class CapReached(ModelError):
    """The next request could exceed the cap."""


class Spend:
    """Dollars that were spent, and the most that may be."""

    def __init__(self, cap: float) -> None:
        self.cap, self.spent, self.set_aside = cap, 0.0, 0.0
        self.requests = 0

    def reserve(self, dollars: float) -> None:
        """Set dollars aside for a request.

        Raises:
            CapReached: they could exceed the cap.
        """
        if self.spent + self.set_aside + dollars > self.cap:
            raise CapReached(
                f"the next request may cost ${dollars:.4f}, and ${self.spent:.4f} of ${self.cap:.2f} are spent; raise --cap",
                kind=CAP,
            )
        self.set_aside += dollars
        self.requests += 1

    def settle(self, reserved: float, cost: float | None) -> None:
        """Count what a request has cost; None: as much as it could."""
        self.set_aside -= reserved
        self.spent += reserved if cost is None else cost


def most_of(request: ModelRequest, facts: ModelFacts) -> float:
    """The most that a request can cost, in dollars; 0.0 without a price."""
    if facts.price is None:
        return 0.0
    size = len(msgspec.json.encode([request.system, request.messages, request.tools]))
    searches = SEARCHES if request.provider_tools else 0
    output = int(request.params.get("max_tokens") or DEFAULT_OUTPUT)
    usage = Usage(input=size // BYTES_PER_TOKEN + SEARCH_TOKENS * bool(searches), output=output, web_searches=searches)
    return facts.price(usage) or 0.0


class MeteredModel:
    """A model whose requests are paid from a `Spend`."""

    def __init__(self, model: Model, facts: ModelFacts, spend: Spend) -> None:
        self._model, self._facts, self._spend = model, facts, spend
        self.usage = Usage()

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    def __getattr__(self, name: str) -> Any:
        """What else the model says about itself."""
        return getattr(self._model, name)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[Chunk]]:
        """Send the request, if it can be paid."""
        most = most_of(request, self._facts)
        self._spend.reserve(most)
        cost: float | None = None
        try:
            batches: Any = self._model.stream(request)
            async with aclosing(batches):
                async for batch in batches:
                    for chunk in batch:
                        if isinstance(chunk, UsageChunk):
                            self.usage += chunk.usage
                            cost = chunk.usage.cost if chunk.usage.cost is not None else cost
                    yield batch
        except ModelError as error:
            if error.kind in REFUSED:  # nothing was answered, so nothing is charged
                cost = 0.0
            raise
        finally:
            self._spend.settle(most, cost if self._facts.price is not None else 0.0)
