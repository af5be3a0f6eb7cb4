"""Callbacks: an external system finishes a waiting call with nothing but its token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from everturn import App, Chat, ToolContext, tool
from everturn.core.events import CallFinished, TurnSuspended
from everturn.models.scripted import ScriptedModel
from everturn.server.app import Application
from everturn.server.body_limits import ANONYMOUS_BODY_LIMIT
from everturn.stores.memory import MemoryStore
from everturn.testing import call, calls, say
from tests.helpers.server_app import ask, make, make_house, word


class Carrier:
    """A server whose only call waits for a carrier."""

    def __init__(self) -> None:
        self.tokens: list[str] = []

        @tool(resumable=True)
        async def ship(ctx: ToolContext) -> object:
            return await ctx.external(self.tokens.append, timeout=3600)

        model = ScriptedModel(calls(call("ship")), say("Shipped."))
        self.app = App(model, tools=[ship], store=MemoryStore())
        self.chat = Chat(model, session="s", app=self.app, tenant="ours")
        self.site: Application

    async def start(self) -> Any:
        self.site = make(await make_house(self.app))
        turn = await self.chat.send("ship it")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                return turn
        raise AssertionError("it did not wait")

    async def post(self, token: str, **more: Any) -> Any:
        return await ask(self.site, "POST", f"/api/callbacks/{token}", **more)


@pytest.fixture
async def carrier() -> AsyncIterator[Carrier]:
    carrier = Carrier()
    yield carrier
    await carrier.app.aclose()


async def test_a_token_finishes_its_call_without_a_login_once(carrier: Carrier) -> None:
    turn = await carrier.start()
    [token] = carrier.tokens
    answers = [await carrier.post(token, json={"parcel": 7}) for _ in range(2)]
    assert [(answer.status, answer.body) for answer in answers] == [(204, b""), (204, b"")]
    other = await carrier.post(token, json={"parcel": 8})
    assert (other.status, other.code) == (409, "callback_conflict")
    assert (await turn).text == "Shipped."
    [finished] = [e.event for e in await carrier.app.store.events("s") if isinstance(e.event, CallFinished)]
    assert finished.output.text == '{"parcel":7}'
    assert (await carrier.post(token, json={"parcel": 7})).status == 204


async def test_it_is_nobodys_gate(carrier: Carrier) -> None:
    await carrier.start()
    listed = await ask(carrier.site, "GET", "/api/gates", word("owner"))
    assert (listed.status, listed.json["gates"]) == (200, [])


async def test_a_wrong_token_is_not_found_and_says_nothing(carrier: Carrier) -> None:
    await carrier.start()
    [token] = carrier.tokens
    seen = set[tuple[int, bytes]]()
    for wrong in (token[:-1], token + "x", "evc_x.y", "x", token.replace("evc_", "evf_")):
        answer = await carrier.post(wrong, json=1)
        seen.add((answer.status, answer.body))
    assert {status for status, _ in seen} == {404}
    assert len(seen) == 1
    assert (await carrier.post(token, json=1)).status == 204


async def test_a_body_that_is_not_json_or_too_large_is_refused(carrier: Carrier) -> None:
    await carrier.start()
    [token] = carrier.tokens
    json = {"content-type": "application/json"}
    assert (await carrier.post(token, body=b"{", headers=json)).status == 422
    assert (await carrier.post(token, body=b"[" * 8_000, headers=json)).status == 422
    assert (await carrier.post(token, json="x" * ANONYMOUS_BODY_LIMIT)).status == 413
    assert (await carrier.post(token, body=b"1", headers={"content-type": "text/plain"})).status == 415
    assert (await carrier.post(token, body=b"", headers=json)).status == 204  # null


async def test_strangers_are_rate_limited(carrier: Carrier) -> None:
    await carrier.start()
    answers = [await carrier.post("evc_x.y", json=1) for _ in range(300)]
    assert {answer.status for answer in answers} == {404, 429}
    await asyncio.sleep(0)
