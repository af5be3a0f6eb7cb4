"""Access tokens of a cloud: fetched in a thread, cached, and refreshed before they expire.

Requests that need a new token at the same time wait for one fetch. It runs in a thread of its own, because the
packages of the clouds block, and belongs to no request: a request that is cancelled leaves it to the others.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import ModelError
from everturn.transport import HttpRequest

REFRESH_BEFORE: Final = 300.0  # seconds before a token expires
USABLE: Final = 10.0  # seconds that a token must still be valid, if no new one can be had
EXCERPT: Final = 300  # characters of the error of a cloud's package


class AccessToken(Struct, frozen=True):
    """A token, and when it expires, in seconds since 1970."""

    text: str
    expires: float


class TokenSource:
    """Signs requests with a bearer token that `fetch` returns; `source` is its name in errors."""

    def __init__(self, fetch: Callable[[], AccessToken], source: str, now: Callable[[], float] = time.time) -> None:
        self._fetch, self._source, self._now = fetch, source, now
        self._lock = threading.Lock()
        self._token: AccessToken | None = None
        self._last = ""  # kept when it is forgotten: the error that says so may repeat it
        self._fetching: Future[AccessToken] | None = None

    async def sign(self, request: HttpRequest) -> HttpRequest:
        """Return the request with the token."""
        return replace(request, headers={**request.headers, "authorization": f"Bearer {await self._valid()}"})

    def secrets(self) -> Sequence[str]:
        """The token."""
        return (self._last,) if self._last else ()

    def forget(self) -> None:
        """Fetch a new token for the next request."""
        self._token = None

    async def _valid(self) -> str:
        token = self._token
        if token is not None and token.expires - self._now() > REFRESH_BEFORE:
            return token.text
        try:
            return (await asyncio.shield(asyncio.wrap_future(self._fetched()))).text
        except Exception as error:
            if token is not None and token.expires - self._now() > USABLE:
                return token.text
            is_passing = bool(getattr(error, "retryable", False))
            raise ModelError(
                f"{self._source} returned no access token: {str(error)[:EXCERPT] or type(error).__name__}",
                "network" if is_passing else "key",
                retryable=is_passing,
            ) from None

    def _fetched(self) -> Future[AccessToken]:
        """Return the fetch that is under way; start one if there is none."""
        with self._lock:
            if self._fetching is None:
                self._fetching = Future()
                threading.Thread(target=self._run, args=(self._fetching,), name="token", daemon=True).start()
            return self._fetching

    def _run(self, fetching: Future[AccessToken]) -> None:
        try:
            token = self._fetch()
        except BaseException as error:
            with self._lock:
                self._fetching = None
            fetching.set_exception(error)
            return
        with self._lock:
            self._token, self._last, self._fetching = token, token.text, None
        fetching.set_result(token)


class StaticToken:
    """Signs requests with a bearer token of the environment, which nobody refreshes."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def sign(self, request: HttpRequest) -> HttpRequest:
        """Return the request with the token."""
        return replace(request, headers={**request.headers, "authorization": f"Bearer {self._token}"})

    def secrets(self) -> Sequence[str]:
        """The token."""
        return (self._token,)

    def forget(self) -> None:
        """There is no other."""


__all__ = ["AccessToken", "StaticToken", "TokenSource"]
