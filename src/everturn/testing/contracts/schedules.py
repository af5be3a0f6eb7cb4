"""Schedule store contract: schedules by tenant and id, changes without lost updates, and claims that one process gets."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from everturn.core.schedules import Schedule, ScheduleRun, ScheduleStore
from everturn.testing.contracts.samples import NOON

HOSTILE = ("'; DROP TABLE schedules; --", 'a"b', "a\\b", "ünïcödé 你好 👋", "%_", " ")


def make_schedule(id: str = "daily", tenant: str = "acme", due: float = NOON, **more: object) -> Schedule:
    """A schedule that is due at a time."""
    fields: dict[str, object] = {"text": "Hello", "cron": "0 12 * * *", "created": NOON, "due": due, **more}
    return Schedule(id=id, tenant=tenant, **fields)  # pyright: ignore[reportArgumentType]


def take(schedule: Schedule) -> Schedule:
    """Begin the run of a schedule that is due, and plan the next one a day later."""
    return replace(schedule, firing=(schedule.due,), lease=NOON + 3, due=schedule.due + 86_400)


class ScheduleStoreContract:
    """The port `ScheduleStore`. An adapter that several nodes share returns two of them in `make_two`."""

    async def make(self) -> ScheduleStore:
        """An empty store."""
        raise NotImplementedError

    async def make_two(self) -> tuple[ScheduleStore, ScheduleStore]:
        """The same empty store on two nodes."""
        store = await self.make()
        return store, store

    async def test_a_schedule_is_added_once_and_read_as_it_was(self) -> None:
        store = await self.make()
        run = ScheduleRun(NOON, at=NOON + 1, session="s", turn="t")
        schedule = make_schedule(text="nul \0 and 你好", metadata={"a": [1, None]}, runs=(run,), by="ada")
        assert await store.get("acme", "daily") is None
        assert await store.add(schedule) is True
        assert await store.add(make_schedule(text="another")) is False
        assert await store.get("acme", "daily") == schedule
        assert await store.delete("acme", "daily") is True
        assert await store.delete("acme", "daily") is False
        assert await store.get("acme", "daily") is None

    async def test_tenants_are_apart(self) -> None:
        store = await self.make()
        for name in ("b", "a", "C"):
            await store.add(make_schedule(name))
        await store.add(make_schedule("a", "other", text="theirs"))
        assert [row.id for row in await store.list("acme")] == ["C", "a", "b"]
        assert [row.id for row in await store.list("acme", limit=1, after="C")] == ["a"]
        assert [row.text for row in await store.list("other")] == ["theirs"]
        assert (await store.count("acme"), await store.count("other"), await store.count("nobody")) == (3, 1, 0)
        assert await store.delete("other", "b") is False
        assert await store.change("other", "b", take) is None
        assert await store.get("acme", "b") == make_schedule("b")

    async def test_names_of_tenants_are_data(self) -> None:
        store = await self.make()
        for tenant in HOSTILE:
            assert await store.add(make_schedule(tenant=tenant)) is True
        for tenant in HOSTILE:
            assert [row.tenant for row in await store.list(tenant)] == [tenant]

    async def test_what_is_due_is_claimed_oldest_first(self) -> None:
        store = await self.make()
        await store.add(make_schedule("late", due=NOON - 10))
        await store.add(make_schedule("now"))
        await store.add(make_schedule("soon", due=NOON + 1))
        await store.add(make_schedule("paused", due=NOON - 100, is_paused=True))
        await store.add(make_schedule("over", due=0.0))
        assert await store.next_wake() == NOON - 10
        assert [row.id for row in await store.claim(NOON, 1, take)] == ["late"]
        (claimed,) = await store.claim(NOON, 10, take)
        assert (claimed.id, claimed.firing) == ("now", (NOON,))
        assert await store.get("acme", "now") == claimed
        assert await store.claim(NOON, 10, take) == []
        assert await store.next_wake() == NOON + 1

    async def test_a_claim_that_was_not_finished_is_claimed_again_after_its_lease(self) -> None:
        store = await self.make()
        await store.add(make_schedule())
        (claimed,) = await store.claim(NOON, 10, take)
        assert await store.claim(NOON + 2.9, 10, take) == []
        again = await store.claim(NOON + 3, 10, lambda row: replace(row, lease=NOON + 6))
        assert [(row.firing, row.due) for row in again] == [(claimed.firing, claimed.due)]

    async def test_each_schedule_is_claimed_by_one_of_two_nodes(self) -> None:
        first, second = await self.make_two()
        for number in range(40):
            await first.add(make_schedule(f"s{number:02}"))
        claimed: list[str] = []

        async def claim(store: ScheduleStore) -> None:
            while rows := await store.claim(NOON, 3, take):
                claimed.extend(row.id for row in rows)

        await asyncio.gather(claim(first), claim(second), claim(first), claim(second))
        assert sorted(claimed) == [f"s{number:02}" for number in range(40)]

    async def test_no_change_is_lost(self) -> None:
        first, second = await self.make_two()
        await first.add(make_schedule())

        async def count(store: ScheduleStore) -> None:
            for _ in range(10):
                await store.change("acme", "daily", lambda row: replace(row, started=row.started + 1))

        await asyncio.gather(count(first), count(second), count(first))
        found = await first.get("acme", "daily")
        assert found is not None
        assert found.started == 30
