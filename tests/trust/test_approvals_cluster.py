"""The same batch, and the same review, where PostgreSQL keeps, Restate drives and workers are killed: acceptance 4 and 9.

No day passes here: a gate without an expiry is a row that no timer looks at, so how long it waits makes no difference.
That one is still there after days is shown on a clock of the test's own, in `test_approvals.py`.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Sequence

import pytest

from everturn import Chat
from everturn.app import App
from everturn.core.events import CallFinished, CallStarted, Event, GateOpened, GateResolved, TurnCompleted
from everturn.core.gates import Gate
from tests.helpers.events import events_of, wait_for_event
from tools.chaos import ask
from tools.chaos.cell import Cell, cell
from tools.chaos.scenario import ASKED_FIVE, REVIEWED, ScenarioModel, effect_hash

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

PATIENCE = 60.0  # seconds; the machine may be busy with other things
DIES = {"log.GateResolved.after": {"do": "kill"}}  # right after the answer was acted on, before anything has begun
SIGNS = {chr(code) for code in range(0x2800, 0x2900)}


def chat_of(app: App, session: str) -> Chat:
    return Chat(ScenarioModel(), app=app, session=session)


async def gates_of(app: App, session: str, count: int) -> dict[str, Gate]:
    """The open gates, by the person the mail is for, once there are so many and nothing moves."""
    async with asyncio.timeout(PATIENCE):
        while len(gates := await chat_of(app, session).gates()) != count or (  # noqa: ASYNC110
            (await app.store.info(session)).is_awake
        ):
            await asyncio.sleep(0.05)
    return {json.loads(gate.arguments).get("to", gate.tool): gate for gate in gates}


async def kill_all(where: Cell) -> None:
    await asyncio.gather(*(worker.kill9() for worker in where.workers))
    where.workers.clear()


def signal_all(where: Cell, number: int) -> None:
    for worker in where.workers:
        worker.send(number)


async def died(where: Cell) -> None:
    """Wait until every worker has died of its plan."""
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(worker.process.wait() for worker in where.workers))
    where.workers.clear()


def effects(where: Cell, session: str) -> Counter[str]:
    return Counter(line.hash for line in where.lines() if line.kind == "effect" and line.session == session)


def mails(*people: str) -> Counter[str]:
    return Counter(effect_hash("mail", {"to": to}) for to in people)


async def test_gates_and_reviews_outlive_the_workers() -> None:
    async with cell() as where:
        await where.start_workers(2)
        async with where.client() as first_client, where.client() as second_client:
            await a_batch_is_answered_in_parts_while_workers_are_killed(where, first_client, second_client)
            await a_review_outlives_its_worker_and_nothing_of_the_result_is_sent(where, first_client, second_client)


async def a_batch_is_answered_in_parts_while_workers_are_killed(
    where: Cell, first_client: App, second_client: App
) -> None:
    session = "five"
    turn = await chat_of(first_client, session).send(ask("asks_five", session))
    before = await gates_of(first_client, session, 5)
    await kill_all(where)

    await where.start_workers(2, plan=DIES)
    other = chat_of(second_client, session)
    gates = await gates_of(second_client, session, 5)
    assert gates == before
    assert sorted(gates) == sorted(ASKED_FIVE)
    assert effects(where, session) == Counter()
    signal_all(where, signal.SIGSTOP)  # so that all four are admitted before the first is acted on
    await other.answer(gates["ada"], allow="once")
    await other.answer(gates["bob"], allow="once")
    await other.answer(gates["cem"], allow="once", arguments={"to": "cem@home"})
    await other.answer(gates["dan"], deny="dan is on holiday")
    signal_all(where, signal.SIGCONT)
    await died(where)  # each of the two by an answer of its own
    assert effects(where, session) == Counter()
    assert sum(isinstance(event, GateResolved) for event in await events_of(first_client.store, session)) == 2

    await where.start_workers(2)
    left = await gates_of(first_client, session, 1)
    assert list(left) == ["eve"]
    assert effects(where, session) == mails("ada", "bob", "cem@home")
    await chat_of(first_client, session).answer(left["eve"], allow="once")
    await wait_for_event(first_client.store, session, TurnCompleted)

    assert effects(where, session) == mails("ada", "bob", "cem@home", "eve")
    log = await events_of(second_client.store, session)
    assert Counter(type(event) for event in log if isinstance(event, GateOpened | GateResolved | CallStarted)) == {
        GateOpened: 5,
        GateResolved: 5,
        CallStarted: 4,
    }
    assert states(log) == ["completed", "completed", "completed", "completed", "denied"]
    assert (await turn).text == "That was all."


async def a_review_outlives_its_worker_and_nothing_of_the_result_is_sent(
    where: Cell, first_client: App, second_client: App
) -> None:
    session = "review"
    turn = await chat_of(first_client, session).send(ask("reviews", session))
    [gate] = (await gates_of(first_client, session, 1)).values()
    assert gate.output is not None
    assert (gate.kind, gate.output.text) == ("result", REVIEWED)
    await kill_all(where)
    assert signs_in(shown(where, session)) == set()

    await where.start_workers(1, plan=DIES)
    assert (await gates_of(second_client, session, 1))["report"] == gate
    await chat_of(second_client, session).answer(gate, allow="once", text="the code is [removed]")
    await died(where)
    await where.start_workers(1)
    assert (await turn).text == "That was all."

    requests = shown(where, session)
    assert (len(requests), signs_in(requests)) == (2, set())
    assert "the code is [removed]" in requests[-1]
    assert effects(where, session) == Counter([effect_hash("report", {"about": "the code"})])
    log = await events_of(second_client.store, session)
    assert (states(log), sum(isinstance(event, GateOpened) for event in log)) == (["completed"], 1)


def states(log: Sequence[Event]) -> list[str]:
    return sorted(event.state for event in log if isinstance(event, CallFinished))


def shown(where: Cell, session: str) -> list[str]:
    """Every request the model was sent, whole."""
    return [line.key for line in where.lines() if line.name == "shown" and line.session == session]


def signs_in(requests: Sequence[str]) -> set[str]:
    """What must not be there."""
    return SIGNS & set("".join(json.dumps(json.loads(text), ensure_ascii=False) for text in requests))
