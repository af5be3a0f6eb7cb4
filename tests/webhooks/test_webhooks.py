"""Outbound webhooks: signed as Standard Webhooks wants it, retried, given up, replayed, and never to where they must not go."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace
from standardwebhooks import Webhook as Verifier  # the stock library of receivers
from standardwebhooks import WebhookVerificationError

from everturn import failpoints, tool
from everturn.app import App
from everturn.core.webhooks import Delivery, DeliveryFailures, delivery_failures
from everturn.errors import ConfigError, UnknownWebhook
from everturn.testing import FakeClock, MemoryStore, ScriptedModel, call, calls, say
from tests.helpers.waiting import wait_until


class Receiver:
    """A server that is told of events; `answers` are the statuses of its next responses, 204 after them."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.port = 0

    async def handle(self, request: web.Request) -> web.Response:
        self.got.append(({name.lower(): value for name, value in request.headers.items()}, await request.read()))
        status = self.answers.pop(0) if self.answers else 204
        headers = {"location": "http://127.0.0.1:1/"} if status == 302 else None
        return web.Response(status=status, headers=headers)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    endpoint = Receiver()
    app = web.Application()
    app.router.add_post("/hook", endpoint.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    endpoint.port = runner.addresses[0][1]
    yield endpoint
    await runner.cleanup()


@tool(approval="always")
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@pytest.fixture
async def make(receiver: Receiver) -> AsyncIterator[Callable[..., App]]:
    store, clock, apps = MemoryStore(), FakeClock(), list[App]()

    def make(*answers: Any) -> App:
        app = App(ScriptedModel(*(answers or [say("Done.")] * 50)), tools=[pay], store=store, clock=clock)
        app.webhooks.allow(f"127.0.0.1:{receiver.port}")
        apps.append(app)
        return app

    yield make
    failpoints.install_plan(None)
    for app in apps:
        await app.aclose()


async def sent(app: App) -> None:
    """Send what is due, without the background task: it waits for the clock."""
    await app.webhooks.sender.aclose()
    while await app.webhooks.sender.send_due():
        pass


def clock_of(app: App) -> FakeClock:
    assert isinstance(app.clock, FakeClock)
    return app.clock


def verified(secret: str, request: tuple[dict[str, str], bytes], now: float) -> Any:
    """The body, as the stock library returns it. It compares times with the real clock, so its own is set."""
    headers, body = request
    import standardwebhooks.webhooks as library

    class Now(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.fromtimestamp(now, tz)

    patch = pytest.MonkeyPatch()
    with patch.context() as patched:
        patched.setattr(library, "datetime", Now)
        return Verifier(secret).verify(body, headers)


async def test_a_turn_is_told_signed_and_without_its_content(make: Callable[..., App], receiver: Receiver) -> None:
    app = make(say("SECRET ANSWER"))
    webhook, secret = await app.webhooks.create(receiver.url, ["turn.completed"])
    turn = await app.chat("s").send("SECRET QUESTION")
    await turn
    await sent(app)
    (request,) = receiver.got
    payload = verified(secret, request, app.clock.now())
    assert payload["type"] == "turn.completed"
    assert (payload["data"]["session"], payload["data"]["turn"], payload["data"]["tenant"]) == ("s", turn.id, "local")
    assert payload["data"]["seq"] == await app.store.head("s")
    assert b"SECRET" not in request[1]
    for changed in (secret[:-4] + "AAA=", secret.swapcase()):
        with pytest.raises((WebhookVerificationError, ValueError)):
            verified(changed, request, app.clock.now())
    with pytest.raises(WebhookVerificationError):
        verified(secret, (request[0], request[1] + b" "), app.clock.now())
    assert [row.state for row in await app.webhooks.deliveries(webhook.id, "delivered")] == ["delivered"]


async def test_gates_are_told_without_their_arguments(make: Callable[..., App], receiver: Receiver) -> None:
    app = make(calls(call("pay", amount=7_654_321)), say("Paid."))
    await app.webhooks.create(receiver.url, ["gate.opened", "gate.resolved"])
    chat = app.chat("s")
    turn = await chat.send("go")
    gate = (await wait_until(chat.gates))[0]
    await sent(app)
    await chat.answer(gate, allow="once")
    await turn
    await sent(app)
    opened, resolved = (json.loads(body) for _, body in receiver.got)
    assert (opened["type"], opened["data"]["gate"], opened["data"]["tool"]) == ("gate.opened", gate.id, "pay")
    assert opened["data"]["hash"] == gate.hash
    assert (resolved["type"], resolved["data"]["gate"]) == ("gate.resolved", gate.id)
    assert b"7654321" not in b"".join(body for _, body in receiver.got)


async def test_a_failure_is_tried_again_with_the_same_id_and_a_new_time(
    make: Callable[..., App], receiver: Receiver
) -> None:
    app = make()
    receiver.answers = [500, 302, 204]  # a redirect is not followed
    webhook, secret = await app.webhooks.create(receiver.url)
    await app.chat("s").run("hello")
    await sent(app)
    (row,) = await app.webhooks.deliveries(webhook.id, "pending")
    assert (row.status, row.tries, "500" in row.problem) == (500, 1, True)
    assert row.due is not None
    assert 4 <= row.due - app.clock.now() <= 6
    await sent(app)
    assert len(receiver.got) == 1  # not before it is due
    for _ in range(2):
        clock_of(app).advance(40)
        await sent(app)
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    assert len({headers["webhook-timestamp"] for headers, _ in receiver.got}) == 3
    assert len({body for _, body in receiver.got}) == 1
    verified(secret, receiver.got[-1], app.clock.now())
    assert len(await app.webhooks.deliveries(webhook.id, "delivered")) == 1


async def test_a_delivery_is_given_up_and_replayed(make: Callable[..., App], receiver: Receiver) -> None:
    app = make()
    app.webhooks.sender.retry_pauses = (1.0, 1.0)
    receiver.answers = [500] * 3
    webhook, _ = await app.webhooks.create(receiver.url)
    await app.chat("s").run("hello")
    for _ in range(5):
        await sent(app)
        clock_of(app).advance(2)
    (dead,) = await app.webhooks.deliveries(webhook.id)
    assert (dead.tries, dead.status, len(receiver.got)) == (3, 500, 3)
    failures = await app.webhooks.failures(webhook)
    assert failures == DeliveryFailures(count=1, since=dead.at, problem=dead.problem)
    clock_of(app).advance(1)
    assert await app.webhooks.replay(webhook.id) == 1
    await sent(app)
    assert await app.webhooks.failures(webhook) is None
    assert await app.webhooks.deliveries(webhook.id) == []
    assert await app.webhooks.replay(webhook.id, session="s", seq=dead.seq) == 1  # one that was delivered, by name
    await sent(app)
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    assert len(receiver.got) == 5


async def test_a_receiver_that_is_gone_is_told_no_more(make: Callable[..., App], receiver: Receiver) -> None:
    app = make()
    receiver.answers = [410]
    webhook, _ = await app.webhooks.create(receiver.url)
    await app.chat("s").run("hello")
    await sent(app)
    assert "410" in (await app.webhooks.get(webhook.id)).disabled
    await app.chat("s").run("again")
    await sent(app)
    assert len(receiver.got) == 1
    await app.webhooks.rotate_secret(webhook.id)  # and enabled again
    await app.chat("s").run("once more")
    await sent(app)
    assert len(receiver.got) == 2


async def test_two_secrets_are_valid_for_a_day(make: Callable[..., App], receiver: Receiver) -> None:
    app = make()
    webhook, old = await app.webhooks.create(receiver.url)
    new = (await app.webhooks.rotate_secret(webhook.id)).secret
    await app.chat("s").run("hello")
    await sent(app)
    assert old != new
    for secret in (old, new):
        verified(secret, receiver.got[0], app.clock.now())
    clock_of(app).advance(86_401)
    await app.chat("s").run("hello")
    await sent(app)
    verified(new, receiver.got[1], app.clock.now())
    with pytest.raises(WebhookVerificationError):
        verified(old, receiver.got[1], app.clock.now())


class Killed(BaseException):
    """The process is dead."""


@pytest.mark.parametrize("point", ["webhook.claimed", "webhook.sent"])
async def test_nothing_is_lost_when_the_sender_dies(make: Callable[..., App], receiver: Receiver, point: str) -> None:
    first, second = make(), make()
    webhook, _ = await first.webhooks.create(receiver.url)
    await first.chat("s").run("hello")

    def die(name: str) -> None:
        if name == point:
            raise Killed

    await first.webhooks.sender.aclose()
    failpoints.install_plan(die)
    with pytest.raises(Killed):
        await first.webhooks.sender.send_due()
    failpoints.install_plan(None)
    await sent(second)
    assert len(receiver.got) == (point == "webhook.sent")
    clock_of(first).advance(30)
    await sent(second)
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    assert len(await second.webhooks.deliveries(webhook.id, "delivered")) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/hook",
        "https://127.0.0.1/hook",
        "https://169.254.169.254/latest",
        "https://[::ffff:a9fe:a9fe]/",
        "https://localhost/",
        "https://user:pass@example.com/",
        "https://example.com:22/",
        "ftp://example.com/",
        "file:///etc/passwd",
    ],
)
async def test_an_address_that_must_not_be_reached_is_refused(make: Callable[..., App], url: str) -> None:
    with pytest.raises(ConfigError, match="url"):
        await make().webhooks.create(url)


