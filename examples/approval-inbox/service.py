"""Requests → answers, with an inbox in between: a small web service that has Everturn inside.

python service.py                                      offline, with a model that reads amounts and nothing else
MODEL=openai:gpt-5.2 python service.py                 with a real one

POST /requests {"id": "…", "text": "…"}                somebody asks for something; the same id again is the same
GET  /requests/{id}                                    what became of it
GET  /inbox                                            what waits for a person, as JSON; GET / is a page of it
POST /inbox/{gate} {"hash": "…", "allow": true}        the answer, from whatever process and whenever it comes
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import page
import payments
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from everturn import App, Chat, EverturnError, Gate, Prompt, TurnSettings
from everturn.errors import UnknownSession
from everturn.events import Phase

HOME = Path(os.environ.get("INBOX_HOME", "inbox-data"))
SYSTEM = (
    "You handle requests of colleagues. Pay what they ask for with pay_invoice, and say in a sentence what happened."
)


def make_app() -> App:
    """What all requests run on. The log is a file: whatever was unfinished in it goes on when the service starts."""
    HOME.mkdir(exist_ok=True)
    return App(
        os.environ.get("MODEL") or payments.offline_model(),
        tools=[payments.pay_invoice],
        store=str(HOME / "talks.db"),
        settings=TurnSettings(prompt=Prompt(agent=SYSTEM)),
    )


def chat_of(request: Request, session: str) -> Chat:
    """A request is a session of its own, and its id is the session's name."""
    return Chat("", app=request.app.state.app, session=session)


async def open_gates(request: Request) -> list[Gate]:
    """What nobody has answered yet, in all sessions."""
    return [row.gate for row in await request.app.state.app.store.gates() if row.resolution is None]


async def take(request: Request) -> Response:
    """Take a request. It is safe when this answers, and sent again with its id it changes nothing."""
    body = await page.body_of(request)
    session, text = str(body.get("id", "")), str(body.get("text", ""))
    if not session.replace("-", "").isalnum() or not text:
        return JSONResponse({"error": 'say {"id": "letters-and-digits", "text": "what you want"}'}, 400)
    turn = await chat_of(request, session).send(text, key="request")
    return JSONResponse({"id": session, "is_new": turn.is_new}, 202)


async def show(request: Request) -> Response:
    """Say what became of a request."""
    chat = chat_of(request, request.path_params["id"])
    try:
        await chat.app.store.info(chat.session)
    except UnknownSession:
        return JSONResponse({"error": "there is no such request; POST /requests makes one"}, 404)
    messages = await chat.messages()  # none yet, in the moment between taking it and beginning with it
    phase = (await chat.turn(messages[-1].turn).state()).phase if messages else Phase.IDLE
    answer = messages[-1].text if phase is Phase.COMPLETED else ""
    return JSONResponse({"id": chat.session, "phase": phase.value, "answer": answer})


async def inbox(request: Request) -> Response:
    """List what waits, with the hash that an answer has to name."""
    return JSONResponse([page.as_json(gate) for gate in await open_gates(request)])


async def home(request: Request) -> Response:
    """The same for people."""
    return HTMLResponse(page.render(await open_gates(request)), headers=page.HEADERS)


async def answer(request: Request) -> Response:
    """Take an answer. It has to name the hash of what was shown, which no other page can know."""
    body = await page.body_of(request, is_form=True)
    gates = {gate.id: gate for gate in await open_gates(request)}
    gate = gates.get(request.path_params["gate"])
    if gate is None or body.get("hash") != gate.hash:
        return JSONResponse(
            {"error": "this was answered already, or is another one now; GET /inbox says what waits"}, 409
        )
    chat = chat_of(request, gate.session)
    reviewer = str(body.get("by") or "somebody")  # whom your login knows
    if body.get("allow") is True or body.get("button") == "allow":
        await chat.answer(gate, allow="once", by=reviewer)
    else:
        await chat.answer(gate, deny=str(body.get("why") or "") or True, by=reviewer)
    return RedirectResponse("/", 303) if "button" in body else JSONResponse({"taken": True})


async def refused(request: Request, error: Exception) -> Response:
    """Say in one line what is not taken."""
    known = isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail if known else str(error)}, error.status_code if known else 409)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[None]:
    """Start with the service, and go on with everything the last process left."""
    app.state.app = make_app()
    await app.state.app.start()
    yield
    await app.state.app.aclose()


app = Starlette(
    routes=[
        Route("/", home),
        Route("/requests", take, methods=["POST"]),
        Route("/requests/{id}", show),
        Route("/inbox", inbox),
        Route("/inbox/{gate}", answer, methods=["POST"]),
    ],
    lifespan=lifespan,
    middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
    exception_handlers={EverturnError: refused, HTTPException: refused},
)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8010")), log_level="warning")
