"""Request body limits: reads a body with limits on its size, its speed and the memory of all bodies together."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from typing import Final

from everturn.config.server_options import ServerOptions
from everturn.server.errors import RequestError
from everturn.server.middleware import Receive
from everturn.server.route import Route

MIN_BYTES_PER_SECOND: Final = 64 * 1024
"""Bytes per second: the minimum average rate of a body after its first seconds."""

BODY_TIMEOUT: Final = 600.0
"""Seconds that a body may take, however long it is."""

MEMORY_LIMIT: Final = 512 * 1024 * 1024
"""Bytes of long bodies that a node holds at once; beyond that it answers 503."""

TENANT_MEMORY_LIMIT: Final = MEMORY_LIMIT // 4
"""Bytes of these that one tenant may hold; a single body may exceed it, up to its own limit."""

UNCOUNTED_BYTES: Final = 64 * 1024
"""Bytes of each body that are not counted, so that a node full of long bodies still accepts short messages."""

ANONYMOUS_BODY_LIMIT: Final = 8 * 1024
"""Bytes of a body that are read from an unauthenticated caller."""

_MEDIA_TYPE = re.compile(r"^[a-zA-Z0-9][a-zA-Z0-9.+_-]{0,99}/[a-zA-Z0-9][a-zA-Z0-9.+_-]{0,99}$")
_SAYS_UTF8 = re.compile(r"^\s*charset\s*=\s*\"?utf-?8\"?\s*$", re.IGNORECASE)
CLOSE: Final = {"connection": "close"}


def check_content_type(route: Route, content_type: str | None, has_body: bool) -> None:
    """Check that the Content-Type of a body is one that the route takes.

    Raises:
        RequestError: `media_type`.
    """
    kind, _, more = (content_type or "").partition(";")
    kind = kind.strip().lower()
    if route.takes == "bytes":
        if not _MEDIA_TYPE.match(kind) or (route.media != ("*/*",) and kind not in route.media):
            raise RequestError("media_type", f"send this as Content-Type: {' or '.join(route.media)}", "content-type")
    elif route.body is None:
        if has_body:
            raise RequestError("media_type", "this route accepts no body", "content-type")
    elif (has_body or content_type is not None) and (
        kind != "application/json" or (more and not _SAYS_UTF8.match(more))
    ):
        raise RequestError("media_type", "send this as Content-Type: application/json", "content-type")


class MemoryBudget:
    """Counts the bytes held in memory for bodies and responses, by tenant. The first `SMALL` bytes of each are free."""

    def __init__(self) -> None:
        self.held = 0
        self._per_tenant: Counter[str] = Counter()

    def resize(self, tenant: str, before: int, size: int) -> None:
        """Change the size of one body or response from `before` to `size`."""
        more = max(size - UNCOUNTED_BYTES, 0) - max(before - UNCOUNTED_BYTES, 0)
        if more:
            self.held += more
            self._per_tenant[tenant] += more
            if not self._per_tenant[tenant]:
                del self._per_tenant[tenant]

    def is_over(self, tenant: str, most: int) -> bool:
        """Whether the node or the tenant holds too much; a single body may be as long as `most`."""
        return self.held > MEMORY_LIMIT or self._per_tenant[tenant] > max(TENANT_MEMORY_LIMIT, most)


class BodyReader:
    """Reads request bodies on this node and counts the memory they hold."""

    def __init__(self, options: ServerOptions) -> None:
        self._options, self.memory = options, MemoryBudget()

    async def read(
        self, receive: Receive, length: str | None, limit: int, tenant: str = "", anonymous: int = 0
    ) -> bytes:
        """Read a whole body. The caller releases it with `release`. An empty `tenant` means an unauthenticated caller;
        `anonymous` is then the limit of its route, if that takes more than a little.

        Raises:
            RequestError: `too_large`, `too_slow`, or `busy` (other bodies use all the memory there is).
        """
        limit = limit if tenant else anonymous or min(limit, ANONYMOUS_BODY_LIMIT)
        if length is not None and (not length.isdigit() or len(length) > 18 or int(length) > limit):
            raise RequestError(
                "too_large", f"the body is too large: at most {limit} bytes are accepted here", headers=CLOSE
            )
        pieces: list[bytes] = []
        size, began = 0, time.monotonic()
        grace = min(self._options.body_time, self._options.header_time)
        try:
            while True:
                until = began + min(grace + size / MIN_BYTES_PER_SECOND, BODY_TIMEOUT)
                timeout = min(self._options.body_time, until - time.monotonic())
                message = await _next(receive, timeout)
                piece: bytes = message.get("body", b"")
                size += len(piece)
                self.memory.resize(tenant, size - len(piece), size)
                if size > limit:
                    raise RequestError(
                        "too_large", f"the body is too large: at most {limit} bytes are accepted here", headers=CLOSE
                    )
                if self.memory.is_over(tenant, limit):
                    raise RequestError("busy", headers=CLOSE)
                pieces.append(piece)
                if not message.get("more_body"):
                    return b"".join(pieces)
        except BaseException:
            self.memory.resize(tenant, size, 0)
            raise

    def release(self, data: bytes, tenant: str = "") -> None:
        """Release a body that `read` returned."""
        self.memory.resize(tenant, len(data), 0)


async def _next(receive: Receive, seconds: float) -> dict[str, bytes]:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            message = await receive()
    except TimeoutError:
        raise RequestError("too_slow", headers=CLOSE) from None
    if message["type"] == "http.disconnect":
        raise ClientDisconnected
    return dict(message)


class ClientDisconnected(Exception):
    """The client closed the connection, so no response can be sent."""
