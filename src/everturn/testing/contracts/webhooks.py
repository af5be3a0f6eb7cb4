"""Webhook store contract: the outbox is written with the log, each delivery is claimed by one, dead ones are replayed."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from everturn.core.store_ports import Store
from everturn.core.webhooks import Webhook, WebhookStore
from everturn.testing.contracts.samples import NOON, send_message, turn_ended_events, turn_started_events


def make_webhook(id: str = "w", tenant: str = "local", **more: object) -> Webhook:
    """A webhook that is told of turns that completed."""
    fields: dict[str, object] = {"url": "https://example.com/hook", "events": ("turn.completed",), **more}
    return Webhook(id=id, tenant=tenant, **fields)  # pyright: ignore[reportArgumentType]


async def run_turn(store: Store, session: str = "s") -> int:
    """Append a whole turn, and return the position of its last event."""
    await store.admit(send_message(f"k{session}", session, f"t{session}"))
    events = [*turn_started_events(f"t{session}", command=f"k{session}"), *turn_ended_events(f"t{session}")]
    return await store.append(session, 0, events)


class WebhookStoreContract:
    """The port `WebhookStore` of a store. A store that several nodes share returns two in `make_two`."""

    async def make(self) -> Store:
        """An empty store."""
        raise NotImplementedError

    async def make_two(self) -> tuple[Store, Store]:
        """The same empty store on two nodes."""
        store = await self.make()
        return store, store

    async def test_webhooks_are_kept_by_tenant(self) -> None:
        store = (await self.make()).webhooks
        expected = make_webhook(description="你好 \0", events=("gate.opened", "turn.failed"))
        for webhook in (expected, make_webhook("a"), make_webhook("w", "other")):
            await store.put(webhook)
        assert [row.id for row in await store.list("local")] == ["a", "w"]
        assert await store.get("local", "w") == expected
        assert await store.get("nobody", "w") is None
        assert await store.delete("nobody", "w") is False
        assert await store.delete("local", "w") is True
        assert await store.get("local", "w") is None
        assert [row.id for row in await store.list("other")] == ["w"]

    async def test_an_append_tells_those_who_want_to_know(self) -> None:
        store = await self.make()
        assert await store.webhooks.is_used() is False
        await run_turn(store, "before")
        for webhook in (
            make_webhook("w"),
            make_webhook("too"),
            make_webhook("gates", events=("gate.opened",)),
            make_webhook("theirs", "other"),
            make_webhook("off", disabled="gone"),
        ):
            await store.webhooks.put(webhook)
        head = await run_turn(store)
        assert await store.webhooks.is_used() is True
        claimed = await store.webhooks.claim(NOON + 100, NOON + 130, 10)
        assert {(row.webhook, row.session, row.seq, row.type, row.tries) for row in claimed} == {
            (name, "s", head, "turn.completed", 1) for name in ("w", "too")
        }
        assert len({row.id for row in claimed}) == 2
        assert await store.webhooks.next_due() == NOON + 130

    async def test_an_append_that_is_refused_tells_nobody(self) -> None:
        store = await self.make()
        await store.webhooks.put(make_webhook())
        await run_turn(store)
        try:
            await store.append("s", 0, turn_ended_events("ts"))
        except Exception:
            pass
        assert len(await store.webhooks.claim(NOON + 100, NOON + 130, 10)) == 1

    async def test_an_imported_log_tells_nobody(self) -> None:
        store = await self.make()
        await store.webhooks.put(make_webhook())
        await store.restore("old", "local", [*turn_started_events("t"), *turn_ended_events("t")])
        assert await store.webhooks.next_due() is None

    async def test_outcomes_are_recorded_and_dead_ones_replayed(self) -> None:
        store = await self.make()
        outbox: WebhookStore = store.webhooks
        await outbox.put(make_webhook())
        for name in ("a", "b", "c"):
            await run_turn(store, name)
        rows = {row.session: row for row in await outbox.claim(NOON + 100, NOON + 130, 10)}
        await outbox.finish(replace(rows["a"], state="delivered", due=None, status=204, updated=NOON))
        await outbox.finish(replace(rows["b"], state="dead", due=None, status=500, problem="no", updated=NOON))
        await outbox.finish(replace(rows["c"], due=NOON + 105, status=500, problem="later", updated=NOON))
        # A process that was overtaken changes nothing of what is over.
        await outbox.finish(replace(rows["a"], state="dead", due=None, problem="late", updated=NOON))
        for state, sessions in (("delivered", ["a"]), ("dead", ["b"]), ("pending", ["c"])):
            found = await outbox.deliveries("local", "w", state)  # pyright: ignore[reportArgumentType]
            assert [row.session for row in found] == sessions
            assert await outbox.deliveries("other", "w", state) == []  # pyright: ignore[reportArgumentType]
        assert await outbox.next_due() == NOON + 105
        assert await outbox.replay("other", "w", "", 0, NOON + 104) == 0
        assert await outbox.replay("local", "w", "", 0, NOON + 104) == 1
        assert await outbox.replay("local", "w", "a", rows["a"].seq, NOON + 103) == 1
        again = await outbox.claim(NOON + 105, NOON + 135, 10)
        assert sorted((row.session, row.tries) for row in again) == [("a", 1), ("b", 1), ("c", 2)]
        assert {row.id for row in again} == {row.id for row in rows.values()}

    async def test_what_was_delivered_is_removed_later(self) -> None:
        store = await self.make()
        await store.webhooks.put(make_webhook())
        await run_turn(store)
        (row,) = await store.webhooks.claim(NOON + 100, NOON + 130, 10)
        await store.webhooks.finish(replace(row, state="delivered", due=None, updated=NOON))
        assert await store.webhooks.purge(NOON) == 0
        assert await store.webhooks.purge(NOON + 1) == 1

    async def test_each_delivery_is_claimed_by_one_of_two_nodes(self) -> None:
        first, second = await self.make_two()
        await first.webhooks.put(make_webhook())
        for number in range(30):
            await run_turn(first, f"s{number:02}")
        claimed: list[str] = []

        async def claim(store: Store) -> None:
            while rows := await store.webhooks.claim(NOON + 100, NOON + 130, 4):
                claimed.extend(row.session for row in rows)

        await asyncio.gather(claim(first), claim(second))
        assert sorted(claimed) == [f"s{number:02}" for number in range(30)]
