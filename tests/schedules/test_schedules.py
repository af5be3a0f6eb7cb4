"""Schedules in an app: each planned time starts one turn, whatever dies; catch-up, overlap, pause, run now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from everturn import failpoints
from everturn.agent import Agent
from everturn.app import App
from everturn.core.events import TurnStarted
from everturn.core.schedules import Overlap, Schedule, run_session
from everturn.core.tenants.accounts import Tenant, User
from everturn.errors import ConfigError, KeyConflict, UnknownSchedule
from everturn.testing import FakeClock, MemoryStore, ScriptedHang, ScriptedModel, say
from tests.helpers.waiting import wait_until

NINE = datetime(2026, 1, 5, 9, tzinfo=UTC).timestamp()  # a Monday
DAY = 86_400.0


class Bench:
    """An app on a clock that stands still, and others on the same store."""

    def __init__(self) -> None:
        self.clock, self.store, self.apps = FakeClock(NINE - 3600), MemoryStore(), list[App]()

    def app(self, *answers: Any) -> App:
        model = ScriptedModel(*(answers or [say("Done.") for _ in range(300)]))
        agent = Agent(model, name="reporter")
        self.apps.append(App(agents=[agent], store=self.store, clock=self.clock))
        return self.apps[-1]

    async def turns(self) -> list[str]:
        """The texts of the messages that started turns, with their sessions."""
        found: list[str] = []
        for session in await self.store.sessions():
            await wait_until(lambda id=session.id: self._is_idle(id))
            for entry in await self.store.events(session.id):
                if isinstance(entry.event, TurnStarted) and entry.event.input is not None:
                    assert entry.event.options.priority == "background"  # people do not wait behind schedules
                    found.append(entry.event.input.text)
        return found

    async def _is_idle(self, session: str) -> bool:
        return not await self.store.inbox(session)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    failpoints.install_plan(None)
    for app in bench.apps:
        await app.aclose()


async def finished(app: App, id: str = "daily") -> Schedule:
    """The schedule, once it starts nothing."""

    async def read() -> Schedule | None:
        schedule = await app.schedules.get(id)
        return None if schedule.firing else schedule

    return await wait_until(read)


async def test_a_cron_schedule_starts_a_turn_in_a_new_session_each_day(bench: Bench) -> None:
    app = bench.app()
    made = await app.schedules.create("Report.", id="daily", cron="0 9 * * *", agent="reporter")
    assert made.due == NINE
    await app.schedules.scheduler.run_due()
    assert await bench.turns() == []
    for day in range(3):
        bench.clock.advance(NINE + day * DAY - bench.clock.now())
        assert await app.schedules.scheduler.run_due() <= 1
    schedule = await app.schedules.get("daily")
    assert [run.planned for run in schedule.runs] == [NINE + 2 * DAY, NINE + DAY, NINE]
    assert len({run.session for run in schedule.runs}) == schedule.started == 3
    result = await app.turn(f"{schedule.runs[0].session}/{schedule.runs[0].turn}")
    assert result.message is not None
    assert result.message.text == "Done."
    assert await bench.turns() == ["Report."] * 3


async def test_the_background_task_wakes_by_itself(bench: Bench) -> None:
    app = bench.app()
    await app.schedules.create("Once.", id="once", at=NINE)
    await wait_until(lambda: bench.clock.waiting)
    bench.clock.advance(3600)

    async def has_started() -> bool:
        return (await app.schedules.get("once")).started == 1

    await wait_until(has_started)
    assert (await app.schedules.get("once")).due == 0.0


class Killed(BaseException):
    """The process is dead."""


POINTS = ("schedule.claimed", "command.before", "command.admitted", "command.woken", "schedule.started")


@pytest.mark.parametrize("point", POINTS)
async def test_a_run_is_started_once_wherever_its_process_dies(bench: Bench, point: str) -> None:
    first, second = bench.app(), bench.app()
    await first.schedules.create("Report.", id="daily", cron="0 9 * * *")
    bench.clock.advance(3600)

    def die(name: str) -> None:
        if name == point:
            raise Killed

    failpoints.install_plan(die)
    with pytest.raises(Killed):
        await first.schedules.scheduler.run_due()
    failpoints.install_plan(None)
    assert await second.schedules.scheduler.run_due() == 0  # the lease holds
    bench.clock.advance(3)
    assert await second.schedules.scheduler.run_due() == 1
    schedule = await second.schedules.get("daily")
    assert (schedule.started, schedule.firing, schedule.due) == (1, (), NINE + DAY)
    assert await bench.turns() == ["Report."]


async def test_a_process_that_was_overtaken_starts_nothing_a_second_time(bench: Bench) -> None:
    first, second = bench.app(), bench.app()
    await first.schedules.create("Report.", id="daily", cron="0 9 * * *", session="reports")
    bench.clock.advance(3600)
    claimed = await bench.store.schedules.claim(NINE, 10, lambda row: _begun(row, NINE))
    bench.clock.advance(3)
    assert await second.schedules.scheduler.run_due() == 1
    await first.schedules.scheduler.start_runs(claimed[0])
    schedule = await first.schedules.get("daily")
    assert (schedule.started, len(schedule.runs)) == (1, 1)
    assert await bench.turns() == ["Report."]


def _begun(row: Schedule, now: float) -> Schedule:
    from everturn.core.schedules import begin_runs
    from everturn.schedules.planned_times import latest_planned, next_planned

    return begin_runs(row, now, 3.0, next_planned, latest_planned)


async def test_a_schedule_that_is_changed_while_it_starts_is_started_once(bench: Bench) -> None:
    app = bench.app()
    await app.schedules.create("Old.", id="daily", cron="0 9 * * *")
    bench.clock.advance(3600)

    def die(name: str) -> None:
        if name == "schedule.started":
            raise Killed

    failpoints.install_plan(die)
    with pytest.raises(Killed):
        await app.schedules.scheduler.run_due()
    failpoints.install_plan(None)
    await app.schedules.put(Schedule(id="daily", text="New.", cron="0 9 * * *"))
    bench.clock.advance(3)
    await app.schedules.scheduler.run_due()
    schedule = await app.schedules.get("daily")
    assert schedule.runs[0].turn
    assert (schedule.text, schedule.started) == ("New.", 1)
    assert await bench.turns() == ["Old."]


@pytest.mark.parametrize(
    ("catch_up", "late", "planned"),
    [
        ("skip", 3 * DAY + 3600, []),
        ("skip", 3 * DAY + 30, [3]),
        ("once", 3 * DAY + 3600, [3]),
        ("all", 3 * DAY + 3600, [0, 1, 2, 3]),
        ("all", 20 * DAY, [15, 16, 17, 18, 19, 20]),
    ],
)
async def test_planned_times_without_a_process_are_caught_up_on(
    bench: Bench, catch_up: Any, late: float, planned: list[int]
) -> None:
    app = bench.app()
    await app.schedules.create("Report.", id="daily", cron="0 9 * * *", catch_up=catch_up, max_catch_up=6)
    await app.aclose()
    bench.clock.advance(3600 + late)
    app = bench.app()
    await app.schedules.scheduler.run_due()
    schedule = await app.schedules.get("daily")
    assert [run.planned for run in reversed(schedule.runs)] == [NINE + day * DAY for day in planned]
    assert schedule.due > bench.clock.now()
    assert len(await bench.turns()) == len(planned)


async def test_runs_of_a_busy_session_queue_or_are_skipped(bench: Bench) -> None:
    app = bench.app(ScriptedHang(), *(say("Done.") for _ in range(9)))
    await app.chat("busy").send("Wait.")
    overlaps: tuple[Overlap, ...] = ("queue", "skip")
    for overlap in overlaps:
        await app.schedules.create(overlap, id=overlap, at=NINE, session="busy", overlap=overlap)
    bench.clock.advance(3600)
    await app.schedules.scheduler.run_due()
    assert (await finished(app, "queue")).runs[0].outcome == "started"
    (run,) = (await finished(app, "skip")).runs
    assert (run.outcome, run.turn) == ("skipped", "")
    assert "turn" in run.problem


async def test_pause_resume_run_now_and_delete(bench: Bench) -> None:
    app = bench.app()
    await app.schedules.create("Report.", id="daily", cron="0 9 * * *")
    assert (await app.schedules.pause("daily")).is_paused
    bench.clock.advance(3600 + 3 * DAY)
    assert await app.schedules.scheduler.run_due() == 0
    run = await app.schedules.run_now("daily")  # a paused one, too
    assert run.outcome == "started"
    assert run.turn
    resumed = await app.schedules.resume("daily")
    assert resumed.due == NINE + 4 * DAY  # what came in the pause is left out
    assert await app.schedules.scheduler.run_due() == 0
    await app.schedules.delete("daily")
    with pytest.raises(UnknownSchedule, match="daily"):
        await app.schedules.get("daily")
    with pytest.raises(UnknownSchedule):
        await app.schedules.run_now("daily")
    assert await bench.turns() == ["Report."]


async def test_a_user_without_rights_starts_nothing(bench: Bench) -> None:
    app, accounts = bench.app(), bench.store.accounts
    await accounts.put_tenant(Tenant("acme", "Acme"))
    await accounts.put_user(User("acme", "ada", "Ada", "member"))
    await app.schedules.create("Report.", id="daily", cron="0 9 * * *", tenant="acme", by="ada")
    await accounts.put_user(User("acme", "ada", "Ada", "viewer"))
    bench.clock.advance(3600)
    await app.schedules.scheduler.run_due()
    schedule = await app.schedules.get("daily", tenant="acme")
    assert [(run.outcome, "ada" in run.problem) for run in schedule.runs] == [("refused", True)]
    assert await bench.turns() == []
    await accounts.put_user(User("acme", "ada", "Ada", "member"))
    bench.clock.advance(DAY)
    await app.schedules.scheduler.run_due()
    assert await bench.turns() == ["Report."]


async def test_an_agent_that_this_process_does_not_know_is_left_to_others_for_a_minute(bench: Bench) -> None:
    app = bench.app()
    await app.schedules.create("Report.", id="daily", cron="0 9 * * *")
    await bench.store.schedules.change("local", "daily", lambda row: _with_agent(row, "gone"))
    bench.clock.advance(3600)
    await app.schedules.scheduler.run_due()
    assert (await app.schedules.get("daily")).runs == ()
    bench.clock.advance(61)
    await app.schedules.scheduler.run_due()
    (run,) = (await app.schedules.get("daily")).runs
    assert (run.outcome, "gone" in run.problem, "reporter" in run.problem) == ("refused", True, True)


def _with_agent(row: Schedule, agent: str) -> Schedule:
    from msgspec.structs import replace

    return replace(row, agent=agent)


async def test_the_same_definition_is_the_same_schedule(bench: Bench) -> None:
    app = bench.app()
    schedule = await app.schedules.create("Report.", id="daily", cron="0 9 * * *")
    assert await app.schedules.create("Report.", id="daily", cron="0 9 * * *") == schedule
    with pytest.raises(KeyConflict, match="daily"):
        await app.schedules.create("Another.", id="daily", cron="0 9 * * *")


async def test_schedules_of_tenants_have_sessions_of_their_own(bench: Bench) -> None:
    app = bench.app()
    first = await app.schedules.create("A.", id="daily", cron="0 9 * * *")
    other = await app.schedules.create("B.", id="daily", cron="0 9 * * *", tenant="acme")
    assert run_session(first, NINE) != run_session(other, NINE)


async def test_a_configuration_replaces_only_its_own(bench: Bench) -> None:
    app = bench.app()
    await app.schedules.create("Mine.", id="mine", cron="0 9 * * *")
    await app.schedules.replace_configured([Schedule(id=name, text=name, cron="0 9 * * *") for name in ("a", "b")])
    await app.schedules.pause("b")
    await app.schedules.replace_configured([Schedule(id="b", text="new", cron="0 9 * * *")])
    found = await app.schedules.list()
    assert [(row.id, row.text, row.is_paused) for row in found] == [("b", "new", True), ("mine", "Mine.", False)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cron": "0 9 * * *", "at": NINE}, "needs either"),
        ({}, "`cron` or `at`"),
        ({"cron": "0 9 * *"}, "five fields"),
        ({"cron": "0 9 * * *", "timezone": "Mars"}, "IANA"),
        ({"at": NINE - 2 * DAY}, "in the past"),
        ({"cron": "0 9 * * *", "id": "a b"}, "letters"),
        ({"cron": "0 9 * * *", "catch_up": "twice"}, "skip, once, all"),
        ({"cron": "0 9 * * *", "max_catch_up": 0}, "1 to 100"),
        ({"cron": "0 9 * * *", "agent": "nobody"}, "reporter"),
    ],
)
async def test_a_schedule_that_cannot_be_is_refused(bench: Bench, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        await bench.app().schedules.create("Report.", **fields)


async def test_an_app_without_schedules_has_no_task(bench: Bench) -> None:
    app = bench.app()
    await app.start()
    assert bench.clock.waiting == 0
