"""Limited model: sends a request when the rate limit of its provider allows it, to the deployment with most room.

A deployment is a place where the model can be had: an API key, or another server. A request waits for one of them
before it is sent, and says so with `WaitChunk`s. A deployment that fails is left alone for a while (circuit breaker)
if there is another one, or a fallback.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.core.chunks import Chunk, RetryChunk, UsageChunk, WaitChunk
from everturn.core.context.token_estimate import BYTES_PER_TOKEN, FILE_TOKENS, estimate_tokens
from everturn.core.file_uploads import AccountUploads, uploads_of
from everturn.core.modality import Modality, ProviderToolMix, modality_of, provider_tool_mix, provider_tools_of
from everturn.core.ports import Model
from everturn.core.rate_limits import Amounts, Bucket, RateLimit, RequestLimiter, Sender, Ticket
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError, ModelError
from everturn.models.load import load
from everturn.models.prices import ModelFacts, facts_of
from everturn.transport import Transport

SHOW_AFTER: Final = 0.3  # seconds of waiting before anybody is told
NEWS_INTERVAL: Final = 2.0  # seconds between two reports of the wait
DEFAULT_LIMIT: Final = RateLimit()
FAILURES: Final = frozenset({"server", "network", "stalled", "truncated"})
_HASH: Final = 24  # characters


class ModelDeployment(Struct, frozen=True):
    """A further place where a model can be had, as `get_model` takes it."""

    model: str = ""  # vendor:model; "": as in the first place
    base_url: str = ""
    key: str = ""  # "": the vendor's own variable
    rate_limit: RateLimit | None = None
    rate_limit_name: str = ""
    transport: Transport | None = None


class Deployment(Struct, frozen=True):
    """A place where a model can be had. Deployments with the same `bucket` share a rate limit."""

    model: Model
    bucket: str
    limit: RateLimit | None = None


def bucket_key(*parts: str) -> str:
    """Return the key of a bucket: a hash, because it is stored and an API key is a part of it."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_HASH]


