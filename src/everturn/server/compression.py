"""Compression of JSON answers: gzip, for clients that accept it.

Only responses to `GET` are compressed, and none that contains a secret of the caller (`Route.is_secret`). The length of a
compressed response reveals whether text that an attacker chose is also in it as a secret (BREACH), so a token never
shares a compressed response with such text. Event streams are never compressed: an event is sent when it happens.
"""

from __future__ import annotations

import asyncio
import gzip
from typing import Final

from starlette.responses import Response

from everturn.server.route import Route

MIN_COMPRESS_BYTES: Final = 1024  # bytes; shorter responses are not worth compressing
THREAD_COMPRESS_BYTES: Final = 64 * 1024  # bytes from which a thread compresses, so that the event loop stays free
LEVEL: Final = 5


def accepts_gzip(header: str) -> bool:
    """Whether an `Accept-Encoding` header names gzip. `*` does not count: programs send it that cannot decode gzip."""
    for coding in header.lower().split(","):
        name, _, params = coding.partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return params.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


async def compress_response(response: Response, route: Route, accepted: str) -> Response:
    """The same response, compressed where its route and the client allow it. `Vary` is set in both cases."""
    body = response.body
    is_json = response.headers.get("content-type", "").startswith("application/json")
    if (
        route.method != "GET"
        or route.is_secret
        or not is_json
        or response.status_code != 200
        or len(body) < MIN_COMPRESS_BYTES
    ):
        return response
    response.headers["vary"] = "accept-encoding"
    if not accepts_gzip(accepted):
        return response
    data = bytes(body)
    if len(data) < THREAD_COMPRESS_BYTES:
        packed = gzip.compress(data, LEVEL, mtime=0)
    else:
        packed = await asyncio.to_thread(gzip.compress, data, LEVEL, mtime=0)
    headers = {"vary": "accept-encoding", "content-encoding": "gzip"}
    return Response(packed, response.status_code, headers, media_type="application/json")
