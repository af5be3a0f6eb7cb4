"""Inbound hook routes: signed deliveries of other systems, and the list of hooks.

The signature is the authority of a delivery; there is no login.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import PlainTextResponse, Response

from everturn import api
from everturn.access.context.server_context import ServerContext
from everturn.access.hooks import HookAccess
from everturn.server.route import HttpRequestContext, Param, Route
from everturn.server.routes.api import LIMIT, route_for

MEDIA: Final = ("application/json", "application/x-www-form-urlencoded")


def _body_limit(context: ServerContext, ids: dict[str, str | None]) -> int:
    return context.inbound_hooks.body_limit(ids["hook"] or "")


async def _receive(context: HttpRequestContext) -> api.HookReceiptView | Response:
    hooks, request = context.server_context.inbound_hooks, context.request
    receipt = await hooks.receive(context.ids["hook"], request.headers, context.body)
    if receipt.outcome == "challenge":
        return PlainTextResponse(receipt.challenge)
    if receipt.outcome == "answered":  # Slack shows the body of any other response to a button
        return Response(status_code=200)
    return api.HookReceiptView(
        outcome=receipt.outcome, session=receipt.session, turn=receipt.turn, is_new=receipt.is_new
    )


HOOK: Final = "/api/settings/hooks/{hook}"

ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/hooks",
        HookAccess.list,
        "List the inbound hooks.",
        lambda a: a.access.hooks.list(),
        name="hooks",
        answer=api.HookList,
    ),
    route_for(
        "GET",
        "/api/hooks/{hook}/calls",
        HookAccess.calls,
        "List the last calls of an inbound hook, newest first.",
        lambda a: a.access.hooks.calls(a.ids["hook"], **a.query),
        name="hook_calls",
        answer=api.HookCallList,
        query=(Param("limit", LIMIT),),
    ),
    route_for(
        "PUT",
        HOOK,
        HookAccess.put,
        "Create an inbound hook, or change one. Only this response contains a secret that was made.",
        lambda a: a.access.hooks.put(a.ids["hook"], a.body),
        name="put_hook",
        body=api.NewHook,
        answer=api.HookWithSecret,
        is_secret=True,
    ),
    route_for(
        "POST",
        f"{HOOK}/secret",
        HookAccess.rotate_secret,
        "Replace the secret of an inbound hook; the one before is refused from now on.",
        lambda a: a.access.hooks.rotate_secret(a.ids["hook"], a.body),
        name="rotate_hook_secret",
        body=api.NewHookSecret,
        answer=api.HookWithSecret,
        is_secret=True,
    ),
    route_for(
        "DELETE",
        HOOK,
        HookAccess.delete,
        "Delete an inbound hook that an administrator created.",
        lambda a: a.access.hooks.delete(a.ids["hook"]),
        name="delete_hook",
        status=204,
    ),
    Route(
        method="POST",
        path="/api/hooks/{hook}",
        name="receive_hook",
        needs=None,
        about="Deliver a signed request of another system.",
        handler=_receive,
        takes="bytes",
        answer=api.HookReceiptView,
        media=MEDIA,
        status=202,
        body_limit=_body_limit,
    ),
]
