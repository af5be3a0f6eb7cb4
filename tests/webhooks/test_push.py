"""Push notifications of approvals: encrypted so that a stock library decrypts them, to those who may answer, with nothing of the content."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import http_ece  # pyright: ignore[reportMissingTypeStubs] - the stock library of receivers
import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from everturn import App, api, tool
from everturn.access.access import Access
from everturn.access.context.agents import Agents, AgentSpec
from everturn.access.context.server_context import ServerContext
from everturn.core.options import TurnOptions
from everturn.core.tenants.accounts import Credential, Principal, Role, Tenant, User
from everturn.core.webhooks import PushTarget, Webhook
from everturn.errors import ConfigError, Forbidden, UnknownWebhook
from everturn.testing import FakeClock, MemoryStore, ScriptedModel, call, calls, say
from everturn.webhooks.web_push_encryption import PADDED, VapidKey, decode_base64url, encode_base64url, encrypt_message
from tests.helpers.tenants import gate_in

SECRET = "a secret argument 4711"


class BrowserKeys:
    """The keys of a browser, and what it does with a message."""

    def __init__(self) -> None:
        self.private = ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)
        point = self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.p256dh, self.auth_text = encode_base64url(point), encode_base64url(self.auth)

    def decrypt(self, body: bytes) -> bytes:
        return http_ece.decrypt(body, private_key=self.private, auth_secret=self.auth, version="aes128gcm")


@given(st.binary(max_size=PADDED - 1))
def test_a_message_is_decrypted_by_the_stock_library_and_its_length_says_nothing(text: bytes) -> None:
    browser = BrowserKeys()
    body = encrypt_message(text, browser.p256dh, browser.auth_text)
    assert browser.decrypt(body) == text
    assert len(body) == len(encrypt_message(b"", browser.p256dh, browser.auth_text))
    with pytest.raises(http_ece.ECEException):
        BrowserKeys().decrypt(body)


def test_a_message_that_is_too_long_or_for_no_key_is_refused() -> None:
    browser = BrowserKeys()
    with pytest.raises(ConfigError, match="at most"):
        encrypt_message(b"x" * PADDED, browser.p256dh, browser.auth_text)
    for wrong in ("", "AAAA", "!", browser.p256dh[:-4]):
        with pytest.raises(ConfigError):
            encrypt_message(b"x", wrong, browser.auth_text)


def test_the_authorization_is_a_token_that_the_public_key_verifies() -> None:
    key = VapidKey(b"k" * 32)
    assert VapidKey(b"k" * 32).public == key.public != VapidKey(b"l" * 32).public
    header = key.authorization("https://push.example.com/a/b?c", 1000.0, "https://chat.example.org")
    token, public = (part.partition("=")[2] for part in header.removeprefix("vapid ").split(", "))
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode_base64url(public))
    claims = jwt.decode(
        token, point, algorithms=["ES256"], audience="https://push.example.com", options={"verify_exp": False}
    )
    assert claims == {"aud": "https://push.example.com", "exp": 1000 + 43_200, "sub": "https://chat.example.org"}


# Deliveries --------------------------------------------------------------------------------------------------------


class PushService:
    """A push service: what it was sent, and what it answers."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.port = 0

    async def handle(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.got.append((request.path, headers, await request.read()))
        return web.Response(status=self.answers.pop(0) if self.answers else 201)


@pytest.fixture
async def service() -> AsyncIterator[PushService]:
    push_service = PushService()
    app = web.Application()
    app.router.add_post("/{name}", push_service.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    push_service.port = runner.addresses[0][1]
    yield push_service
    await runner.cleanup()


@tool(approval="always")
async def pay(note: str) -> str:
    """Pay."""
    return f"paid {note}"


@tool(read_only=True)
async def look() -> str:
    """Look."""
    return "seen"


class House:
    """An installation with users who are logged in, each with a browser that is subscribed."""

    def __init__(self, service: PushService) -> None:
        self.service, self.store, self.clock = service, MemoryStore(), FakeClock(1_700_000_000.0)
        script = [calls(call("pay", note=SECRET)), say("Done.")] * 20
        self.app = App(ScriptedModel(*script), tools=[pay, look], store=self.store, clock=self.clock)
        self.app.webhooks.allow(f"127.0.0.1:{service.port}")
        agents = Agents([AgentSpec("desk", TurnOptions())])
        self.context = ServerContext(self.app, self.store.accounts, agents)
        self.browsers: dict[str, BrowserKeys] = {}

    async def access(self, user: str, role: Role) -> Access:
        """The access of a user who has logged in."""
        accounts = self.store.accounts
        if await accounts.user("ours", user) is None:
            await accounts.put_user(User("ours", user, role=role))
            await accounts.put_credential(Credential(f"login_{user}", "ours", user, "login", f"hash of {user}"))
        return Access(self.context, Principal("ours", user, role, f"login_{user}", "login"))

    async def subscribe(self, user: str, role: Role, language: str = "en") -> Access:
        """Subscribe a browser. It is stored as `access.push` does, with the address of the service of this test."""
        access, browser = await self.access(user, role), BrowserKeys()
        self.browsers[user] = browser
        target = PushTarget(
            user=user,
            credential=f"login_{user}",
            p256dh=browser.p256dh,
            auth=browser.auth_text,
            key=(await access.push.get()).key,
            language="zh" if language == "zh" else "en",
        )
        url = f"http://127.0.0.1:{self.service.port}/{user}"
        row = Webhook(id=f"push_{user}", tenant="ours", url=url, events=("gate.opened",), push=target)
        await self.store.webhooks.put(row)
        return access

    async def sent(self) -> None:
        """Send what is due, without the background task: it waits for the clock."""
        await self.app.webhooks.sender.aclose()
        while await self.app.webhooks.sender.send_due():
            pass

    def told(self) -> dict[str, dict[str, Any]]:
        """What each browser reads."""
        return {path[1:]: json.loads(self.browsers[path[1:]].decrypt(body)) for path, _, body in self.service.got}

    async def rows(self) -> list[str]:
        return sorted(row.id for row in await self.store.webhooks.list("ours"))


@pytest.fixture
async def house(service: PushService) -> AsyncIterator[House]:
    installation = House(service)
    await installation.store.accounts.put_tenant(Tenant("ours"))
    await installation.app.start()
    yield installation
    await installation.app.aclose()


async def test_those_who_may_answer_are_told_and_each_only_what_they_may_see(house: House) -> None:
    author = await house.subscribe("ada", "approver", language="zh")
    for user, role in (("outsider", "approver"), ("reader", "member"), ("viewer", "viewer"), ("gone", "owner")):
        await house.subscribe(user, role)  # pyright: ignore[reportArgumentType]
    await house.store.accounts.revoke("ours", "login_gone", 1.0)  # they logged out
    sent = await author.sessions.start(api.NewSession(text="the title of it"))
    gate = (await gate_in(author, sent.session)).gate
    await house.sent()
    notifications = house.told()
    assert set(notifications) == {"ada", "outsider"}
    assert notifications["ada"] == {
        "title": "\u9700\u8981\u5ba1\u6279\uff1apay",
        "body": "the title of it",
        "tag": gate.id,
        "url": f"/#/s/{sent.session}",
    }
    assert notifications["outsider"] == {
        "title": "Approval needed: pay",
        "body": "In a conversation of somebody else",
        "tag": gate.id,
        "url": "/#/inbox",
    }
    assert SECRET not in json.dumps(notifications)
    assert "push_gone" not in await house.rows()  # the subscription ended with the login


async def test_the_request_has_the_headers_of_web_push(house: House) -> None:
    author = await house.subscribe("ada", "approver")
    sent = await author.sessions.start(api.NewSession(text="go"))
    await gate_in(author, sent.session)
    await house.sent()
    [(_, headers, _)] = house.service.got
    assert (headers["content-encoding"], headers["urgency"], headers["ttl"]) == ("aes128gcm", "high", "86400")
    assert headers["authorization"].startswith("vapid t=")
    assert len(headers["topic"]) <= 32
    token = headers["authorization"].partition("t=")[2].partition(",")[0]
    claims = jwt.decode(token, options={"verify_signature": False})
    assert urlsplit(claims["aud"]).port == house.service.port


async def test_what_was_answered_in_the_meantime_is_not_told(house: House) -> None:
    author = await house.subscribe("ada", "approver")
    house.service.answers = [503]
    sent = await author.sessions.start(api.NewSession(text="go"))
    gate = (await gate_in(author, sent.session)).gate
    await house.sent()
    await author.gates.resolve(sent.session, gate.id, api.AnswerGate(hash=gate.hash, allow="once"))
    house.clock.advance(60.0)
    await house.sent()
    assert len(house.service.got) == 1


@pytest.mark.parametrize("status", [404, 410])
async def test_a_subscription_that_its_service_ended_is_removed(house: House, status: int) -> None:
    author = await house.subscribe("ada", "approver")
    house.service.answers = [status]
    sent = await author.sessions.start(api.NewSession(text="go"))
    await gate_in(author, sent.session)
    await house.sent()
    assert len(house.service.got) == 1
    assert await house.rows() == []


async def test_a_service_that_fails_is_asked_again_with_the_same_topic(house: House) -> None:
    author = await house.subscribe("ada", "approver")
    house.service.answers = [503, 201]
    sent = await author.sessions.start(api.NewSession(text="go"))
    await gate_in(author, sent.session)
    await house.sent()
    house.clock.advance(60.0)
    await house.sent()
    topics = [headers["topic"] for _, headers, _ in house.service.got]
    assert len(topics) == 2
    assert len(set(topics)) == 1
    assert await house.rows() == ["push_ada"]


async def test_a_disabled_and_a_removed_user_and_a_retired_key_are_told_nothing(house: House) -> None:
    owner = await house.access("boss", "owner")
    author = await house.access("ada", "approver")
    await house.subscribe("disabled", "approver")
    await house.subscribe("removed", "approver")
    await house.store.accounts.put_user(User("ours", "disabled", role="approver", is_active=False))
    await owner.users.remove("removed")
    assert await house.rows() == ["push_disabled"]
    sent = await author.sessions.start(api.NewSession(text="go"))
    await gate_in(author, sent.session)
    await house.sent()
    assert (house.service.got, await house.rows()) == ([], [])


# Subscriptions ------------------------------------------------------------------------------------------------------


def request(key: str, browser: BrowserKeys, endpoint: str = "https://push.example.com/x") -> api.NewPushSubscription:
    return api.NewPushSubscription(endpoint=endpoint, p256dh=browser.p256dh, auth=browser.auth_text, key=key)


async def test_a_browser_is_subscribed_once_and_only_its_user_removes_it(house: House) -> None:
    ada, bob = await house.access("ada", "member"), await house.access("bob", "member")
    key, browser = (await ada.push.get()).key, BrowserKeys()
    await ada.push.subscribe(request(key, browser))
    subscription = await ada.push.subscribe(request(key, browser))
    assert [row.id for row in (await ada.push.get()).subscriptions] == [subscription.id]
    assert (await bob.push.get()).subscriptions == []
    assert await house.app.webhooks.list(tenant="ours") == []  # it is no webhook of the tenant
    with pytest.raises(UnknownWebhook):
        await house.app.webhooks.get(subscription.id, tenant="ours")
    with pytest.raises(UnknownWebhook):
        await bob.push.unsubscribe(subscription.id)
    await ada.push.unsubscribe(subscription.id)
    assert await house.rows() == []


async def test_endpoints_that_are_not_public_wrong_keys_and_callers_without_a_browser_are_refused(house: House) -> None:
    ada, browser = await house.access("ada", "member"), BrowserKeys()
    key = (await ada.push.get()).key
    for endpoint in ("http://push.example.com/x", "https://127.0.0.1/x", "https://169.254.169.254/", "https://[::1]/"):
        with pytest.raises(ConfigError):
            await ada.push.subscribe(request(key, browser, endpoint))
    with pytest.raises(ConfigError, match="another one"):
        await ada.push.subscribe(request("old", browser))
    by_key = Access(house.context, Principal("ours", "ada", "member", "key_1"))
    with pytest.raises(Forbidden):
        await by_key.push.subscribe(request(key, browser))
    assert await house.rows() == []
