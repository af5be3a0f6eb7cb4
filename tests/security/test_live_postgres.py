"""A real server on PostgreSQL: another tenant's ids by every protocol, tokens and cookies over HTTP, and many streams."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt import algorithms

from everturn.access.auth.options import OidcOptions
from everturn.access.context.agents import TenantLimits
from everturn.core.events import TurnSuspended
from everturn.core.tenants.accounts import User
from tests.security.peer_server import Peer, a_peer
from tests.stores.test_postgres import Place

pytestmark = pytest.mark.live
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ISSUER = "https://login.example"
STREAMS = 30


@pytest.fixture
async def peer(tmp_path: Path) -> AsyncGenerator[Peer]:
    keys = {"keys": [{**algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "k", "alg": "RS256"}]}
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    oidc = OidcOptions(issuer=ISSUER, audience="web", client_id="web", jwks=str(tmp_path / "keys.json"), tenant="ours")
    place = Place()
    try:
        limits = TenantLimits(requests=0, streams=STREAMS)
        async with a_peer(store=place.store(), oidc=oidc, limits=limits) as peer:
            yield peer
    finally:
        await place.aclose()


def token(**more: Any) -> str:
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": "web", "sub": "sso", "iat": now, "exp": now + 300, **more}
    return jwt.encode(claims, KEY, "RS256", headers={"kid": "k"})


async def test_ids_of_another_tenant_lead_nowhere_by_any_protocol(peer: Peer) -> None:
    sent = await peer.say('call pay {"amount": 5}')
    (gate,) = await peer.gates(sent.session)
    while not isinstance(  # noqa: ASYNC110 - the gate is shown a moment before the turn rests
        (before := await peer.house.app.store.events(sent.session))[-1].event, TurnSuspended
    ):
        await asyncio.sleep(0.01)
    part = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "what was said?"}]}
    message = {"id": "1", "role": "user", "content": "what was said?"}
    tries: list[tuple[str, str, Any]] = [
        ("GET", f"/ai-sdk/chat/{sent.session}/stream", None),
        ("POST", f"/ai-sdk/chat/{sent.session}/stop", None),
        ("POST", f"/ai-sdk/chat/{sent.session}/approvals/{gate['id']}", {"approved": True}),
        ("GET", f"/api/sessions/{sent.session}", None),
        ("GET", f"/api/sessions/{sent.session}/gates", None),
        ("GET", f"/api/sessions/{sent.session}/events", None),
        ("GET", f"/api/sessions/{sent.session}/turns/{sent.turn}", None),
        ("POST", f"/api/sessions/{sent.session}/gates/{gate['id']}/answer", {"hash": gate["hash"], "allow": "once"}),
        ("POST", f"/api/sessions/{sent.session}/gates/{gate['id']}/claim", {"hash": gate["hash"], "claim": "c" * 20}),
    ]
    for method, path, body in tries:
        answer = await peer.ask(method, path, "theirs/owner", **({} if body is None else {"json": body}))
        assert answer.status in (204, 400, 404, 422), (method, path, answer.status)
        assert b"pay" not in answer.body
    for path, body in (
        ("/ai-sdk/chat", {"id": sent.session, "messages": [part]}),
        ("/ag-ui", {"threadId": sent.session, "runId": "r", "messages": [message], "tools": [], "context": [], "state": {},
                    "forwardedProps": {}}),
    ):  # fmt: skip
        answer = await peer.ask("POST", path, "theirs/owner", json=body)
        assert b"pay" not in answer.body, path
    assert await peer.house.app.store.events(sent.session) == before
    assert peer.ledger.done == []


async def test_an_access_token_is_let_in_and_an_id_token_is_not(peer: Peer) -> None:
    await peer.house.accounts.put_user(User("ours", "sso", role="member", origin=ISSUER))

    async def status(shown: str) -> int:
        return (await peer.ask("GET", "/api/me", "", headers={"authorization": f"Bearer {shown}"})).status

    assert await status(token(scope="chat")) == 200
    assert await status(token()) == 401
    assert await status(token(scope="chat", nonce="n")) == 401
    assert await status(token(scope="chat", aud="other")) == 401
    assert await status(token(scope="chat")[:-4] + "AAAA") == 401


async def test_a_cookie_alone_changes_nothing(peer: Peer) -> None:
    cookie = await peer.log_in()
    me = await peer.ask("GET", "/api/me", "", headers=cookie)
    assert me.status == 200
    body = {"json": {"text": "say hello"}}
    assert (await peer.ask("POST", "/api/sessions", "", headers=cookie, **body)).status == 403
    assert (
        await peer.ask("POST", "/api/sessions", "", headers={**cookie, "x-csrf-token": "x" * 43}, **body)
    ).status == 403
    other = (await peer.ask("GET", "/api/me", "", headers=await peer.log_in("theirs"))).json["csrf"]
    assert (
        await peer.ask("POST", "/api/sessions", "", headers={**cookie, "x-csrf-token": other}, **body)
    ).status == 403
    good = {**cookie, "x-csrf-token": me.json["csrf"]}
    assert (await peer.ask("POST", "/api/sessions", "", headers=good, **body)).status == 201


async def test_many_streams_of_one_tenant_have_an_end_and_hold_up_no_other(peer: Peer) -> None:
    sent = await peer.say("say hello")
    theirs = await peer.say("say hello", "theirs/owner")
    path = f"/api/sessions/{sent.session}/events"
    async with AsyncExitStack() as opened:
        statuses = [
            (await opened.enter_async_context(peer.open("GET", path, "ours/owner"))).status for _ in range(STREAMS + 10)
        ]
        assert statuses == [200] * STREAMS + [429] * 10
        other = peer.open("GET", f"/api/sessions/{theirs.session}/events", "theirs/owner")
        assert (await opened.enter_async_context(other)).status == 200
        assert (await peer.ask("GET", "/api/me")).status == 200
