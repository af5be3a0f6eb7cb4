"""How often somebody may ask without showing who they are: so many requests a second for each address.

Whoever shows something is always asked about: behind a proxy all have one address, and one of them must not lock out the
others.
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
ADDRESSES: Final = 10_000  # that are remembered; who was quiet for longest is forgotten first


class Strangers:
    """Those who have shown nothing, by address."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # address -> how many it has left, and when

    def count(self, scope: Scope) -> None:
        """Let an address ask once more.

        Raises:
            TooMuch: it has asked too often.
        """
        address, now = _address(scope), self._now()
        left, then = self._left.pop(address, (BURST, now))
        left = min(BURST, left + (now - then) * RATE)
        self._left[address] = (max(left - 1.0, 0.0), now)
        if len(self._left) > ADDRESSES:
            self._left.popitem(last=False)
        if left < 1.0:
            metrics.count("rate_limited_total", "strangers")
            raise TooMuch("too many requests from this address that do not say who asks", 1.0)


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
