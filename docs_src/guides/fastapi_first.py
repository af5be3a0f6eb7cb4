import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated

import msgspec
from fastapi import FastAPI, Header, HTTPException
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel

from everturn import Chat, Turn, TurnOptions, get_model, tool
from everturn.access.role_redaction import redact_for_client
from everturn.core.ports import Model
from everturn.errors import GateClosed
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="always")
async def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


def make_model() -> Model:
    if name := os.environ.get("EVERTURN_MODEL"):
        return get_model(name)
    asks = calls(call("send_mail", to="Ann", text="Lunch?"))
    return ScriptedModel(asks, say("Ann knows."))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    store = os.environ.get("TALKS", "talks.db")  # or postgresql://…
    model = make_model()
    async with Chat(model, tools=[send_mail], store=store) as first:
        # One runtime for all sessions; what was left unfinished goes on by itself.
        options = TurnOptions(system="You write mails. Never name our discounts.")
        app.state.chat = partial(Chat, model, runtime=first.runtime, options=options)
        yield


app = FastAPI(lifespan=lifespan)


def chat(session: str) -> Chat:
    return app.state.chat(session=session)  # costs nothing: make one for each request


Key = Annotated[str, Header()]


class Sent(BaseModel):
    turn: str


class Said(BaseModel):
    text: str


@app.post("/talks/{session}")
async def say_something(session: str, said: Said, idempotency_key: Key) -> Sent:
    turn = await chat(session).send(said.text, key=idempotency_key)  # twice is once
    return Sent(turn=turn.id)


@app.get("/talks/{session}/{turn}")
async def follow(session: str, turn: str, last_event_id: Key = "") -> Response:
    shown = events(chat(session).turn(turn), last_event_id)
    return StreamingResponse(shown, media_type="text/event-stream")


async def events(turn: Turn, after: str) -> AsyncGenerator[bytes, None]:
    stream = turn.events(after)
    async for shown in stream:  # to stop reading does not stop the turn
        told = redact_for_client(shown)  # or a browser reads your system prompt
        cursor, data = str(stream.cursor).encode(), msgspec.json.encode(told)
        yield b"id: %s\ndata: %s\n\n" % (cursor, data)


PERSON = "whoever your login has recognised"


class Answer(BaseModel):
    hash: str  # of what the person was shown
    allow: bool
    reason: str = ""


@app.get("/talks/{session}/gates/open")
async def open_gates(session: str) -> list[dict[str, object]]:
    return [msgspec.to_builtins(gate) for gate in await chat(session).gates()]


@app.post("/talks/{session}/gates/{gate}")
async def answer(session: str, gate: str, answer: Answer) -> None:
    talk = chat(session)
    asked = next((one for one in await talk.gates() if one.id == gate), None)
    if asked is None or asked.hash != answer.hash:
        raise HTTPException(409, "this is not asked any more; look at what is")
    try:
        if answer.allow:
            await talk.answer(asked, allow="once", by=PERSON)
        else:
            await talk.answer(asked, deny=answer.reason or True, by=PERSON)
    except GateClosed as error:
        raise HTTPException(409, str(error)) from None
