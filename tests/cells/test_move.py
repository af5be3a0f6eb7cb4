"""A tenant is moved between two databases while it works, whichever step the move dies at."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from everturn import failpoints
from everturn.app import App
from everturn.cells.connection import connected
from everturn.cells.move import TenantMover
from everturn.cells.routes import CellMap
from everturn.cells.tables import LARGE, NOT_MOVED, SEPARATE, moved_tables
from everturn.core.events import CallFinished, Event, SessionUpdated, TurnCompleted
from everturn.core.schedules import Schedule
from everturn.core.tenants.accounts import Tenant, User
from everturn.errors import ConfigError, Stale, TenantMoving, UnreadableLog
from everturn.stores.backup.tables import copied_tables
from everturn.stores.sql.migrate import HEAD
from everturn.stores.sql.store import SqlStore
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.function import tool

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

STEPS = ("batch", "copied", "held", "frozen", "arriving", "arrived", "switched", "parked")
sent: list[str] = []


@tool(approval="always")
async def mail(to: str) -> str:
    """Send a mail."""
    sent.append(to)
    return f"sent to {to}"


@pytest.fixture(autouse=True)
def _nothing_sent() -> Iterator[None]:
    sent.clear()
    yield
    failpoints.install_plan(None)


class Killed(BaseException):
    """The process of the move was killed."""


def kill_at(point: str) -> None:
    """Let the move die at its next visit of a point."""

    def plan(reached: str) -> None:
        if reached == f"move.{point}":
            failpoints.install_plan(None)
            raise Killed

    failpoints.install_plan(plan)


@asynccontextmanager
async def app_of(cells: CellMap, cell: str, *script: Any) -> AsyncGenerator[App]:
    """An app on the store of a cell."""
    steps = script or (calls(call("mail", to="ada")), say("It is sent."))
    async with App(ScriptedModel(*steps), tools=[mail], store=cells.cell(cell).database) as app:
        yield app


async def log_of(cells: CellMap, cell: str, session: str) -> list[Event]:
    """The log of a session, as a cell has it."""
    store = SqlStore.postgres(cells.cell(cell).database)
    try:
        return [entry.event for entry in await store.events(session)]
    finally:
        await store.aclose()


async def fill(cells: CellMap) -> None:
    """A tenant with a gate, a finished turn, an account and a schedule; and another tenant."""
    async with app_of(cells, "a") as app:
        for tenant in ("acme", "other"):
            chat = app.chat(f"{tenant}-waits", tenant=tenant)
            await chat.run("Tell Ada.")
            await app.store.accounts.put_tenant(Tenant(tenant, tenant, True, 1.0))
            await app.store.accounts.put_user(User(tenant, "ada", "Ada", "owner", True, 1.0))
            await app.store.schedules.add(Schedule(id=f"{tenant}-s", tenant=tenant, text="Report.", at=9e9, due=9e9))


@pytest.mark.parametrize("step", STEPS)
async def test_a_move_that_is_killed_at_any_step_is_completed_by_the_next(cells: CellMap, step: str) -> None:
    await fill(cells)
    before = await log_of(cells, "a", "acme-waits")
    kill_at(step)
    with pytest.raises(Killed):
        await TenantMover(cells).move("acme", "b")

    report = await TenantMover(cells).move("acme", "b")

    assert (report.source, report.target) == ("a", "b")
    assert await log_of(cells, "b", "acme-waits") == before
    async with app_of(cells, "b") as app:
        chat = app.chat("acme-waits", tenant="acme")
        (gate,) = await chat.gates()
        await chat.answer(gate, allow="once")
        assert (await chat.turn(gate.turn)).output == "It is sent."
    events = await log_of(cells, "b", "acme-waits")
    assert [event for event in events if isinstance(event, TurnCompleted)]
    assert len([event for event in events if isinstance(event, CallFinished)]) == 1
    assert sent == ["ada"]
    assert await log_of(cells, "a", "acme-waits") == before, "the copy that stays has its log"


async def test_the_source_refuses_the_frozen_tenant_and_serves_the_others(cells: CellMap) -> None:
    await fill(cells)
    async with app_of(cells, "a") as app:
        await app.chat("acme-busy", tenant="acme").run("Tell Ada.")
    async with connected(cells.cell("a").database) as source:  # as if its driver had died
        await source.execute("UPDATE turns SET state = 'busy' WHERE session = 'acme-busy'")
    kill_at("frozen")
    with pytest.raises(Killed):
        await TenantMover(cells).move("acme", "b")
    store = SqlStore.postgres(cells.cell("a").database)
    try:
        async with app_of(cells, "a", say("Hello.")) as app:
            with pytest.raises(TenantMoving):
                await app.chat("acme-new", tenant="acme").send("Hello?")
            with pytest.raises(TenantMoving):
                await app.chat("acme-waits", tenant="acme").send("Hello?")
            assert (await app.chat("other-new", tenant="other").run("Hello?")).output == "Hello."
        with pytest.raises(TenantMoving):
            await store.accounts.put_user(User("acme", "bob"))
        await store.accounts.put_user(User("other", "bob"))
        last = (await store.events("acme-waits"))[-1]
        with pytest.raises(Stale):
            await store.append("acme-waits", last.seq, [SessionUpdated(at=1.0, title="Mine")])
        assert await store.claim("acme-busy", 2e9) is None, "no driver takes it"
    finally:
        await store.aclose()

    await TenantMover(cells).abort("acme")

    async with app_of(cells, "a") as app:
        chat = app.chat("acme-waits", tenant="acme")
        (gate,) = await chat.gates()
        await chat.answer(gate, allow="once")
        assert (await chat.turn(gate.turn)).output == "It is sent."


async def test_what_the_tenant_does_during_the_copy_moves_too(cells: CellMap) -> None:
    await fill(cells)
    kill_at("copied")
    with pytest.raises(Killed):
        await TenantMover(cells).move("acme", "b")
    async with app_of(cells, "a", say("Later.")) as app:
        assert (await app.chat("acme-later", tenant="acme").run("Hello?")).output == "Later."
        await app.store.erase("acme-later")
        assert (await app.chat("acme-last", tenant="acme").run("Hello?")).output == "Later."
    before = await log_of(cells, "a", "acme-last")

    await TenantMover(cells).move("acme", "b")

    assert await log_of(cells, "b", "acme-last") == before
    async with connected(cells.cell("b").database) as target:
        assert await target.fetchval("SELECT count(*) FROM events WHERE session = 'acme-later'") == 0
        assert await target.fetchval("SELECT count(*) FROM sessions WHERE tenant = 'other'") == 0
        assert await target.fetchval("SELECT count(*) FROM schedules WHERE tenant = 'acme' AND wake_at > 0") == 1
        assert await target.fetchval("SELECT count(*) FROM users WHERE tenant = 'acme'") == 1


async def test_the_copy_in_the_source_is_erased_on_demand_and_the_tenant_can_come_back(cells: CellMap) -> None:
    await fill(cells)
    mover = TenantMover(cells)
    await mover.move("acme", "b")
    with pytest.raises(ConfigError, match="erase it first"):
        await mover.move("acme", "a")

    assert await mover.erase_source("acme") == 1

    async with connected(cells.cell("a").database) as source:
        for table in await moved_tables(source, HEAD):
            rows = await source.fetchval(f"SELECT count(*) FROM {table.name} WHERE {table.condition}", "acme")
            assert rows == 0, table.name
        assert await source.fetchval("SELECT count(*) FROM pg_trigger WHERE tgname = 'tenant_fence'") == 0
        assert await source.fetchval("SELECT count(*) FROM sessions WHERE tenant = 'other'") == 1
    assert (await mover.move("acme", "a")).target == "a"


async def test_a_copy_that_differs_is_not_switched_to(cells: CellMap) -> None:
    await fill(cells)
    kill_at("copied")
    with pytest.raises(Killed):
        await TenantMover(cells).move("acme", "b")
    async with connected(cells.cell("b").database) as target:
        await target.execute("DELETE FROM messages WHERE session = 'acme-waits'")
    with pytest.raises(UnreadableLog, match="messages differs"):
        await TenantMover(cells).move("acme", "b")
    (route,) = await TenantMover(cells).routes()
    assert (route.cell, route.phase) == ("a", "frozen")


@pytest.mark.parametrize(
    ("name", "reason"), [("webhooks", "different keys for webhooks"), ("encryption", "same keyring")]
)
async def test_a_move_between_cells_with_other_keys_is_refused(cells: CellMap, name: str, reason: str) -> None:
    await fill(cells)
    for cell in ("a", "b"):
        async with connected(cells.cell(cell).database) as database:
            await database.execute("DELETE FROM secrets")
            await database.execute("INSERT INTO secrets VALUES ($1, $2)", name, cell.encode())
    with pytest.raises(ConfigError, match=reason):
        await TenantMover(cells).move("acme", "b")
    assert await TenantMover(cells).routes() == []


async def test_every_table_is_moved_or_listed_as_not_moved(cells: CellMap) -> None:
    async with connected(cells.cell("a").database) as database:
        moved = {table.name for table in await moved_tables(database, HEAD)}
    assert moved | SEPARATE | NOT_MOVED == set(copied_tables())
    assert set(LARGE) <= moved
