"""Compression of JSON answers: gzip, for clients that accept it.

Only what a `GET` reads is compressed, and nothing with a secret of the caller in it (`Route.is_secret`). The length of a
compressed answer depends on whether text that a stranger chose is also in it as a secret (BREACH), so a token never
shares a compressed answer with such text. Streams of events are never compressed: an event is sent when it happens.
"""

from __future__ import annotations

import asyncio
import gzip
from typing import Final

from starlette.responses import Response

from everturn.server.routing import Route

LEAST: Final = 1024  # bytes that are worth it
ELSEWHERE: Final = 64 * 1024  # bytes from which a thread does it: the event loop has others to serve
LEVEL: Final = 5


def accepts_gzip(header: str) -> bool:
    """Whether an `Accept-Encoding` header allows gzip; by name, for `*` is what programs say that know none."""
    for given in header.lower().split(","):
        name, _, params = given.partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return params.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


async def compressed(response: Response, route: Route, accepted: str) -> Response:
    """The same answer, compressed where its route and the client allow it. Both ways it says that it depends on that."""
    body = response.body
    is_json = response.headers.get("content-type", "").startswith("application/json")
    if route.method != "GET" or route.is_secret or not is_json or response.status_code != 200 or len(body) < LEAST:
        return response
    response.headers["vary"] = "accept-encoding"
    if not accepts_gzip(accepted):
        return response
    data = bytes(body)
    if len(data) < ELSEWHERE:
        packed = gzip.compress(data, LEVEL, mtime=0)
    else:
        packed = await asyncio.to_thread(gzip.compress, data, LEVEL, mtime=0)
    headers = {"vary": "accept-encoding", "content-encoding": "gzip"}
    return Response(packed, response.status_code, headers, media_type="application/json")
