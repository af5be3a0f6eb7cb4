"""The priority of a turn, where requests wait for a rate limit: by HTTP, by a schedule, and by default."""

from __future__ import annotations

from everturn.agent import Agent
from everturn.app import App
from everturn.core.events import TurnStarted
from everturn.testing import FakeClock, MemoryStore, ScriptedModel, say
from tests.helpers.server_app import ask, make, make_house, word


async def priorities(app: App, session: str) -> list[str]:
    events = [entry.event for entry in await app.store.events(session)]
    return [event.options.priority for event in events if isinstance(event, TurnStarted)]


async def test_a_message_over_http_says_its_priority() -> None:
    app = App(ScriptedModel(*[say("Hello.")] * 5), store=MemoryStore())
    site, found = make(await make_house(app)), list[str]()
    for more in ({}, {"priority": "background"}, {"priority": "interactive"}):
        answer = await ask(site, "POST", "/api/sessions", word("member"), json={"text": "Hi.", **more})
        assert answer.status == 201
        await app.turn(f"{answer.json['session']}/{answer.json['turn']}", tenant="ours")
        found += await priorities(app, answer.json["session"])
    assert found == ["interactive", "background", "interactive"]
    refused = await ask(site, "POST", "/api/sessions", word("member"), json={"text": "Hi.", "priority": "first"})
    assert refused.status == 422
    await app.aclose()


async def test_a_schedule_says_the_priority_of_its_turns() -> None:
    agent = Agent(ScriptedModel(*[say("Done.")] * 5), name="reporter")
    app = App(agents=[agent], store=MemoryStore(), clock=FakeClock())
    found = list[str]()
    await app.schedules.create("Report.", id="usual", cron="0 9 * * *")
    await app.schedules.create("Report.", id="urgent", cron="0 9 * * *", priority="interactive")
    for id in ("usual", "urgent"):
        run = await app.schedules.run_now(id)
        await app.turn(f"{run.session}/{run.turn}")
        found += await priorities(app, run.session)
    assert found == ["background", "interactive"]
    await app.aclose()
