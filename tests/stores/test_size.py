"""Where there is much, a question costs what its answer is long: plans of both databases, and totals that are kept."""

import asyncio
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.helpers.stores import SQL, opened_sql

from everturn.core.options import TurnOptions
from everturn.core.parts import Usage
from everturn.stores.memory import MemoryStore
from everturn.stores.sql import search, usage
from everturn.stores.sql.statements.gates import TENANT_GATE_PAGE
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.directory import DAY, send_to_agent
from everturn.testing.contracts.samples import (
    NOON,
    call_requested_events,
    call_started_events,
    turn_ended_events,
    turn_started_events,
)

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(params=SQL)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlStore]:
    async with opened_sql(request.param, tmp_path, may_be_used=False) as store:
        yield store


@pytest.mark.live
@pytest.mark.timeout(300)
def test_with_a_hundred_thousand_events_every_plan_of_postgres_uses_its_index() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "benchmarks/size.py", "--sessions", "9000", "--gates", "1900", "--plans-only"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, "every plan uses its index\n"), result.stdout + result.stderr


async def test_sqlite_searches_by_its_index_of_words_and_pages_gates_by_tenant(tmp_path: Path) -> None:
    store = SqlStore.sqlite(tmp_path / "a.db")
    await store.admit(send_to_agent("s"))
    await store.aclose()
    connection = sqlite3.connect(tmp_path / "a.db")

    def plan(text: str, *values: object) -> str:
        bound = {str(number): value for number, value in enumerate(values, 1)} if "?1" in text else values
        return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", bound))

    found = plan(search.SEARCH_TENANT.sqlite, "lunch", "local", 50)
    assert "SCAN lookup_words VIRTUAL TABLE INDEX" in found
    assert "SEARCH l USING INTEGER PRIMARY KEY" in found
    assert "USE TEMP B-TREE" not in found  # it comes in the right order, and ends when there is enough
    gates = plan(TENANT_GATE_PAGE.sqlite, "local", 0.0, "", "", 200)
    assert re.search(r"SEARCH g USING INDEX gates_tenant \(tenant=\? AND opened>\?\)", gates), gates
    days = plan(usage.OF_TENANT.sqlite, "local", 0.0, 0, 0.0)
    assert re.search(r"SEARCH d USING .*usage_days.* \(tenant=\? AND day>\?\)", days), days
    connection.close()


async def test_what_is_found_for_a_tenant_is_its_own_although_another_has_written_the_word_more_often(
    store: SqlStore,
) -> None:
    for n in range(3):
        for tenant in ("big", "big2", "small"):
            if tenant != "small" or n == 1:
                session, turn = f"{tenant}{n}", f"{tenant}{n}t"
                await store.admit(replace(send_to_agent(session, turn, tenant), parts=()))
                await store.append(
                    session,
                    0,
                    [*turn_started_events(turn, text="lunch", command=f"{turn}.k"), *turn_ended_events(turn)],
                )

    assert [session for session, _ in await store.search("lun", "small")] == ["small1"]
    assert [session for session, _ in await store.search("lun", "big", 2)] == ["big2", "big1"]
    assert len(await store.search("lunch")) == 7
    assert await store.search("lunch", "nobody") == []


async def test_a_word_that_only_old_messages_have_is_found_by_the_index(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(search, "NEWEST", 2)
    for n, text in enumerate(["dinner", *["lunch"] * 5]):
        await store.admit(send_to_agent(f"s{n}", f"t{n}"))
        await store.append(
            f"s{n}", 0, [*turn_started_events(f"t{n}", text=text, command=f"t{n}.k"), *turn_ended_events(f"t{n}")]
        )

    assert [session for session, _ in await store.search("din", "local")] == ["s0"]
    assert [session for session, _ in await store.search("lun", "local", 2)] == ["s5", "s4"]
    if "postgres" in request.node.name:  # SQLite asks its index for every word

        def refuse(*_: object) -> None:
            raise AssertionError("the index was asked for a frequent word")

        monkeypatch.setattr(search, "_found", refuse)
    assert [session for session, _ in await store.search("lun", "local", 3)] == ["s5", "s4", "s3"]


@pytest.mark.parametrize("seed", range(3))
async def test_totals_by_day_are_what_all_turns_add_up_to_however_they_move(store: SqlStore, seed: int) -> None:
    dice, memory = random.Random(seed), MemoryStore()
    midnight = NOON // DAY * DAY
    for n in range(6):
        session, turn = f"s{n}", f"t{n}"
        tenant, options = dice.choice(["a", "b"]), TurnOptions(agent=dice.choice(["", "w"]))
        head, at = 0, midnight + dice.randrange(0, 2 * int(DAY))
        for backend in (memory, store):
            await backend.admit(send_to_agent(session, turn, tenant, options=options))
        begun = turn_started_events(turn, command=f"{turn}.k", options=options)
        steps = [list(begun)]
        for step in range(1, dice.randint(2, 5)):
            at += dice.choice([1.0, DAY / 2, DAY])
            cost = dice.choice([None, 0.25])
            steps.append(
                [
                    *call_requested_events(turn, Usage(step, 1, cost=cost), at, step),
                    *call_started_events(turn, step, at),
                ]
            )
        if dice.random() < 0.5:
            steps.append([replace(event, at=at + DAY) for event in turn_ended_events(turn)])
        for events in steps:
            for backend in (memory, store):
                await backend.append(session, head, events)
            head += len(events)

    for tenant in ("a", "b", "c"):
        for since in (0.0, midnight, midnight + 1, midnight + DAY, midnight + 1.5 * DAY, midnight + 9 * DAY):
            assert await store.usage_by_day(tenant, since) == await memory.usage_by_day(tenant, since), (tenant, since)
            assert await store.spent(tenant=tenant, since=since) == await memory.spent(tenant=tenant, since=since)


@pytest.mark.live
async def test_writers_at_once_lose_nothing_of_a_tenants_total(tmp_path: Path) -> None:
    async with opened_sql("postgres", tmp_path, may_be_used=False) as store:

        async def work(n: int) -> None:
            await store.admit(send_to_agent(f"s{n}", f"t{n}"))
            await store.append(
                f"s{n}",
                0,
                [*turn_started_events(f"t{n}", command=f"t{n}.k"), *call_requested_events(f"t{n}", Usage(1))],
            )

        await asyncio.gather(*(work(n) for n in range(60)))

        assert (await store.spent(tenant="local")).usage == Usage(60)