class LimitedModel:
    """A model at one or more deployments, whose requests pass the limiter of the process that sends them."""

    def __init__(self, *deployments: Deployment) -> None:
        if len(kinds := {modality_of(deployment.model) for deployment in deployments}) != 1:
            raise ConfigError(f"the deployments of a model must be of one type; these are {sorted(kinds)}")
        self._deployments = deployments
        self._only = deployments[0] if len(deployments) == 1 else None

    @property
    def name(self) -> str:
        """The name that a UI shows."""
        return self._deployments[0].model.name

    @property
    def modality(self) -> Modality:
        """What the model is for."""
        return modality_of(self._deployments[0].model)

    @property
    def uploads(self) -> tuple[AccountUploads, ...]:
        """The accounts to which it uploads files."""
        return tuple(account for place in self._deployments for account in uploads_of(place.model))

    @property
    def provider_tools(self) -> frozenset[str]:
        """The tools that its provider can run."""
        return provider_tools_of(self._deployments[0].model)

    @property
    def provider_tool_mix(self) -> ProviderToolMix:
        """What such a tool can be beside in a request."""
        return provider_tool_mix(self._deployments[0].model)

    def __repr__(self) -> str:
        """The model's own words for itself."""
        others = f" and {len(self._deployments) - 1} more" if self._only is None else ""
        return f"{self._deployments[0].model!r}{others}"

    async def facts(self) -> ModelFacts:
        """Return the model's price and context window, where they are known."""
        return await facts_of(self._deployments[0].model)

    def load(self) -> None:
        """Import what the first request needs."""
        for deployment in self._deployments:
            load(deployment.model)

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Send the request: at once if nothing limits it, or when its turn comes."""
        sender, only = request.sender, self._only
        if sender is None:
            return self._deployments[0].model.stream(request)
        if only is None or sender.can_fall_back:
            return self._send(request, sender)
        bucket = sender.limiter.bucket(only.bucket, only.model.name, only.limit)
        if not bucket.is_limited:
            return only.model.stream(request)
        permit = bucket.try_take(_cost(request, bucket))
        if permit is None:
            return self._send(request, sender)
        return only.model.stream(replace(request, sender=sender.with_permit(permit)))

    async def _send(self, request: ModelRequest, sender: Sender) -> AsyncGenerator[Sequence[Chunk]]:
        places = _places(self._deployments, sender.limiter)
        deployment, bucket = _best(places)
        ticket = _enqueue(request, sender, bucket)
        try:
            is_shown = False
            while not ticket.is_granted:
                await ticket.wait_for_news(NEWS_INTERVAL if is_shown else SHOW_AFTER)
                if ticket.is_granted:
                    break
                _check_wait(self.name, deployment, sender, ticket)
                other = _best(places)
                if other[1] is not bucket and other[1].room > min(-1.0, -ticket.seconds / 2):
                    ticket.close()
                    deployment, bucket = other
                    ticket = _enqueue(request, sender, bucket)
                is_shown = True
                yield (WaitChunk(ticket.seconds, "breaker" if ticket.is_for_breaker else "rate_limit"),)
            if is_shown:
                yield (WaitChunk(0.0, ""),)
            ticket.sent()
        finally:
            ticket.close()
        has_spoken = False
        batches = deployment.model.stream(replace(request, sender=sender.with_permit(ticket)))
        try:
            async for batch in batches:
                has_spoken = has_spoken or any(type(chunk) not in (UsageChunk, RetryChunk) for chunk in batch)
                yield batch
            bucket.count_success()
        except ModelError as error:
            if error.kind in FAILURES:
                bucket.count_failure()
            elif error.kind != "rate":
                bucket.count_success()  # it works, and refuses this request
            has_other = any(place is not bucket and place.room >= 0 and not place.is_open for _, place in places)
            if error.retryable and not has_spoken and has_other:
                raise ModelError(str(error), error.kind, retryable=True, retry_after=0.0) from error
            raise
        finally:
            if (aclose := getattr(batches, "aclose", None)) is not None:
                await aclose()


def _places(deployments: Sequence[Deployment], limiter: RequestLimiter) -> list[tuple[Deployment, Bucket]]:
    return [(each, limiter.bucket(each.bucket, each.model.name, each.limit)) for each in deployments]


def _best(places: Sequence[tuple[Deployment, Bucket]]) -> tuple[Deployment, Bucket]:
    """The deployment with most room, or the shortest wait; the first one of equals."""
    return max(places, key=lambda place: (not place[1].is_open, place[1].room))


def _enqueue(request: ModelRequest, sender: Sender, bucket: Bucket) -> Ticket:
    return bucket.enqueue(sender, _cost(request, bucket))


def _check_wait(name: str, deployment: Deployment, sender: Sender, ticket: Ticket) -> None:
    """Give up a request that would wait too long.

    Raises:
        ModelError: it would; the message names the setting.
    """
    limit = deployment.limit or DEFAULT_LIMIT
    setting, most = ("fallback_after", limit.fallback_after) if sender.can_fall_back else ("max_wait", limit.max_wait)
    if ticket.is_for_breaker and sender.can_fall_back:
        raise ModelError(
            f"{name} failed several times in a row and is not used for {ticket.seconds:.0f} s (circuit breaker: "
            "[limiter] breaker_failures and breaker_seconds)",
            kind="server",
        )
    if ticket.seconds > most:
        raise ModelError(
            f"{name}: the provider's rate limit would hold this request for about {ticket.seconds:.0f} s, and {setting} "
            f"is {most:g} s; raise {setting} in [rate_limits], add a deployment or a fallback, or send less",
            kind="rate",
        )


def _cost(request: ModelRequest, bucket: Bucket) -> Amounts:
    """Estimate what a request costs; tokens only if they are limited."""
    if not bucket.has_token_limit:
        return (1.0, 0.0, 0.0, 0.0)
    size = estimate_tokens(request.system) + FILE_TOKENS * len(request.files)
    for message in request.messages:
        for part in message.parts:
            size += len(getattr(part, "text", "") or getattr(part, "arguments", "")) // BYTES_PER_TOKEN + 4
    size += sum(len(spec.description) + len(msgspec.json.encode(spec.schema)) for spec in request.tools) // 4
    max_tokens: Any = request.params.get("max_tokens")
    output = (
        min(bucket.usual_output, max_tokens) if isinstance(max_tokens, int) and max_tokens > 0 else bucket.usual_output
    )
    tokens = size * bucket.input_factor
    return (1.0, tokens + output, tokens, output)
