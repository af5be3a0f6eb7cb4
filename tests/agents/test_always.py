"""`approve(always=Always(…))`: an approval is remembered for a session, a folder, a user or a tenant, and no wider."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from everturn import Agent, Always, App, Rule, RunResult, TurnOptions, tool
from everturn.errors import AnswerUnfit, ConfigError
from everturn.models.scripted import ScriptedModel, call, calls, say
from everturn.testing import FakeClock

ADA, BOB = "ada", "bob"


@tool(approval="ask")
async def deploy(service: str) -> str:
    """Deploy a service."""
    return f"deployed {service}"


def app_of(*shared: Any, **how: Any) -> App:
    """An agent that deploys whenever it is asked; with a tool of its own, or of the app."""
    model = ScriptedModel(*[calls(call("deploy", service="web")), say("done")] * 6)
    return App(agents=[Agent(model, name="ops", tools=["deploy"] if shared else [deploy])], tools=shared, **how)


async def deploy_in(app: App, session: str, by: str = ADA, folder: str = "/one") -> RunResult[Any]:
    chat = app.chat(session, options=TurnOptions(folder=folder))
    return await chat.run("Deploy.", by=by)


async def statuses(app: App) -> dict[str, str]:
    """What becomes of the same call elsewhere: the run is completed where the approval holds, and waits where not."""
    return {
        "session": (await deploy_in(app, "s", BOB, "/two")).status,
        "folder": (await deploy_in(app, "folder", BOB)).status,
        "user": (await deploy_in(app, "user", ADA, "/two")).status,
        "tenant": (await deploy_in(app, "tenant", BOB, "/two")).status,
        "another tenant": (
            await app.chat("foreign", tenant="other", options=TurnOptions(folder="/one")).run("Deploy.", by=ADA)
        ).status,
    }


@pytest.mark.parametrize(
    ("scope", "where"),
    [
        ("session", {"session"}),
        ("folder", {"folder"}),
        ("user", {"user"}),
        ("tenant", {"session", "folder", "user", "tenant"}),
    ],
)
async def test_an_approval_holds_in_its_scope_and_nowhere_else(scope: Any, where: set[str]) -> None:
    async with app_of() as app:
        result = await deploy_in(app, "s")
        await result.gates[0].approve(always=Always(scope=scope))
        assert (await result.resume()).status == "completed"
        found = await statuses(app)
        assert {name for name, status in found.items() if status == "completed"} == where
        assert set(found.values()) <= {"completed", "waiting"}
        assert (await deploy_in(app, "again" if scope != "session" else "s")).status == "completed"


async def test_the_rule_is_one_that_the_gate_offers() -> None:
    async with app_of() as app:
        result = await deploy_in(app, "s")
        gate = result.gates[0]
        with pytest.raises(AnswerUnfit):
            await gate.approve(always=Always(rule=Rule("*", "allow"), scope="tenant"))
        await gate.approve(always=Always(rule=gate.gate.offers[-1], scope="user"))
        await result.resume()
        (grant,) = await app.chat("s").grants()
        assert (grant.rule.tool, grant.asker, grant.session, grant.folder) == ("deploy", ADA, "", "")


@pytest.mark.parametrize("scope", ["session", "folder", "user", "tenant"])
async def test_an_approval_ends_at_its_time(scope: Any) -> None:
    clock = FakeClock()
    async with app_of(clock=clock) as app:
        until = datetime.fromtimestamp(clock.now() + 60, UTC)
        result = await deploy_in(app, "s")
        await result.gates[0].approve(always=Always(scope=scope, until=until))
        await result.resume()
        assert (await deploy_in(app, "s")).status == "completed"
        clock.advance(61)
        assert (await deploy_in(app, "s")).status == "waiting"


async def test_an_approval_for_a_user_or_a_folder_that_is_not_known_is_refused() -> None:
    async with app_of() as app:
        result = await app.chat("s").run("Deploy.")
        gate = result.gates[0]
        with pytest.raises(ConfigError, match='scope="user"'):
            await gate.approve(always=Always(scope="user"))
        with pytest.raises(ConfigError, match='scope="folder"'):
            await gate.approve(always=Always(scope="folder"))
        with pytest.raises(ConfigError, match="scope='world': one of session, folder, user, tenant"):
            await gate.approve(always=Always(scope="world"))  # pyright: ignore[reportArgumentType]
        with pytest.raises(ConfigError, match="no time zone"):
            await gate.approve(always=Always(until=datetime(2030, 1, 1)))  # noqa: DTZ001
        assert [gate.id for gate in await app.chat("s").gates()] == [gate.id]  # nothing was answered


async def test_a_sub_agent_works_in_the_folder_of_its_parent() -> None:
    helper = Agent(ScriptedModel(calls(call("deploy", service="web")), say("deployed")), name="helper", tools=[deploy])
    script = [calls(call("helper", task="deploy")), say("done")] * 2
    boss = Agent(ScriptedModel(*script), name="boss", tools=[helper.as_tool()])
    async with App(agents=[boss]) as app:
        first = await app.chat("one", options=TurnOptions(folder="/one")).run("Deploy.")
        await first.gates[0].approve(always=Always(scope="folder"))
        assert (await first.resume()).status == "completed"
        assert (await app.chat("two", options=TurnOptions(folder="/one")).run("Deploy.")).status == "completed"
        assert (await app.chat("three", options=TurnOptions(folder="/two")).run("Deploy.")).status == "waiting"


async def test_an_approval_also_answers_what_waits_where_it_holds() -> None:
    async with app_of(deploy) as app:
        first = await deploy_in(app, "s")
        same, other = await deploy_in(app, "same", BOB), await deploy_in(app, "other", BOB, "/two")
        await first.gates[0].approve(always=Always(scope="folder"))
        assert (await first.resume()).status == "completed"
        assert (await same.resume()).status == "completed"
        assert [gate.id for gate in await app.chat("other").gates()] == [gate.id for gate in other.gates]
