"""Schedules by the API: whose they are, which agents they take, and what another tenant sees of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from everturn import api
from everturn.access.access import Access
from everturn.access.context.agents import Agents, AgentSpec
from everturn.access.context.server_context import ServerContext
from everturn.agent import Agent
from everturn.app import App
from everturn.core.options import TurnOptions
from everturn.core.tenants.accounts import Principal, Role, Tenant, User
from everturn.errors import ConfigError, UnknownAgent, UnknownSchedule, UnknownSession
from everturn.testing import FakeClock, MemoryStore, ScriptedModel, say

DAILY = api.NewSchedule(id="daily", text="Report.", cron="0 9 * * *", timezone="Europe/Berlin")


@pytest.fixture
async def house() -> AsyncIterator[ServerContext]:
    store, model = MemoryStore(), ScriptedModel(*(say("Done.") for _ in range(20)))
    agent = Agent(model, name="reporter")
    app = App(agents=[agent], store=store, clock=FakeClock())
    specs = [AgentSpec("reporter", TurnOptions(model=model.name), definition=agent), AgentSpec("loose", TurnOptions())]
    for tenant in ("acme", "other"):
        await store.accounts.put_tenant(Tenant(tenant))
        for user in ("ada", "bob", "eve"):
            await store.accounts.put_user(User(tenant, user, role="member"))
    yield ServerContext(app, store.accounts, Agents(specs))
    await app.aclose()


def access(house: ServerContext, user: str = "ada", role: Role = "member", tenant: str = "acme") -> Access:
    return Access(house, Principal(tenant, user, role, "c"))


async def test_a_schedule_is_its_users(house: ServerContext) -> None:
    mine = access(house).schedules
    schedule = await mine.create(DAILY)
    assert (schedule.by, schedule.agent, schedule.origin) == ("ada", "reporter", "api")
    run = await mine.run_now("daily")
    started = await access(house).sessions.turn(run.session, run.turn)
    assert started.turn == run.turn
    assert (await access(house).sessions.get(run.session)).by == "ada"


async def test_another_member_does_not_see_it_and_an_owner_changes_it_without_its_text(house: ServerContext) -> None:
    await access(house).schedules.create(DAILY)
    other, owner = access(house, "bob").schedules, access(house, "eve", "owner").schedules
    assert (await other.list()).schedules == []
    assert [(row.id, row.text) for row in (await owner.list()).schedules] == [("daily", "")]
    assert (await owner.pause("daily")).text == (await owner.get("daily")).text == ""
    definition = api.ScheduleDefinition(text="Another.", cron="0 9 * * *")
    for refused in (
        other.get("daily"),
        other.pause("daily"),
        other.resume("daily"),
        other.run_now("daily"),
        other.delete("daily"),
        other.replace("daily", definition),
    ):
        with pytest.raises(UnknownSchedule):
            await refused
    changed = await owner.replace("daily", definition)
    assert (changed.text, changed.by) == ("Another.", "eve")  # not with the authority of the first user
    await owner.delete("daily")
    assert (await mine_list(house)).schedules == []


async def mine_list(house: ServerContext) -> api.ScheduleList:
    return await access(house).schedules.list()


async def test_another_tenant_sees_nothing_of_it(house: ServerContext) -> None:
    await access(house).schedules.create(DAILY)
    theirs = access(house, "ada", "owner", "other").schedules
    assert (await theirs.list()).schedules == []
    for request in (theirs.get("daily"), theirs.run_now("daily"), theirs.delete("daily"), theirs.get("\0")):
        with pytest.raises(UnknownSchedule, match="there is no such schedule"):
            await request
    await theirs.create(DAILY)  # its name is free there
    assert len((await mine_list(house)).schedules) == 1


async def test_a_foreign_session_and_a_loose_agent_are_refused(house: ServerContext) -> None:
    mine = access(house).schedules
    sent = await access(house, tenant="other").sessions.start(api.NewSession(text="hello"))
    with pytest.raises(UnknownSession):
        await mine.create(api.NewSchedule(text="x", cron="0 9 * * *", session=sent.session))
    with pytest.raises(ConfigError, match="loose"):  # its rules are not the app's: its turns would have none
        await mine.create(api.NewSchedule(text="x", cron="0 9 * * *", agent="loose"))
    with pytest.raises(UnknownAgent):
        await mine.create(api.NewSchedule(text="x", cron="0 9 * * *", agent="nobody"))


async def test_a_tenant_has_a_limit(house: ServerContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everturn.access.schedules.MAX_SCHEDULES", 1)
    await access(house).schedules.create(DAILY)
    with pytest.raises(ConfigError, match="at most 1 schedules"):
        await access(house).schedules.create(api.NewSchedule(text="x", cron="0 9 * * *"))


async def test_pages_have_cursors(house: ServerContext) -> None:
    mine = access(house).schedules
    for name in "abc":
        await mine.create(api.NewSchedule(id=name, text="x", cron="0 9 * * *"))
    first = await mine.list(limit=2)
    rest = await mine.list(limit=2, after=first.next)
    assert ([row.id for row in first.schedules], first.next) == (["a", "b"], "b")
    assert ([row.id for row in rest.schedules], rest.next) == (["c"], "")


async def test_the_next_times_are_planned_before_anything_is_stored(house: ServerContext) -> None:
    mine, now = access(house).schedules, house.app.clock.now()
    plan = await mine.plan(api.PlanSchedule(cron="0 9 * * 1-5", timezone="Europe/Berlin"))
    zone = ZoneInfo("Europe/Berlin")
    shown = [datetime.fromtimestamp(time, zone) for time in plan.times]
    assert (len(shown), plan.problem) == (5, "")
    assert {(time.hour, time.minute) for time in shown} == {(9, 0)}
    assert all(time.weekday() < 5 for time in shown)
    assert now < plan.times[0]
    assert plan.times == sorted(plan.times)
    until = await mine.plan(api.PlanSchedule(cron="0 9 * * *", until=now + 2 * 86_400))
    assert len(until.times) == 2
    assert (await mine_list(house)).schedules == []


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [("61 * * * *", "UTC", "five fields"), ("0 9 * *", "UTC", "five fields"), ("0 9 * * *", "Mars/Base", "IANA")],
)
async def test_a_plan_that_is_not_valid_says_why(cron: str, zone: str, words: str, house: ServerContext) -> None:
    plan = await access(house).schedules.plan(api.PlanSchedule(cron=cron, timezone=zone))
    assert plan.times == []
    assert words in plan.problem
