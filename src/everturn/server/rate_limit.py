"""Rate limit for unauthenticated requests: a token bucket per address, for requests without or with an unknown credential.

Behind a proxy all clients share one address, and one of them must not lock out the others: a recently recognised
credential is always checked, whatever else comes from its address. A client that comes for the first time while another
one tries keys may have to retry.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from everturn.errors import TooMuch
from everturn.server.middleware import Scope
from everturn.telemetry import metrics

RATE: Final = 20.0  # requests a second, in the long run
BURST: Final = 200.0  # at once
UNKNOWN_CREDENTIAL_RATE: Final = 10.0  # unknown credentials a second, in the long run; each costs a query to the store
UNKNOWN_CREDENTIAL_BURST: Final = 100.0  # at once
ADDRESS_LIMIT: Final = 10_000  # addresses that are remembered; the longest idle one is dropped first


class AnonymousRateLimit:
    """A token bucket for each client address."""

    def __init__(self, now: Callable[[], float] = time.monotonic, rate: float = RATE, burst: float = BURST) -> None:
        self._now, self._rate, self._burst = now, rate, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # address -> tokens left, and when

    def take(self, scope: Scope) -> None:
        """Take a token of the request's address.

        Raises:
            TooMuch: the bucket is empty.
        """
        address, now = client_address(scope), self._now()
        left, then = self._buckets.pop(address, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        self._buckets[address] = (max(left - 1.0, 0.0), now)
        if len(self._buckets) > ADDRESS_LIMIT:
            self._buckets.popitem(last=False)
        if left < 1.0:
            metrics.count("rate_limited_total", "strangers")
            raise TooMuch("too many unauthenticated requests from this address", 1.0)

    def refund(self, scope: Scope) -> None:
        """Return the token: the credential was known after all."""
        address = client_address(scope)
        if address in self._buckets:
            left, then = self._buckets[address]
            self._buckets[address] = (min(self._burst, left + 1.0), then)


def client_address(scope: Scope) -> str:
    """The client's address; of IPv6 the /64 network, because every client has a whole one."""
    client = scope.get("client")
    if not client:
        return ""
    try:
        address = ipaddress.ip_address(client[0])
    except ValueError:
        return str(client[0])
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)
