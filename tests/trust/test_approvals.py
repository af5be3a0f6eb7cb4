"""Questions outlive every process that asked them, and each is answered for itself: acceptance test 4, on a file.

Every process is a runtime of its own on the same file. One goes away in good order, one is lost with whatever it was
about to write, and one is killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat, TextPart, Turn
from everturn.core.commands import ResolveGate, Send
from everturn.core.events import CallFinished, CallStarted, GateOpened, GateResolved, PermissionDecided
from everturn.core.gates import GateResolution
from everturn.errors import AnsweredOtherwise, EverturnError, HashMismatch, UnknownGate, UnknownSession
from everturn.stores.sql.store import SqlStore
from everturn.testing import Crash, MortalStore, call, calls, say
from tests.trust.store_processes import Office, asks, count, events_in, gates_by_subject, rest

ROOT = Path(__file__).parent.parent.parent
DAY = 24 * 3600.0
PEOPLE = ("ada", "bob", "cem", "dan", "eve")
SCRIPT = (calls(*(call("mail", to=name, text="hi") for name in PEOPLE)), say("Done."), say("More."), say("Even more."))

Leaving = Callable[[Office, str], Awaitable[None]]


# What each process does ---------------------------------------------------------------------------------------------


async def ask_all(chat: Chat) -> None:
    await asks(chat)


async def answer_four(chat: Chat) -> None:
    """What is said from another device; nobody drives there, so it is only admitted."""
    gates = await gates_by_subject(chat)
    assert sorted(gates) == sorted(PEOPLE)
    await chat.answer(gates["ada"], allow="once")
    await chat.answer(gates["cem"], allow="once", arguments={"to": "cem", "text": "good morning"})
    await chat.answer(gates["dan"], deny="dan is on holiday")
    await chat.answer(gates["bob"], allow="once")


DEEDS: dict[str, Callable[[Chat], Awaitable[None]]] = {"ask": ask_all, "answer": answer_four}


async def is_closed(office: Office, deed: str) -> None:
    """A process that leaves in good order."""
    async with office.process(*SCRIPT, drives=deed == "ask") as chat:
        await DEEDS[deed](chat)


async def is_lost(office: Office, deed: str) -> None:
    """A process of which nothing is written any more, from one moment to the next."""
    inner = SqlStore.sqlite(office.file)
    mortal = MortalStore(inner)
    async with office.process(*SCRIPT, store=mortal, drives=deed == "ask") as chat:
        await DEEDS[deed](chat)
        mortal.kill()
        with pytest.raises(Crash):
            await chat.send("nobody hears this")
    await inner.aclose()


async def is_killed(office: Office, deed: str) -> None:
    """A process that ends as by a power cut."""
    program = "import sys; from tests.trust.test_approvals import child; child(*sys.argv[1:])"
    arguments = (str(office.file.parent), str(office.clock.now()), deed)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *arguments, stdout=asyncio.subprocess.PIPE, cwd=ROOT, env=environment
    )
    assert child.stdout is not None
    line = await child.stdout.readline()
    child.kill()
    await child.wait()
    assert line == b"ready\n"


def child(folder: str, now: str, deed: str) -> None:
    """The process that is killed."""

    async def work() -> None:
        async with Office(Path(folder), float(now)).process(*SCRIPT, drives=deed == "ask") as chat:
            await DEEDS[deed](chat)
            print("ready", flush=True)
            await asyncio.get_running_loop().create_future()

    asyncio.run(work())


# The batch ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [is_closed, is_lost, is_killed], ids=lambda ends: ends.__name__)
async def test_a_batch_is_answered_in_parts_over_days_and_processes_and_each_call_runs_once(
    ends: Leaving, tmp_path: Path
) -> None:
    office = Office(tmp_path)
    await ends(office, "ask")
    office.clock.advance(DAY)
    await ends(office, "answer")
    assert office.done == []  # they are admitted, and that is all
    office.clock.advance(DAY)

    async with office.process(*SCRIPT) as chat:
        turn = await only_turn(chat)
        await rest(chat, turn)
        assert office.done == ["mail ada: hi", "mail bob: hi", "mail cem: good morning"]
        assert list(await gates_by_subject(chat)) == ["eve"]
    office.clock.advance(DAY)
    async with office.process(*SCRIPT) as chat:
        [gate] = await chat.gates()
        await chat.answer(gate, allow="once")
        assert (await turn_of(chat, turn)).text == "Done."
        assert await chat.gates() == []
        await check_the_end(chat, office)


async def check_the_end(chat: Chat, office: Office) -> None:
    """Everything ran once, as it was allowed, and the model knows what became of each."""
    assert office.done == ["mail ada: hi", "mail bob: hi", "mail cem: good morning", "mail eve: hi"]
    log = await events_in(chat)
    started = [event for event in log if isinstance(event, CallStarted)]
    judged = {event.call: event for event in log if isinstance(event, PermissionDecided)}
    gates = {event.gate.call: event.gate for event in log if isinstance(event, GateOpened)}
    assert (len(started), len(judged), len(gates)) == (4, 5, 5)
    assert sum(isinstance(event, GateOpened) for event in log) == 5
    assert [judged[event.call].hash for event in started] == [event.hash for event in started]
    assert {judged[call].gate for call in gates} == {gate.id for gate in gates.values()}
    states = {event.call: event.state for event in log if isinstance(event, CallFinished)}
    results = office.told()
    by_name = {name: next(call for call, gate in gates.items() if f'"{name}"' in gate.arguments) for name in PEOPLE}
    assert {name: states[call] for name, call in by_name.items()} == {
        "ada": "completed",
        "bob": "completed",
        "cem": "completed",
        "dan": "denied",
        "eve": "completed",
    }
    assert {name: results[call] for name, call in by_name.items()} == {
        "ada": "sent to ada",
        "bob": "sent to bob",
        "cem": '[The person changed the arguments to {"text":"good morning","to":"cem"}]\nsent to cem',
        "dan": "The person did not allow this call and said why: dan is on holiday.",
        "eve": "sent to eve",
    }


async def only_turn(chat: Chat) -> Turn:
    """The one turn that is under way."""
    [turn] = await chat.app.store.open_turns("s1")
    return chat.turn(turn)


async def turn_of(chat: Chat, turn: Turn) -> Any:
    """The end of a turn, as another process sees it."""
    return await chat.turn(turn.id)


# What is not an answer ------------------------------------------------------------------------------------------------


async def test_what_is_forged_altered_or_said_twice_runs_nothing_and_each_is_refused_as_what_it_is(
    tmp_path: Path,
) -> None:
    office = Office(tmp_path)
    async with office.process(*SCRIPT) as chat:
        await asks(chat)
        await chat.app.command(
            Send(
                key="eve", session="s2", tenant="eve", turn="t", message="m", parts=(TextPart("please"),), at_leaf=True
            )
        )
        await rest(chat, Turn(chat.app, "s2", "t"))
    async with office.process(*SCRIPT) as chat:
        turn = await only_turn(chat)
        gate = (await gates_by_subject(chat))["ada"]
        foreign = [row.gate for row in await chat.app.store.gates("s2")]
        assert len(foreign) == 5

        async def attempt(**changed: Any) -> type[BaseException] | None:
            right: dict[str, Any] = {
                "key": f"{len(keys)}",
                "session": "s1",
                "at": office.clock.now(),
                "gate": gate.id,
                "hash": gate.hash,
                "resolution": GateResolution(True, by="person"),
            }
            keys.append(right["key"])
            try:
                await chat.app.command(ResolveGate(**{**right, **changed}))
            except EverturnError as error:
                return type(error)
            return None

        keys: list[str] = []
        assert await attempt(gate="gate_forged") is UnknownGate
        assert await attempt(gate=foreign[0].id, hash=foreign[0].hash) is UnknownGate
        assert await attempt(session="s2", gate=foreign[0].id, hash=foreign[0].hash) is UnknownSession
        assert await attempt(tenant="eve") is UnknownSession
        assert await attempt(hash=foreign[0].hash) is HashMismatch
        assert await attempt(hash=(await gates_by_subject(chat))["bob"].hash) is HashMismatch
        await rest(chat, turn)
        assert (office.done, await count(chat, CallStarted), len(await chat.gates())) == ([], 0, 5)

        assert await attempt() is None
        assert await attempt() is None  # the same again is no news, though it has another key
        assert await attempt(resolution=GateResolution(False, by="person")) is AnsweredOtherwise
        assert await attempt(resolution=GateResolution(True, arguments='{"text":"hi","to":"eve"}')) is AnsweredOtherwise
        await rest(chat, turn)
        assert await attempt() is None  # and so it is when it has run
        assert await attempt(resolution=GateResolution(False, by="person")) is AnsweredOtherwise
        await rest(chat, turn)
        assert (office.done, await count(chat, CallStarted)) == (["mail ada: hi"], 1)
        assert await count(chat, GateResolved) == 1
        assert len(await chat.app.store.gates("s2")) == 5


async def test_a_message_that_comes_while_a_batch_is_open_asks_nothing_again_and_is_answered_after_it(
    tmp_path: Path,
) -> None:
    office = Office(tmp_path)
    async with office.process(*SCRIPT) as chat:
        first = await asks(chat)
        second = await chat.send("and what is new?")
        await rest(chat, first)
        assert (len(await chat.gates()), len(office.model.requests)) == (5, 1)
    async with office.process(*SCRIPT) as chat:
        await rest(chat, chat.turn(first.id))
        third = await chat.send("hello?")
        gates = await chat.gates()
        assert (len(gates), len(office.model.requests)) == (5, 0)
        for gate in gates[:3]:
            await chat.answer(gate, allow="once")
        await rest(chat, chat.turn(first.id))
        assert len(await chat.gates()) == 2
    async with office.process(*SCRIPT) as chat:
        for gate in await chat.gates():
            await chat.answer(gate, deny=True)
        texts = [(await chat.turn(turn.id)).text for turn in (first, second, third)]
        assert texts == ["Done.", "More.", "Even more."]
        assert await count(chat, GateOpened) == 5
        messages = [message.text for message in await chat.messages()]
        assert messages == ["please", "Done.", "and what is new?", "More.", "hello?", "Even more."]
    assert len(office.done) == 3
