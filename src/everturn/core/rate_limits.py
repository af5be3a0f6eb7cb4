"""Rate limits of model providers: what is limited, who sends a request, and the ports of the limiter and its storage.

A bucket is what one limit of a provider counts: the requests and tokens of an API key with a model. Its state is
shared by all processes (`core.rate_limit_state`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

Priority = Literal["interactive", "background"]
"""Whether a person waits for a turn. While requests wait for a rate limit, those of interactive turns go first."""

DIMENSIONS: Final = ("requests", "tokens", "input_tokens", "output_tokens")
Amounts = tuple[float, float, float, float]
"""An amount for each of `DIMENSIONS`."""
NOTHING: Final[Amounts] = (0.0, 0.0, 0.0, 0.0)


class RateLimit(Struct, frozen=True):
    """The limits of a bucket; 0 is no limit. In any 60 seconds at most this much is sent."""

    requests_per_minute: float = 0.0
    tokens_per_minute: float = 0.0  # input and output
    input_tokens_per_minute: float = 0.0  # without those that the provider reads from its cache
    output_tokens_per_minute: float = 0.0
    burst_seconds: float = 3.0  # how much may be sent at once after a pause: what a steady stream sends in this time
    max_wait: float = 600.0  # seconds; a request that would wait longer fails at once
    fallback_after: float = 10.0  # the same where a fallback can answer

    @property
    def per_minute(self) -> Amounts:
        """The limits, in the order of `DIMENSIONS`."""
        return (
            self.requests_per_minute,
            self.tokens_per_minute,
            self.input_tokens_per_minute,
            self.output_tokens_per_minute,
        )


class BreakerPolicy(Struct, frozen=True):
    """When a circuit breaker opens: after this many failures in a row nothing is sent for a while, then one request."""

    failures: int = 5
    seconds: float = 30.0  # doubles each time the one request fails, too
    max_seconds: float = 300.0


class LimiterOptions(Struct, frozen=True):
    """The options of a limiter."""

    learn: bool = True  # whether limits are learned from the headers of responses; refusals always count
    breaker: BreakerPolicy = BreakerPolicy()


class ProviderLimits(Struct, frozen=True):
    """What a response says about the limits of its bucket: its limits per minute, and what is left of each."""

    per_minute: Amounts = NOTHING  # 0: not said
    remaining: Amounts = (-1.0, -1.0, -1.0, -1.0)  # -1: not said


class Permit(Protocol):
    """The permission to send one request."""

    def settle(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> None:
        """Record what the request really used, in place of the estimate."""
        ...


class Ticket(Permit, Protocol):
    """A request that waits for its permission."""

    @property
    def is_granted(self) -> bool:
        """Whether the request may be sent now."""
        ...

    @property
    def seconds(self) -> float:
        """The estimated wait from now on."""
        ...

    @property
    def is_for_breaker(self) -> bool:
        """Whether it waits because the circuit breaker is open."""
        ...

    async def wait_for_news(self, seconds: float) -> None:
        """Return when it is granted, or after this time."""
        ...

    def sent(self) -> None:
        """Record that the request is sent: its amounts cannot be given back any more."""
        ...

    def close(self) -> None:
        """Stop waiting; amounts that were granted and not used are given back."""
        ...


class Bucket(Protocol):
    """A bucket, as one process sees it."""

    @property
    def is_limited(self) -> bool:
        """Whether requests have to ask: a limit is configured, or the provider has told one lately."""
        ...

    @property
    def has_token_limit(self) -> bool:
        """Whether tokens are limited, and not only requests."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether the circuit breaker is open: nothing is sent."""
        ...

    @property
    def room(self) -> float:
        """The share of the limits that is free, from 1 to 0; below 0: the seconds that a request would wait."""
        ...

    @property
    def usual_output(self) -> float:
        """The mean output tokens of a request, for estimates."""
        ...

    @property
    def input_factor(self) -> float:
        """The tokens that the provider counts for one estimated token of input."""
        ...

    def try_take(self, cost: Amounts) -> Permit | None:
        """Take a permission that this process holds already; None: the request has to wait its turn."""
        ...

    def enqueue(self, sender: Sender, cost: Amounts) -> Ticket:
        """Add a request to the queue."""
        ...

    def count_failure(self) -> None:
        """Record that the provider failed."""
        ...

    def count_success(self) -> None:
        """Record that the provider answered."""
        ...


class RequestLimiter(Protocol):
    """The limiter of a process."""

    def bucket(self, key: str, name: str, limit: RateLimit | None = None) -> Bucket:
        """A bucket by its key; `name` is the model's, for metrics."""
        ...

    def observe(self, key: str, name: str, limits: ProviderLimits | None, refused_for: float | None) -> None:
        """Learn from a response: its limits, and for how long the provider refuses requests (HTTP 429)."""
        ...


@dataclass(init=False, repr=False)
class LimiterHandle:
    """The limiter of this process in a request, and the permit that it gave.

    A dataclass without fields: a request with it is compared, encoded and hashed as if it were not there.
    """

    def __init__(self, limiter: RequestLimiter, permit: Permit | None = None) -> None:
        self.limiter, self.permit = limiter, permit


class Sender(Struct, frozen=True):
    """Who sends a model request, and through which limiter."""

    handle: LimiterHandle
    tenant: str = ""
    weight: float = 1.0  # of the tenant, when several of them wait
    priority: Priority = "interactive"
    can_fall_back: bool = False  # another model answers if this one cannot: do not wait long

    @property
    def limiter(self) -> RequestLimiter:
        """The limiter of this process."""
        return self.handle.limiter

    @property
    def permit(self) -> Permit | None:
        """The permit to send the request, once there is one."""
        return self.handle.permit

    def with_permit(self, permit: Permit) -> Sender:
        """The sender of a request that may be sent."""
        return replace(self, handle=LimiterHandle(self.limiter, permit))


class RateLimitStore(Protocol):
    """The shared state of buckets, by their key."""

    async def update(self, key: str, change: Callable[[bytes, float], bytes | None]) -> None:
        """Replace the state of a bucket by what `change` returns for the state (b"": none) and the store's time.

        None changes nothing. `change` is called again if another process was faster.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        ...
