"""Model transport under an egress policy: for servers that an administrator named at run time, and not the operator's file.

Each request resolves the name once, checks every address it has, and connects to those addresses alone: a name that
leads to the private network later is refused then.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from everturn.egress.fetch import pinned_connector
from everturn.egress.policy import EgressPolicy
from everturn.errors import AddressRefused, FetchFailed, ModelError
from everturn.transport import HttpRequest
from everturn.transport.live import HttpTransport, LiveResponse, open_pool, send_request


class GuardedTransport(HttpTransport):
    """HTTP transport to public addresses, and to those that the operator has allowed."""

    def __init__(self, policy: EgressPolicy) -> None:
        self._policy = policy

    @asynccontextmanager
    async def post(self, post: HttpRequest) -> AsyncGenerator[LiveResponse]:
        """Send a request over a connection of its own, without a proxy."""
        try:
            place = await self._policy.resolve(self._policy.parse(post.url))
        except AddressRefused as error:
            raise ModelError(str(error), kind="network") from None
        except FetchFailed as error:
            raise ModelError(str(error), kind="network", retryable=True) from None
        async with open_pool(pinned_connector(place, None)) as session, send_request(session, post) as response:
            yield response
