"""Access tokens of a cloud: one fetch for all who wait, a new one before the old one expires, and errors that say why."""

from __future__ import annotations

import asyncio
import threading

import pytest

from everturn.errors import ModelError
from everturn.models.clouds.tokens import REFRESH_BEFORE, AccessToken, TokenSource
from everturn.transport import HttpRequest

REQUEST = HttpRequest("https://h/", {"content-type": "application/json"}, b"{}")


class Issuer:
    """Issues numbered tokens that are valid for an hour of its own clock."""

    def __init__(self) -> None:
        self.time, self.issued = 1000.0, 0
        self.error: Exception | None = None
        self.may_go = threading.Event()
        self.may_go.set()

    def __call__(self) -> AccessToken:
        self.may_go.wait(10)
        if self.error is not None:
            raise self.error
        self.issued += 1
        return AccessToken(f"token-{self.issued}", self.time + 3600)

    def source(self) -> TokenSource:
        return TokenSource(self, "Acme", now=lambda: self.time)


async def token_of(source: TokenSource) -> str:
    return (await source.sign(REQUEST)).headers["authorization"].removeprefix("Bearer ")


async def test_requests_at_the_same_time_wait_for_one_fetch() -> None:
    issuer = Issuer()
    issuer.may_go.clear()
    source = issuer.source()
    waiting = [asyncio.create_task(token_of(source)) for _ in range(20)]
    await asyncio.sleep(0)
    waiting[0].cancel()  # the others still get it
    await asyncio.sleep(0)
    issuer.may_go.set()

    assert await asyncio.gather(*waiting[1:]) == ["token-1"] * 19
    assert issuer.issued == 1


async def test_a_token_is_renewed_before_it_expires() -> None:
    issuer = Issuer()
    source = issuer.source()
    assert await token_of(source) == "token-1"

    issuer.time += 3600 - REFRESH_BEFORE - 1
    assert await token_of(source) == "token-1"
    issuer.time += 2
    assert await token_of(source) == "token-2"


async def test_a_token_that_is_still_valid_serves_while_no_new_one_can_be_had() -> None:
    issuer = Issuer()
    source = issuer.source()
    await token_of(source)

    issuer.error, issuer.time = OSError("no network"), issuer.time + 3600 - 60
    assert await token_of(source) == "token-1"
    issuer.time += 55
    with pytest.raises(ModelError, match="Acme returned no access token: no network") as caught:
        await token_of(source)
    assert (caught.value.kind, caught.value.retryable) == ("key", False)
    issuer.error = None
    assert await token_of(source) == "token-2"


async def test_an_error_that_may_pass_can_be_retried() -> None:
    class Passing(Exception):
        retryable = True

    issuer = Issuer()
    issuer.error = Passing("busy")
    with pytest.raises(ModelError) as caught:
        await token_of(issuer.source())
    assert (caught.value.kind, caught.value.retryable) == ("network", True)


def test_a_source_serves_one_event_loop_after_another() -> None:
    issuer = Issuer()
    source = issuer.source()

    assert [asyncio.run(token_of(source)) for _ in range(2)] == ["token-1"] * 2
    source.forget()
    assert asyncio.run(token_of(source)) == "token-2"
    assert list(source.secrets()) == ["token-2"]
