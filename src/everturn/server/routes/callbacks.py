"""Callback route: an external system delivers the result that a call waits for in `ctx.external`.

The token in the path is the authority: it is unguessable, and good for one result of one call. There is no login.
"""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.responses import Response

from everturn.server.errors import RequestError
from everturn.server.route import HttpRequestContext, Route

JSON: Final = "application/json"


async def complete(context: HttpRequestContext) -> Response:
    """Deliver the JSON body; without a body the value is null."""
    try:
        value = msgspec.json.decode(context.body) if context.body else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise RequestError("unfit", "the body must be JSON") from None
    await context.server_context.app.complete(context.ids["token"], value)
    return Response(status_code=204)


ROUTES: Final = [
    Route(
        method="POST",
        path="/api/callbacks/{token}",
        name="complete_callback",
        needs=None,
        about="Deliver the result that a call waits for; the body is the result.",
        handler=complete,
        takes="bytes",
        gives="none",
        media=(JSON,),
        status=204,
    )
]
