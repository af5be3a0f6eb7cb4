import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

import msgspec
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel

from everturn import Agent, App, Chat, Turn, get_model, tool
from everturn.access import redact_for_client
from everturn.errors import (
    GateClosed,
    KeyConflict,
    UnknownSession,
    UnknownTurn,
)
from everturn.models import Model
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="always")
async def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


def make_model() -> Model:
    if name := os.environ.get("EVERTURN_MODEL"):
        return get_model(name)
    step = calls(call("send_mail", to="Ann", text="Lunch?"))
    return ScriptedModel(step, say("Ann knows."))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    assistant = Agent(
        make_model(),
        name="assistant",
        instructions="You write mails. Never name our discounts.",
        tools=[send_mail],
    )
    store = os.environ.get("TALKS", "talks.db")  # or postgresql://…
    # Starting the App also continues the unfinished turns in the store.
    async with App(agents=[assistant], store=store) as app.state.everturn:
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(UnknownSession)
@app.exception_handler(UnknownTurn)
async def not_found(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, 404)


def get_chat(session: str) -> Chat:
    return app.state.everturn.chat(session, agent="assistant")


def get_user() -> str:
    return "ada"  # take the user from your own login


SessionChat = Annotated[Chat, Depends(get_chat)]
User = Annotated[str, Depends(get_user)]
TextHeader = Annotated[str, Header()]


class NewMessage(BaseModel):
    text: str


class StartedTurn(BaseModel):
    turn: str


@app.post("/talks/{session}")
async def send_message(
    chat: SessionChat,
    user: User,
    message: NewMessage,
    idempotency_key: TextHeader,
) -> StartedTurn:
    # A repeated request with the same key returns the same turn.
    try:
        turn = await chat.send(message.text, key=idempotency_key, by=user)
    except KeyConflict as error:  # the key of another message
        raise HTTPException(409, str(error)) from None
    return StartedTurn(turn=turn.id)


@app.get("/talks/{session}/{turn}")
async def follow_turn(
    chat: SessionChat,
    turn: str,
    last_event_id: TextHeader = "",
) -> Response:
    followed = chat.turn(turn)
    await followed.state()  # raises UnknownTurn before the stream begins
    events = encode_events(followed, last_event_id)
    return StreamingResponse(events, media_type="text/event-stream")


async def encode_events(turn: Turn, after: str) -> AsyncGenerator[bytes, None]:
    stream = turn.events(after)
    async for event in stream:  # if the client disconnects, the turn continues
        public = redact_for_client(event)  # removes the system prompt, for example
        cursor, data = str(stream.cursor).encode(), msgspec.json.encode(public)
        yield b"id: %s\ndata: %s\n\n" % (cursor, data)


class Answer(BaseModel):
    hash: str  # of the gate that the person saw
    allow: bool
    reason: str = ""


@app.get("/talks/{session}/gates/open")
async def open_gates(chat: SessionChat) -> list[dict[str, object]]:
    return [msgspec.to_builtins(gate) for gate in await chat.gates()]


@app.post("/talks/{session}/gates/{gate}")
async def answer_gate(
    chat: SessionChat,
    user: User,
    gate: str,
    answer: Answer,
) -> None:
    shown = next((item for item in await chat.gates() if item.id == gate), None)
    if shown is None or shown.hash != answer.hash:
        raise HTTPException(409, "this approval has changed or is closed; reload it")
    try:
        if answer.allow:
            await chat.answer(shown, allow="once", by=user)
        else:
            await chat.answer(shown, deny=answer.reason or True, by=user)
    except GateClosed as error:
        raise HTTPException(409, str(error)) from None
