"""The body of a request → bytes: not too many, not too slowly, and not too many of them at once."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from typing import Final

from everturn.config.options import ServerOptions
from everturn.server.guarding import Receive
from everturn.server.problems import Refusal
from everturn.server.routing import Route

PACE: Final = 64 * 1024
"""Bytes per second that a body must have brought, on the whole, once its first seconds are over."""

LONGEST: Final = 600.0
"""Seconds that a body may take, however long it is."""

HELD: Final = 512 * 1024 * 1024
"""Bytes of long bodies that a node holds at once, before it asks people to come again."""

SHARE: Final = HELD // 4
"""Bytes of these that one tenant may have; of a single body it may be more, if its limit is."""

SMALL: Final = 64 * 1024
"""Bytes of each body that are not counted: whoever fills the node with long ones keeps nobody from talking."""

STRANGER: Final = 8 * 1024
"""Bytes of a body that are read of somebody who has not shown who they are."""

_MEDIA_TYPE = re.compile(r"^[a-zA-Z0-9][a-zA-Z0-9.+_-]{0,99}/[a-zA-Z0-9][a-zA-Z0-9.+_-]{0,99}$")
_SAYS_UTF8 = re.compile(r"^\s*charset\s*=\s*\"?utf-?8\"?\s*$", re.IGNORECASE)
CLOSE: Final = {"connection": "close"}


def check_type(route: Route, given: str | None, has_body: bool) -> None:
    """See that a body comes as what the route takes.

    Raises:
        Refusal: `media_type`.
    """
    kind, _, more = (given or "").partition(";")
    kind = kind.strip().lower()
    if route.takes == "bytes":
        if not _MEDIA_TYPE.match(kind) or (route.media != ("*/*",) and kind not in route.media):
            raise Refusal("media_type", f"send this as Content-Type: {' or '.join(route.media)}", "content-type")
    elif route.body is None:
        if has_body:
            raise Refusal("media_type", "nothing is taken here: send no body", "content-type")
    elif (has_body or given is not None) and (kind != "application/json" or (more and not _SAYS_UTF8.match(more))):
        raise Refusal("media_type", "send this as Content-Type: application/json", "content-type")


class Pot:
    """What is held in memory for people, by tenant: of each body or answer what is more than a little."""

    def __init__(self) -> None:
        self.held = 0
        self._of: Counter[str] = Counter()

    def change(self, tenant: str, before: int, size: int) -> None:
        """What was so long is so long now."""
        more = max(size - SMALL, 0) - max(before - SMALL, 0)
        if more:
            self.held += more
            self._of[tenant] += more
            if not self._of[tenant]:
                del self._of[tenant]

    def is_over(self, tenant: str, most: int) -> bool:
        """Whether there is too much of it; a single one may be as long as `most`."""
        return self.held > HELD or self._of[tenant] > max(SHARE, most)


class Bodies:
    """The bodies that are being read on this node."""

    def __init__(self, options: ServerOptions) -> None:
        self._options, self.pot = options, Pot()

    async def read(self, receive: Receive, length: str | None, limit: int, tenant: str = "") -> bytes:
        """All of a body; whoever asked for it gives its size back by `let_go`. Without a tenant it is a stranger's.

        Raises:
            Refusal: `too_large`, `too_slow`, or `busy`: other bodies take all the place there is.
        """
        limit = limit if tenant else min(limit, STRANGER)
        if length is not None and (not length.isdigit() or len(length) > 18 or int(length) > limit):
            raise Refusal("too_large", f"at most {limit} bytes are taken here", headers=CLOSE)
        pieces: list[bytes] = []
        size, began = 0, time.monotonic()
        grace = min(self._options.body_time, self._options.header_time)
        try:
            while True:
                until = began + min(grace + size / PACE, LONGEST)
                patience = min(self._options.body_time, until - time.monotonic())
                message = await _next(receive, patience)
                piece: bytes = message.get("body", b"")
                size += len(piece)
                self.pot.change(tenant, size - len(piece), size)
                if size > limit:
                    raise Refusal("too_large", f"at most {limit} bytes are taken here", headers=CLOSE)
                if self.pot.is_over(tenant, limit):
                    raise Refusal("busy", headers=CLOSE)
                pieces.append(piece)
                if not message.get("more_body"):
                    return b"".join(pieces)
        except BaseException:
            self.pot.change(tenant, size, 0)
            raise

    def let_go(self, data: bytes, tenant: str = "") -> None:
        """A body is no longer held."""
        self.pot.change(tenant, len(data), 0)


async def _next(receive: Receive, patience: float) -> dict[str, bytes]:
    try:
        async with asyncio.timeout(max(0.0, patience)):
            message = await receive()
    except TimeoutError:
        raise Refusal("too_slow", headers=CLOSE) from None
    if message["type"] == "http.disconnect":
        raise Gone
    return dict(message)


class Gone(Exception):
    """Whoever asked has hung up; nobody is there to be answered."""
