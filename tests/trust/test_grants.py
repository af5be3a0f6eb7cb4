"""One answer for more than one question: what `always` covers, what a denial takes along, and how long that holds.

Every process is a runtime of its own on the same file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everturn import Chat, TextPart, Turn, tool
from everturn.app import App
from everturn.core.commands import Send
from everturn.core.events import GateOpened, GateResolved, GrantRevoked, PermissionDecided
from everturn.core.gates import Grant
from everturn.core.ports import Tool
from everturn.core.rules.policy import Rule
from everturn.errors import AnswerUnfit, ConfigError, UnknownGrant
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from tests.trust.store_processes import Office, asks, count, events_in, gates_by_subject, rest

PATHS = ("notes/a.txt", "notes/b.txt", "notes/deep/c.txt", "plans/a.txt", "notes.txt")
WRITES = calls(*(call("write", path=path) for path in PATHS))


def again(*paths: str) -> list[Any]:
    return calls(*(call("write", path=path) for path in paths))


async def settled(chat: Chat, turn: Turn) -> list[str]:
    """What is still asked when nothing moves any more."""
    await rest(chat, turn)
    return sorted(await gates_by_subject(chat))


# What is asked beside -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offer", "covered"),
    [(0, ["notes/a.txt"]), (1, ["notes/a.txt", "notes/b.txt", "notes/deep/c.txt"])],
    ids=["the narrow one", "the wide one"],
)
async def test_always_settles_what_it_covers_and_nothing_else(offer: int, covered: list[str], tmp_path: Path) -> None:
    office = Office(tmp_path)
    async with office.process(WRITES, say("Done.")) as chat:
        await asks(chat)
    async with office.process(WRITES, say("Done.")) as chat:
        gates = await gates_by_subject(chat)
        turn = chat.turn(gates["notes/a.txt"].turn)
        offers = gates["notes/a.txt"].offers
        assert [rule.match for rule in offers] == [{"path": "notes/a.txt"}, {"path": "notes/**"}]
        await chat.answer(gates["notes/a.txt"], allow=offers[offer], by="ada")
        assert await settled(chat, turn) == sorted(set(PATHS) - set(covered))
        assert office.done == [f"write {path}" for path in covered]
        answers = [event for event in await events_in(chat) if isinstance(event, GateResolved)]
        assert len(answers) == len(covered)
        assert [event.grant is not None for event in answers].count(True) == 1  # the others are told why, once each
        assert sum(gates["notes/a.txt"].id in event.resolution.by for event in answers) == len(covered) - 1


async def test_a_denial_is_one_of_its_own_call_and_of_the_others_when_it_says_so(tmp_path: Path) -> None:
    office = Office(tmp_path)
    async with office.process(WRITES, say("Done.")) as chat:
        turn = await asks(chat)
        gates = await gates_by_subject(chat)
        await chat.answer(gates["notes/a.txt"], deny="not this one")
        assert await settled(chat, turn) == sorted(set(PATHS) - {"notes/a.txt"})
        await chat.answer(gates["notes/b.txt"], allow="once")
        assert await settled(chat, turn) == ["notes.txt", "notes/deep/c.txt", "plans/a.txt"]
    async with office.process(WRITES, say("Done.")) as chat:
        await chat.answer(gates["plans/a.txt"], deny="leave it all", others=True)
        assert (await chat.turn(turn.id)).text == "Done."
        texts = list(office.told().values())
    assert office.done == ["write notes/b.txt"]
    assert sum("not this one" in text for text in texts) == 1
    assert sum("leave it all" in text for text in texts) == 3


# How long it holds ----------------------------------------------------------------------------------------------------


async def test_a_grant_holds_after_a_restart_until_it_is_revoked(tmp_path: Path) -> None:
    office = Office(tmp_path)
    path = "notes/a.txt"
    script = (again(path), say("One."), again(path), say("Two."), again(path), say("Three."))
    async with office.process(*script) as chat:
        turn = await asks(chat)
        [gate] = await chat.gates()
        await chat.answer(gate, allow="always", by="ada")
        assert (await turn).text == "One."
    async with office.process(*script) as chat:
        rule = Rule("write", "allow", {"path": path}, "grants", gate.id)
        expected = Grant(gate.id, rule, "s1", "ada", office.clock.now(), tool="write", identity=gate.identity)
        assert await chat.grants() == [expected]
        assert (await (await chat.send("again"))).text == "Two."
        judged = [event for event in await events_in(chat) if isinstance(event, PermissionDecided)]
        assert judged[-1].rule == rule  # and it is on record why nobody was asked
        assert (await count(chat, GateOpened), len(office.done)) == (1, 2)
    async with office.process(*script) as chat:
        [grant] = await chat.grants()
        await chat.revoke(grant, by="ada")
        assert await chat.grants() == []
        with pytest.raises(UnknownGrant):
            await chat.revoke(grant)
    async with office.process(*script) as chat:
        assert await chat.grants() == []
        await asks(chat, "once more")
        assert list(await gates_by_subject(chat)) == [path]
        assert (await count(chat, GateOpened), await count(chat, GrantRevoked), len(office.done)) == (2, 1, 2)


async def test_a_grant_that_is_over_is_asked_about_again(tmp_path: Path) -> None:
    office = Office(tmp_path)
    path = "notes/a.txt"
    script = (again(path), say("One."), again(path), say("Two."), again(path), say("Three."))
    async with office.process(*script) as chat:
        turn = await asks(chat)
        [gate] = await chat.gates()
        await chat.answer(gate, allow="always", until=office.clock.now() + 60.0)
        await turn
        office.clock.advance(59.0)
        assert (await (await chat.send("again"))).text == "Two."
        office.clock.advance(1.0)
        assert await chat.grants() == []
    async with office.process(*script) as chat:
        await asks(chat, "once more")
        assert list(await gates_by_subject(chat)) == [path]
    assert len(office.done) == 2


async def test_a_grant_that_was_over_when_it_was_given_allows_its_own_call_and_no_other(tmp_path: Path) -> None:
    office = Office(tmp_path)
    script = (again("notes/a.txt"), say("One."), again("notes/a.txt"), say("Two."))
    async with office.process(*script) as chat:
        turn = await asks(chat)
        [gate] = await chat.gates()
        await chat.answer(gate, allow="always", until=office.clock.now() - 1.0)
        assert (await turn).text == "One."
        assert await chat.grants() == []
        await asks(chat, "again")
        assert list(await gates_by_subject(chat)) == ["notes/a.txt"]
    assert len(office.done) == 1


async def test_a_grant_that_is_over_settles_nothing_that_is_asked_beside(tmp_path: Path) -> None:
    office = Office(tmp_path)
    async with office.process(WRITES, say("Done.")) as chat:
        turn = await asks(chat)
        gate = (await gates_by_subject(chat))["notes/a.txt"]
        await chat.answer(gate, allow=gate.offers[1], until=office.clock.now() - 1.0)
        assert await settled(chat, turn) == sorted(set(PATHS) - {"notes/a.txt"})
        assert office.done == ["write notes/a.txt"]


# Where it holds -------------------------------------------------------------------------------------------------------


async def test_everywhere_is_every_session_of_the_tenant_and_none_of_another(tmp_path: Path) -> None:
    office = Office(tmp_path)
    mine, wide = "notes/a.txt", "notes/deep/c.txt"
    script = (again(mine, "plans/a.txt"), say("One."), again(wide), say("Two."))
    async with office.process(*script, session="s1") as chat:
        await asks(chat)
        other = Chat(office.model, app=chat.app, session="s2")
        await asks(other)
        theirs = Turn(chat.app, "s3", "t3")
        await chat.app.command(
            Send(key="k", session="s3", tenant="eve", turn="t3", message="m", parts=(TextPart("please"),), at_leaf=True)
        )
        await rest(chat, theirs)
    async with office.process(*script, session="s1") as chat:
        gates = await gates_by_subject(chat)
        await chat.answer(gates[mine], allow=gates[mine].offers[1], everywhere=True)
        other = Chat(office.model, app=chat.app, session="s2")
        assert await settled(chat, chat.turn(gates[mine].turn)) == ["plans/a.txt"]
        [turn] = await chat.app.store.open_turns("s2")
        while await settled(other, other.turn(turn)) != ["plans/a.txt"]:  # that one is woken after this
            pass
        assert len(await chat.app.store.gates("s3")) == 2
        assert office.done == [f"write {mine}"] * 2
    async with office.process(*script, session="s2") as chat:
        [gate] = await chat.gates()
        await chat.answer(gate, deny=True)
        assert (await (await chat.send("again"))).text == "Two."  # what was granted in s1 holds here
        assert [grant.session for grant in await chat.grants()] == [""]
        assert await chat.app.store.grants("s3", office.clock.now()) == []
        assert len(await chat.app.store.gates("s3")) == 2
    async with office.process(*script, session="s2") as chat:
        [grant] = await chat.grants()
        await chat.revoke(grant)  # it can be taken back wherever it holds
    async with office.process(*script, session="s4") as chat:
        await asks(chat)
        assert sorted(await gates_by_subject(chat)) == [mine, "plans/a.txt"]
    assert office.done == [f"write {mine}", f"write {mine}", f"write {wide}"]


async def test_a_grant_for_one_session_leaves_the_same_question_open_in_another(tmp_path: Path) -> None:
    office = Office(tmp_path)
    script = (again("notes/a.txt"), say("One."))
    async with office.process(*script, session="s1") as chat:
        turn = await asks(chat)
        other = Chat(office.model, app=chat.app, session="s2")
        waits = await asks(other)
        [gate] = await chat.gates()
        await chat.answer(gate, allow="always")
        await turn
        assert await settled(other, waits) == ["notes/a.txt"]
        assert await other.grants() == []
    assert office.done == ["write notes/a.txt"]


async def test_only_what_was_offered_can_be_remembered(tmp_path: Path) -> None:
    office = Office(tmp_path)
    async with office.process(again("notes/a.txt"), say("One.")) as chat:
        turn = await asks(chat)
        [gate] = await chat.gates()
        for rule in (Rule("write", "allow", layer="grants"), Rule("write", "allow", {"path": "**"}, "grants")):
            with pytest.raises(AnswerUnfit):
                await chat.answer(gate, allow=rule)
        with pytest.raises(ConfigError):
            await chat.answer(gate, allow="always", deny=True)
        assert await settled(chat, turn) == ["notes/a.txt"]
        assert (await chat.grants(), office.done) == ([], [])


async def test_a_grant_is_for_the_tool_it_was_given_for() -> None:
    """Not for whatever goes by its name later: a server that swaps what it offers is asked about anew."""
    ran: list[str] = []

    def make_tool(text: str) -> Tool:
        def search(q: str) -> str:
            ran.append(q)
            return "found"

        search.__doc__ = text
        return tool(approval="ask")(search)

    store, script = (
        MemoryStore(),
        (calls(call("search", q="a")), say("One."), calls(call("search", q="b")), say("Two.")),
    )
    model = ScriptedModel(*script)
    async with Chat(model, app=App(model, tools=[make_tool("Search.")], store=store), session="s") as chat:
        turn = await chat.send("one")
        async for shown in turn:
            if isinstance(shown, GateOpened):
                await chat.answer(shown.gate, allow="always")
    async with Chat(model, app=App(model, tools=[make_tool("Search, and tell.")], store=store), session="s") as chat:
        turn = await chat.send("two")
        async for shown in turn:
            if isinstance(shown, GateOpened):
                await chat.answer(shown.gate, deny="it is another")
    assert ran == ["a"]
