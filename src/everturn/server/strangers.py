"""How often somebody may ask without showing who they are, or with something that nobody knows: so many requests a second
for each address.

Behind a proxy all have one address, and one of them must not lock out the others: whoever was recognised lately is always
asked about, whatever else comes from there. Who comes for the first time while somebody tries keys may have to try again.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from everturn.errors import TooMuch
from everturn.server.guarding import Scope
from everturn.telemetry import metrics

RATE: Final = 20.0  # requests a second, in the long run
BURST: Final = 200.0  # at once
WRONG_RATE: Final = 10.0  # things a second that nobody knows, in the long run; each costs a question to the store
WRONG_BURST: Final = 100.0  # at once
ADDRESSES: Final = 10_000  # that are remembered; who was quiet for longest is forgotten first


class Strangers:
    """Those who have shown nothing, by address."""

    def __init__(self, now: Callable[[], float] = time.monotonic, rate: float = RATE, burst: float = BURST) -> None:
        self._now, self._rate, self._burst = now, rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # address -> how many it has left, and when

    def count(self, scope: Scope) -> None:
        """Let an address ask once more.

        Raises:
            TooMuch: it has asked too often.
        """
        address, now = _address(scope), self._now()
        left, then = self._left.pop(address, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        self._left[address] = (max(left - 1.0, 0.0), now)
        if len(self._left) > ADDRESSES:
            self._left.popitem(last=False)
        if left < 1.0:
            metrics.count("rate_limited_total", "strangers")
            raise TooMuch("too many requests from this address that do not say who asks", 1.0)

    def give_back(self, scope: Scope) -> None:
        """It was no stranger after all."""
        address = _address(scope)
        if address in self._left:
            left, then = self._left[address]
            self._left[address] = (min(self._burst, left + 1.0), then)


def _address(scope: Scope) -> str:
    """The address of whoever asks; of IPv6 the net, for everybody has a whole one."""
    client = scope.get("client")
    if not client:
        return ""
    try:
        found = ipaddress.ip_address(client[0])
    except ValueError:
        return str(client[0])
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else str(found)
