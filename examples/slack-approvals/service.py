"""Approvals in Slack: an outbound webhook posts a message with buttons, an inbound hook takes the click.

python service.py

POST /requests {"id": "…", "text": "…"}   a colleague asks for something
POST /events                              our own outbound webhook: a gate has opened, or was answered
POST /slack                               Slack's interactivity URL: somebody pressed a button
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import payments
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from everturn import App, Chat, EverturnError, Gate
from everturn.core.tenants.accounts import Tenant, User
from everturn.errors import HookRefused
from everturn.inbound_hooks import InboundHook, verify_delivery

HOME = Path(os.environ.get("APPROVALS_HOME", "approvals-data"))
PORT = int(os.environ.get("PORT", "8020"))
SLACK_API = os.environ.get("SLACK_API", "https://slack.com/api")
CHANNEL = os.environ.get("SLACK_CHANNEL", "#approvals")
APPROVERS = dict(pair.split("=") for pair in os.environ.get("SLACK_APPROVERS", "U0001=ada").split(","))
EVENTS = ("gate.opened", "gate.resolved")


def slack_hook() -> InboundHook:
    """A click: signed by Slack, and answered in the name of the user whom we know by the id of the Slack user."""
    return InboundHook(
        name="slack",
        scheme="slack",
        secrets=(os.environ["SLACK_SIGNING_SECRET"],),
        action="answer",
        answer="actions.0.value",
        user="user.id",
        users=APPROVERS,
    )


def message_of(gate: Gate, session: str) -> dict[str, Any]:
    """A Slack message. Each button contains the gate and the hash of what is shown: an old message answers nothing new."""
    shown = f"*{gate.tool}* for `{session}`\n```{json.dumps(json.loads(gate.arguments), indent=2)}```"
    buttons = [
        {
            "type": "button",
            "action_id": "approve" if allow else "deny",
            "text": {"type": "plain_text", "text": "Approve" if allow else "Deny"},
            "style": "primary" if allow else "danger",
            "value": json.dumps({"session": session, "gate": gate.id, "hash": gate.hash, "allow": allow}),
        }
        for allow in (True, False)
    ]
    section = {"type": "section", "text": {"type": "mrkdwn", "text": shown}}
    blocks = [section, {"type": "actions", "elements": buttons}]
    return {"channel": CHANNEL, "text": f"{gate.tool} waits for an approval", "blocks": blocks}


async def call_slack(method: str, body: dict[str, Any]) -> dict[str, Any]:
    """Call a method of Slack's Web API."""
    headers = {"authorization": f"Bearer {os.environ['SLACK_BOT_TOKEN']}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{SLACK_API}/{method}", json=body) as response,
    ):
        answer = await response.json()
    if not answer.get("ok"):
        raise EverturnError(f"Slack's {method}: {answer.get('error')}")
    return answer


async def take(request: Request) -> Response:
    """Take a request of a colleague; sent again with its id, it is the same."""
    body = await request.json()
    turn = await Chat("", app=request.app.state.app, session=str(body["id"])).send(str(body["text"]), key="request")
    return JSONResponse({"id": body["id"], "is_new": turn.is_new}, 202)


async def on_event(request: Request) -> Response:
    """Receive our own webhook. It has ids only; what is shown is read here. 2xx means done, else it is sent again."""
    app, body = request.app.state.app, await request.body()
    verify_delivery("standard", [request.app.state.secret], request.headers, body, app.clock.now())
    event = json.loads(body)
    session, id = event["data"]["session"], event["data"]["gate"]
    posted = HOME / f"{id}.json"  # where the message is
    if event["type"] == "gate.opened":
        rows = [row for row in await app.store.gates(session) if row.gate.id == id and row.resolution is None]
        if rows and not posted.exists():
            answer = await call_slack("chat.postMessage", message_of(rows[0].gate, session))
            posted.write_text(json.dumps({"channel": answer["channel"], "ts": answer["ts"]}))
    elif posted.exists():  # the buttons go, whoever answered and wherever
        await call_slack("chat.update", {**json.loads(posted.read_text()), "text": "Answered.", "blocks": []})
    return Response(status_code=204)


async def on_click(request: Request) -> Response:
    """Receive a click. The hook verifies, looks up the user and their role, and answers the gate once."""
    await request.app.state.app.inbound_hooks.receive("slack", request.headers, await request.body())
    return Response()


async def refused(request: Request, error: Exception) -> Response:
    """Say why in one line."""
    return JSONResponse({"error": str(error)}, 401 if isinstance(error, HookRefused) else 409)


@asynccontextmanager
async def lifespan(service: Starlette) -> AsyncGenerator[None]:
    """Start with the service, and continue what the last process left."""
    model = os.environ.get("MODEL") or payments.offline_model()
    async with App(model, tools=[payments.pay_invoice], store=str(HOME / "talks.db")) as app:
        app.webhooks.allow(f"127.0.0.1:{PORT}")
        app.inbound_hooks.add(slack_hook())
        await app.store.accounts.put_tenant(Tenant("local"))
        for user in APPROVERS.values():
            await app.store.accounts.put_user(User("local", user, role="approver"))
        found = await app.webhooks.list()
        webhook = found[0] if found else (await app.webhooks.create(f"http://127.0.0.1:{PORT}/events", EVENTS)).webhook
        service.state.app, service.state.secret = app, await app.webhooks.secret(webhook.id)
        yield


service = Starlette(
    routes=[
        Route("/requests", take, methods=["POST"]),
        Route("/events", on_event, methods=["POST"]),
        Route("/slack", on_click, methods=["POST"]),
    ],
    lifespan=lifespan,
    exception_handlers={EverturnError: refused},
)

if __name__ == "__main__":
    HOME.mkdir(exist_ok=True)
    uvicorn.run(service, host="127.0.0.1", port=PORT, log_level="warning")