async def test_a_name_that_leads_inside_later_is_refused_when_it_is_sent(
    make: Callable[..., App], receiver: Receiver
) -> None:
    app = make()
    webhook, _ = await app.webhooks.create(receiver.url)
    app.webhooks.allow()  # the exception is taken back
    await app.chat("s").run("hello")
    await sent(app)
    (row,) = await app.webhooks.deliveries(webhook.id, "pending")
    assert (receiver.got, row.status) == ([], 0)
    assert "127.0.0.1" in row.problem


async def test_mistakes(make: Callable[..., App], receiver: Receiver) -> None:
    app = make()
    with pytest.raises(ConfigError, match="there are turn"):
        await app.webhooks.create(receiver.url, ["turn.exploded"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="at least one"):
        await app.webhooks.create(receiver.url, [])
    for operation in (
        app.webhooks.get("w"),
        app.webhooks.delete("w"),
        app.webhooks.replay("w"),
        app.webhooks.deliveries("w"),
    ):
        with pytest.raises(UnknownWebhook, match="'w'"):
            await operation


async def test_the_background_task_delivers_by_itself(make: Callable[..., App], receiver: Receiver) -> None:
    app = make()
    await app.webhooks.create(receiver.url, ["turn.completed"])
    await app.chat("s").run("hello")
    await wait_until(lambda: clock_of(app).waiting)
    clock_of(app).advance(1)
    await wait_until(lambda: receiver.got)


def test_an_id_names_the_event_and_the_webhook() -> None:
    row = Delivery(tenant="t", webhook="w", session="s", seq=1, type="turn.completed", at=0.0, data="{}")
    others = [
        Delivery(tenant="t", webhook="w", session="s", seq=2, type="turn.completed", at=0.0, data="{}"),
        Delivery(tenant="t", webhook="x", session="s", seq=1, type="turn.completed", at=0.0, data="{}"),
    ]
    assert len({row.id, *(other.id for other in others)}) == 3
    assert "." not in row.id  # it would end early in what is signed


def test_failures_count_from_the_last_success() -> None:
    row = Delivery(tenant="t", webhook="w", session="s", seq=1, type="turn.completed", at=0.0, data="{}", tries=1)
    success = replace(row, state="delivered", updated=5.0)
    before, after, later = (replace(row, problem="no", at=at, updated=at) for at in (4.0, 6.0, 7.0))
    assert delivery_failures([before], [success]) is None
    assert delivery_failures([replace(row, updated=6.0)], [success]) is None, "it is tried for the first time"
    assert delivery_failures([before, after, later], [success]) == DeliveryFailures(count=2, since=6.0, problem="no")
    retried = replace(before, updated=8.0)
    assert delivery_failures([retried], [success]) == DeliveryFailures(count=1, since=5.0, problem="no")


async def test_a_paused_webhook_is_told_nothing_until_it_is_resumed(
    make: Callable[..., App], receiver: Receiver
) -> None:
    app = make()
    webhook, _ = await app.webhooks.create(receiver.url, ["turn.completed"])
    receiver.answers = [500]
    await (await app.chat("waits").send("x"))
    await sent(app)
    assert (await app.webhooks.pause(webhook.id)).is_paused
    await (await app.chat("not told").send("x"))
    clock_of(app).advance(60)
    await sent(app)
    [dead] = await app.webhooks.deliveries(webhook.id, "dead")
    assert (dead.session, dead.problem) == ("waits", "the webhook is paused")
    assert await app.webhooks.failures(webhook) is None, "nobody tried it"
    assert len(receiver.got) == 1
    assert (await app.webhooks.rotate_secret(webhook.id)).webhook.is_paused, "a new secret does not resume it"
    assert await app.webhooks.replay(webhook.id) == 1
    await sent(app)
    assert len(receiver.got) == 1, "nor does a replay"
    assert not (await app.webhooks.resume(webhook.id)).is_paused
    assert await app.webhooks.replay(webhook.id) == 1
    await (await app.chat("told").send("x"))
    await sent(app)
    clock_of(app).advance(60)  # what the background task had claimed is due again
    await sent(app)
    assert {json.loads(body)["data"]["session"] for _, body in receiver.got} == {"waits", "told"}
    assert await app.webhooks.deliveries(webhook.id, "dead") == []


async def test_a_webhook_is_changed_with_the_checks_of_its_creation_and_keeps_its_secret(
    make: Callable[..., App], receiver: Receiver
) -> None:
    app = make()
    webhook, secret = await app.webhooks.create(receiver.url, ["turn.failed"], description="first")
    changed = await app.webhooks.update(webhook.id, events=["turn.completed"], description="second")
    assert (changed.url, changed.events, changed.description) == (receiver.url, ("turn.completed",), "second")
    await (await app.chat("s").send("x"))
    await sent(app)
    verified(secret, receiver.got[0], app.clock.now())
    assert await app.webhooks.secret(webhook.id) == secret
    refused: list[dict[str, Any]] = [
        {"url": "http://127.0.0.1:1/hook"},
        {"url": "https://10.0.0.1/hook"},
        {"url": "ftp://example.com/"},
        {"url": "https://example.com/" + "x" * 2000},
        {"events": []},
        {"events": ["turn.exploded"]},
        {"description": "x" * 501},
    ]
    for wrong in refused:
        with pytest.raises(ConfigError):
            await app.webhooks.update(webhook.id, **wrong)
    assert await app.webhooks.get(webhook.id) == changed, "nothing of a refused change is stored"
    with pytest.raises(UnknownWebhook):
        await app.webhooks.update("webhook_x", description="x")
    with pytest.raises(UnknownWebhook):
        await app.webhooks.update(webhook.id, description="x", tenant="another")
    assert (await app.webhooks.update(webhook.id, is_paused=True)).is_paused
    await (await app.chat("not told").send("x"))
    await sent(app)
    assert len(receiver.got) == 1
    assert not (await app.webhooks.update(webhook.id, is_paused=False)).is_paused


async def test_a_new_url_enables_a_disabled_webhook_and_gets_what_is_pending(
    make: Callable[..., App], receiver: Receiver
) -> None:
    app = make()
    webhook, _ = await app.webhooks.create(receiver.url + "?old", ["turn.completed"])
    receiver.answers = [500]
    await (await app.chat("waits").send("x"))
    await sent(app)
    await app.webhooks.update(webhook.id, url=receiver.url)
    clock_of(app).advance(60)
    await sent(app)
    assert len(receiver.got) == 2
    receiver.answers = [410]
    await (await app.chat("gone").send("x"))
    await sent(app)
    assert (await app.webhooks.get(webhook.id)).disabled
    assert (await app.webhooks.update(webhook.id, description="x")).disabled, "another text does not enable it"
    assert not (await app.webhooks.update(webhook.id, url=receiver.url + "?new")).disabled


async def test_a_test_event_is_signed_sent_once_and_stored_nowhere(
    make: Callable[..., App], receiver: Receiver
) -> None:
    app = make()
    webhook, secret = await app.webhooks.create(receiver.url, ["turn.failed"])
    await app.webhooks.pause(webhook.id)
    tested = await app.webhooks.send_test(webhook.id)
    body = verified(secret, receiver.got[0], clock_of(app).now())
    assert (tested.status, tested.problem) == (204, "")
    assert (body["type"], body["data"]) == ("webhook.test", {"tenant": "local", "webhook": webhook.id})
    assert receiver.got[0][0]["webhook-id"] == tested.id
    receiver.answers = [410]
    tested = await app.webhooks.send_test(webhook.id)
    assert (tested.status, tested.problem) == (410, "the receiver answered 410")
    assert (await app.webhooks.get(webhook.id)).disabled == "", "only a delivery disables it"
    for state in ("pending", "delivered", "dead"):
        assert await app.webhooks.deliveries(webhook.id, state) == []
    with pytest.raises(UnknownWebhook):
        await app.webhooks.send_test(webhook.id, tenant="other")
