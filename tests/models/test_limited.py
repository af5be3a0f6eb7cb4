"""Rate limits of models behind HTTP: learned from headers and refusals, corrected by what was used, configured in a file."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from everturn import App, get_model
from everturn.clock import SystemClock
from everturn.config.load import load_config
from everturn.config.models import make_model
from everturn.core.rate_limits import LimiterHandle, ProviderLimits, RateLimit, Sender
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError
from everturn.limiter.bucket import RateLimitBucket
from everturn.limiter.limiter import RateLimiter
from everturn.models import ModelDeployment
from everturn.models.limited import bucket_key
from everturn.models.rate_headers import read_limits, refused_seconds
from everturn.stores.rate_limits import MemoryRateLimits
from everturn.transport import HttpRequest

ANSWER = b"".join(
    b"data: " + json.dumps(data).encode() + b"\n\n"
    for data in (
        {"choices": [{"index": 0, "delta": {"content": "fine"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 7, "total_tokens": 907}},
    )
)


class Response:
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status, self.headers, self._body = status, headers, body

    async def read(self) -> AsyncGenerator[bytes]:
        yield self._body

    async def finish(self) -> None:
        pass


class Wire:
    """A transport that answers with these headers, and remembers who asked."""

    def __init__(self, *answers: tuple[int, Mapping[str, str]]) -> None:
        self._answers = list(answers)
        self.keys: list[str] = []

    @asynccontextmanager
    async def post(self, post: HttpRequest) -> AsyncGenerator[Response]:
        self.keys.append(post.headers.get("authorization", ""))
        status, headers = self._answers.pop(0) if self._answers else (200, {})
        yield Response(status, headers, ANSWER if status == 200 else b'{"error":{"message":"slow down"}}')


def bucket_of(app: App, key: str = "k") -> RateLimitBucket:
    return app.limiter.bucket(bucket_key("http://127.0.0.1:1/v1", key, "m"), "")


def model(wire: Wire, **more: object) -> object:
    return get_model("m", base_url="http://127.0.0.1:1/v1", key="k", window=1000, transport=wire, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("headers", "limits"),
    [
        ({}, None),
        ({"x-ratelimit-limit-requests": "often"}, None),
        (
            {
                "x-ratelimit-limit-requests": "60",
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-limit-tokens": "150000",
            },
            ProviderLimits((60.0, 150_000.0, 0.0, 0.0), (59.0, -1.0, -1.0, -1.0)),
        ),
        (
            {
                "anthropic-ratelimit-requests-limit": "50",
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-input-tokens-limit": "30000",
                "anthropic-ratelimit-input-tokens-remaining": "-5",
                "anthropic-ratelimit-output-tokens-limit": "1e400",
            },
            ProviderLimits((50.0, 0.0, 30_000.0, 0.0), (0.0, -1.0, -1.0, -1.0)),
        ),
    ],
)
def test_headers(headers: dict[str, str], limits: ProviderLimits | None) -> None:
    assert read_limits(headers) == limits


def test_refusals() -> None:
    assert refused_seconds(200, {"retry-after": "3"}) is None
    assert refused_seconds(429, {"retry-after": "3"}) == 3.0
    assert refused_seconds(429, {}) == 0.0


async def test_a_limit_is_learned_from_the_first_response() -> None:
    wire = Wire((200, {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "40"}))
    async with App(model(wire)) as app:  # type: ignore[arg-type]
        assert not bucket_of(app).is_limited
        await (await app.chat().send("hello"))
        assert bucket_of(app).is_limited
        await asyncio.sleep(0)
        await (await app.chat().send("again"))  # out of what is left there
        assert bucket_of(app)._allowance.rate[0] == 1.0


async def test_learning_can_be_turned_off() -> None:
    from everturn.models import LimiterOptions

    wire = Wire((200, {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0"}))
    async with App(model(wire), limiter=LimiterOptions(learn=False)) as app:  # type: ignore[arg-type]
        await (await app.chat().send("hello"))
        assert not bucket_of(app).is_limited


async def test_a_refused_request_goes_to_the_other_key_at_once() -> None:
    wire = Wire((429, {"retry-after": "50"}))
    async with App(model(wire, deployments=[ModelDeployment(key="other")])) as app:  # type: ignore[arg-type]
        async with asyncio.timeout(20):  # and not after 50 seconds
            assert (await (await app.chat().send("hello"))).text == "fine"
            assert (await (await app.chat().send("again"))).text == "fine"
        assert wire.keys == ["Bearer k", "Bearer other", "Bearer other"]
        assert bucket_of(app).room < -40


async def test_what_was_used_corrects_the_estimate() -> None:
    limit = RateLimit(tokens_per_minute=60_000, burst_seconds=3)
    wire = Wire()
    async with App(model(wire, rate_limit=limit)) as app:  # type: ignore[arg-type]
        bucket = bucket_of(app)
        await (await app.chat().send("hello"))
        assert bucket.usual_output < 500  # it was 7
        assert bucket.input_factor > 1  # and more than the few words seemed to be


def test_a_key_is_not_sent_to_the_server_of_another_deployment() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        get_model("anthropic:m", key="k", deployments=[ModelDeployment("openai:m")], environ={})


def test_the_bucket_of_a_key_does_not_contain_it() -> None:
    assert "secret" not in bucket_key("http://x", "secret", "m")
    assert bucket_key("a", "b") != bucket_key("ab", "")


CONFIG = """
[rate_limits.claude]
requests_per_minute = 50

[models.house]
model = "m"
base_url = "http://127.0.0.1:1/v1"
rate_limit = "claude"

[[models.house.deployments]]
base_url = "http://127.0.0.1:2/v1"
rate_limit = "{name}"
"""


def test_a_file_configures_it(tmp_path: Path) -> None:
    path = tmp_path / "everturn.toml"
    path.write_text(CONFIG.format(name="claude"))
    config = load_config(str(path)).config
    assert "and 1 more" in repr(make_model("house", config.models["house"], {}, None, config.rate_limits))
    path.write_text(CONFIG.format(name="claud"))
    with pytest.raises(ConfigError, match=r"no rate limit 'claud' under \[rate_limits\]; did you mean"):
        load_config(str(path))


def test_the_limiter_is_no_part_of_the_value_of_a_request() -> None:
    """Requests are compared and encoded by tests, by adapters and by tools that record them."""
    limiters = [RateLimiter(MemoryRateLimits(time.time), SystemClock(), name) for name in "pq"]
    requests = [ModelRequest("m", "", [], [], {}, sender=Sender(LimiterHandle(limiter), "t")) for limiter in limiters]
    assert requests[0] == requests[1]
    assert msgspec.json.encode(requests[0]) == msgspec.json.encode(requests[1])
    assert requests[0] != replace(requests[1], sender=Sender(LimiterHandle(limiters[1]), "another"))
