"""Webhook sender: delivers the outbox, at least once. Every process of an app has one; the store gives each delivery to
one of them for half a minute, and to another one if that was killed.

Requests go through the egress policy: https to public addresses only, no redirects, unless the operator has made an
exception for the host and port.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.core.webhooks import Delivery, Webhook, WebhookStore, derive_secret, sign_payload
from everturn.egress.client import EgressClient
from everturn.egress.fetch import FetchLimits
from everturn.errors import AddressRefused, ConfigError, FetchFailed, StoreUnavailable
from everturn.failpoints import hit_failpoint
from everturn.webhooks.push_notification import ENDED, build_push, is_ended

if TYPE_CHECKING:
    from everturn.base_app import BaseApp

log = logging.getLogger(__name__)

RETRY_PAUSES: Final = (5.0, 30.0, 120.0, 600.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 86_400.0)  # seconds, about 41 h
JITTER: Final = 0.2  # of a pause, more or less
LEASE: Final = 30.0  # seconds in which a process sends what it has claimed; longer than a request may take
BATCH: Final = 20  # deliveries at once
POLL_INTERVAL: Final = 1.0  # seconds between two looks at the outbox
ERROR_PAUSE: Final = 2.0
KEPT: Final = 7 * 86_400.0  # seconds for which a delivery is kept after it was delivered
PURGE_INTERVAL: Final = 3600.0
LIMITS: Final = FetchLimits(size=65_536, total=15.0, idle=10.0, connect=5.0)
GONE: Final = 410
PAUSED: Final = "the webhook is paused"
TEST_EVENT: Final = "webhook.test"


class DeliveryTest(Struct, frozen=True):
    """What a receiver answered to a test event: its status (0: no answer), and why that is not a success."""

    id: str
    status: int
    problem: str = ""


class WebhookSender:
    """Delivers the outbox of a store, in the background."""

    def __init__(self, app: BaseApp) -> None:
        self._app = app
        self._client = EgressClient(())
        self.retry_pauses: Sequence[float] = RETRY_PAUSES
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._purged = 0.0

    @property
    def _store(self) -> WebhookStore:
        return self._app.store.webhooks

    def allow(self, addresses: Iterable[str]) -> None:
        """Allow addresses (`host:port`) that the egress policy would refuse."""
        self._client = EgressClient((), addresses)

    def check(self, url: str) -> None:
        """Check an address, as far as that is possible without resolving its name.

        Raises:
            ConfigError: the egress policy refuses it.
        """
        try:
            self._client.check(url)
        except AddressRefused as error:
            raise ConfigError(f"url: {error}") from None

    def start(self) -> None:
        """Start, if there is a webhook or other processes may add one; a turn does not wait for that."""
        if self._task is None and not self._app.is_closing:
            self._task = asyncio.get_running_loop().create_task(self._run_if_used())

    async def _run_if_used(self) -> None:
        with suppress(ConfigError):  # a store without webhooks
            try:
                is_used = self._app.engine.is_durable or await self._store.is_used()
            except StoreUnavailable:
                is_used = True  # look again
            if is_used or self._changed.is_set():
                await self._run()

    def notify(self) -> None:
        """Look at the outbox at once."""
        self._changed.set()
        if (self._task is None or self._task.done()) and not self._app.is_closing:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def aclose(self) -> None:
        """Stop. What was claimed and not sent is sent by another process, or later."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            pause = POLL_INTERVAL * random.uniform(0.5, 1.0)
            try:
                due = await self._store.next_due()
                while due is not None and due <= self._app.clock.now() and await self.send_due():
                    due = await self._store.next_due()
                await self._purge()
            except Exception as error:
                log.warning("delivering webhooks failed, and is done again: %s", error)
                pause = ERROR_PAUSE
            timer = self._app.clock.call_later(pause, self._changed.set)
            try:
                await self._changed.wait()
            finally:
                timer.cancel()

    async def _purge(self) -> None:
        now = self._app.clock.now()
        if now - self._purged > PURGE_INTERVAL:
            self._purged = now
            await self._store.purge(now - KEPT)

    async def send_due(self) -> int:
        """Send what is due now, and return the number of deliveries that were tried."""
        now = self._app.clock.now()
        claimed = await self._store.claim(now, now + LEASE, BATCH)
        if claimed:
            hit_failpoint("webhook.claimed")
        found: dict[tuple[str, str], Webhook | None] = {}
        for place in {(row.tenant, row.webhook) for row in claimed}:
            found[place] = await self._store.get(*place)
        await asyncio.gather(*(self._deliver(row, found[row.tenant, row.webhook]) for row in claimed))
        return len(claimed)

    async def _deliver(self, row: Delivery, webhook: Webhook | None) -> None:
        """Try a delivery, and record the outcome."""
        if webhook is None or webhook.disabled or webhook.is_paused:
            problem = "the webhook was deleted" if webhook is None else webhook.disabled or PAUSED
            await self._finish(row, 0, problem, is_final=True)
            return
        if webhook.push is not None:
            await self._push(row, webhook)
            return
        status, problem = await self._post(row.id, payload(row), webhook)
        hit_failpoint("webhook.sent")
        if status == GONE:
            await self._store.put(replace(webhook, disabled="the receiver answered 410 Gone"))
        await self._finish(row, status, problem, is_final=status == GONE)

    async def _push(self, row: Delivery, webhook: Webhook) -> None:
        """Try to tell a browser. A subscription that its push service or its login ended is deleted."""
        request = None
        if webhook.push is not None and not await is_ended(self._app, webhook.push):
            request = await build_push(self._app, row, webhook)
            if request is None:  # the gate was answered, or is for others
                await self._finish(row, 0, "", is_final=True)
                return
        status, problem = ENDED[1], "the login has ended"
        if request is not None:
            try:
                sent = await self._client.request("POST", webhook.url, request.headers, request.body, limits=LIMITS)
                status = sent.status
                problem = "" if 200 <= status < 300 else f"the push service answered {status}"
            except (AddressRefused, FetchFailed) as error:
                status, problem = 0, type(error).__name__  # without the endpoint, which is a secret of the browser
        hit_failpoint("webhook.sent")
        if status in ENDED:
            await self._store.delete(webhook.tenant, webhook.id)
            return
        await self._finish(row, status, problem, is_final=False)

    async def _finish(self, row: Delivery, status: int, problem: str, is_final: bool) -> None:
        now = self._app.clock.now()
        done = replace(row, status=status, problem=problem[:500], updated=now, due=None)
        if not problem:
            done = replace(done, state="delivered")
        elif is_final or row.tries > len(self.retry_pauses):
            log.warning("webhook %s of %s: a delivery is given up: %s", row.webhook, row.tenant, problem)
            done = replace(done, state="dead")
        else:
            pause = self.retry_pauses[row.tries - 1] * random.uniform(1 - JITTER, 1 + JITTER)
            done = replace(done, due=now + pause)
        await self._store.finish(done)

    async def send_test(self, webhook: Webhook) -> DeliveryTest:
        """Send a test event to a webhook now, once. It is in no outbox, and a 410 disables nothing."""
        id, at = f"msg_{secrets.token_hex(16)}", datetime.fromtimestamp(self._app.clock.now(), UTC).isoformat()
        data = {"tenant": webhook.tenant, "webhook": webhook.id}
        body = msgspec.json.encode({"type": TEST_EVENT, "timestamp": at, "data": data})
        return DeliveryTest(id, *await self._post(id, body, webhook))

    async def _post(self, id: str, body: bytes, webhook: Webhook) -> tuple[int, str]:
        """The status of the receiver (0: it did not answer), and what is wrong with it."""
        timestamp = int(self._app.clock.now())
        headers = {
            "content-type": "application/json",
            "user-agent": "everturn-webhooks/1",
            "webhook-id": id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": await self.signatures(webhook, id, timestamp, body),
        }
        try:
            status = (await self._client.request("POST", webhook.url, headers, body, limits=LIMITS)).status
        except (AddressRefused, FetchFailed) as error:
            return 0, str(error)
        return status, "" if 200 <= status < 300 else f"the receiver answered {status}"

    async def signatures(self, webhook: Webhook, id: str, timestamp: int, body: bytes) -> str:
        """The signatures of a delivery: one for each secret that the receiver may still have."""
        versions = [webhook.version]
        if self._app.clock.now() < webhook.rotated:
            versions.append(webhook.version - 1)
        keys = await self._app.store.accounts.keys.all("webhooks")
        return " ".join(
            sign_payload(derive_secret(key, webhook, version), id, timestamp, body)
            for key in keys
            for version in versions
        )

    async def secret_of(self, webhook: Webhook) -> str:
        """The secret of a webhook, which a receiver verifies signatures with."""
        return derive_secret(await self._app.store.accounts.keys.first("webhooks"), webhook, webhook.version)


def payload(row: Delivery) -> bytes:
    """The body of a delivery: the type, the time, and ids. The same bytes whenever it is sent."""
    data = {"tenant": row.tenant, "session": row.session, "seq": row.seq, **msgspec.json.decode(row.data)}
    time = datetime.fromtimestamp(row.at, UTC).isoformat()
    return msgspec.json.encode({"type": row.type, "timestamp": time, "data": data})
