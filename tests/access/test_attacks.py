"""What was found by attacking the door: limits that hold at once, names that are used up, and results that stay veiled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn import api
from everturn.access.access import Access
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.core.events import SubagentStarted
from everturn.core.options import Budget, TurnOptions
from everturn.core.parts import TextPart
from everturn.core.phases import Phase
from everturn.errors import (
    AnswerUnfit,
    ConfigError,
    Forbidden,
    HashMismatch,
    KeyConflict,
    StoreUnavailable,
    TooMuch,
    UnknownFile,
    UnknownSession,
    UnknownTurn,
)
from everturn.running.drive_setup import TurnSettings
from everturn.stores.registry import get_store
from everturn.testing import FakeClock, MemoryStore
from everturn.tools.subagent import SubagentTool
from tests.helpers.tenants import (
    AGENTS,
    SECRET,
    a_house,
    gate_in,
    look,
    model,
    over,
    peek,
    settle,
    somebody,
    start_session,
)
from tests.helpers.waiting import wait_until


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    return MemoryStore() if request.param == "memory" else get_store(str(tmp_path / "house.db"))


# How much --------------------------------------------------------------------------------------------------------------


async def test_turns_beside_each_other_in_one_session_are_counted_one_by_one(store: Any) -> None:
    async with a_house(store, limits=TenantLimits(requests=0, turns=3)) as house:
        ada = Access(house, somebody())
        sent = await start_session(ada, "hang")
        accepted = 1

        async def all_begun() -> bool:
            return len(await house.app.store.open_turns(sent.session)) == accepted

        for _ in range(3):
            await wait_until(all_begun)
            for _ in range(4):
                try:
                    await ada.sessions.send(sent.session, api.NewMessage(text="hang", busy="fork"))
                    accepted += 1
                except TooMuch:
                    pass
            house.meter._readings.clear()  # as if a second had passed
        assert accepted == 3
        for turn in await house.app.store.open_turns(sent.session):
            await ada.sessions.cancel_turn(sent.session, turn, api.CancelTurn(hard=True))


async def test_a_turn_that_waits_for_a_person_does_not_keep_others_out() -> None:
    async with a_house(limits=TenantLimits(requests=0, turns=1)) as house:
        ada = Access(house, somebody())
        await gate_in(ada, (await start_session(ada, "pay")).session)

        async def is_quiet() -> bool:
            return not await house.app.store.count_active_turns("ada")

        await wait_until(is_quiet)
        house.meter._readings.clear()
        assert (await start_session(ada, "hello")).is_new


async def test_a_budget_is_not_passed_by_asking_all_at_once() -> None:
    async with a_house(limits=TenantLimits(requests=0, budget=Budget(steps=3))) as house:
        ada = Access(house, somebody())
        sent = await asyncio.gather(*(start_session(ada, "hello") for _ in range(20)), return_exceptions=True)
        assert sum(isinstance(result, api.MessageReceipt) for result in sent) == 3
        assert all(isinstance(result, api.MessageReceipt | TooMuch) for result in sent)


async def test_a_turn_that_runs_ends_where_the_budget_of_its_tenant_does() -> None:
    limits = {"ada": Budget(calls=1), "bob": Budget()}
    app = App(
        model(), tools=[look], store=MemoryStore(), settings=TurnSettings(budget_of=lambda name: (limits[name], 0.0))
    )
    store: Any = app.store
    house = ServerContext(app, store.accounts, Agents(AGENTS, default_limits=TenantLimits(requests=0)))
    await settle(house.accounts)
    await app.start()
    try:
        for tenant, most in (("ada", 1), ("bob", 2)):
            access = Access(house, somebody(tenant))
            for _ in range(2):
                await over(access, await start_session(access, "look"))
            assert (await store.spent(tenant=tenant)).calls == most
    finally:
        await app.aclose()


async def test_files_are_kept_up_to_so_many_bytes_a_day() -> None:
    clock = FakeClock()
    async with a_house(clock=clock, limits=TenantLimits(requests=0, uploaded=1000)) as house:
        ada = Access(house, somebody())
        for _ in range(2):
            await ada.files.upload(b"x" * 500, "text/plain", "a.txt")
        with pytest.raises(TooMuch, match="1,000 bytes") as raised:
            await ada.files.upload(b"x" * 250, "text/plain", "a.txt")
        assert raised.value.retry_after == pytest.approx(86_400 / 4)
        await Access(house, somebody("bob")).files.upload(b"x" * 500, "text/plain", "a.txt")
        clock.advance(raised.value.retry_after + 1)
        await ada.files.upload(b"x" * 250, "text/plain", "a.txt")


@pytest.mark.parametrize(("own", "wanted", "is_taken"), [(100, 100, True), (100, 101, False), (None, 10**15, False)])
async def test_nobody_asks_for_more_tokens_than_the_agent_may_use(own: int | None, wanted: int, is_taken: bool) -> None:
    agent = AgentSpec("helper", TurnOptions(model="scripted", params=None if own is None else {"max_tokens": own}))
    async with a_house(agents=(agent,)) as house:
        ada = Access(house, somebody())
        if is_taken:
            await over(ada, await start_session(ada, "hello", params={"max_tokens": wanted}))
        else:
            with pytest.raises(ConfigError, match="max_tokens"):
                await start_session(ada, "hello", params={"max_tokens": wanted})


# What is noted -----------------------------------------------------------------------------------------------------------


async def test_nothing_is_done_that_could_not_be_noted() -> None:
    async with a_house() as house:
        owner = Access(house, somebody("ada", "owner"))
        sent = await start_session(owner, "hello")
        await over(owner, sent)
        accounts: Any = house.accounts
        before = await accounts.users("ada")
        append_audit = accounts.append_audit

        async def fails(record: Any) -> Any:
            raise StoreUnavailable("away")

        accounts.append_audit = fails
        for change in (
            lambda: owner.accounts.create_key(api.NewKey(role="member")),
            lambda: owner.accounts.put_user("new", api.PutUser()),
            lambda: owner.sessions.erase(sent.session),
        ):
            with pytest.raises(StoreUnavailable):
                await change()
        accounts.append_audit = append_audit
        assert await accounts.credentials("ada") == []
        assert await accounts.users("ada") == before
        assert (await owner.sessions.get(sent.session)).id == sent.session
        await owner.sessions.erase(sent.session)
        assert [record.did for record in (await owner.accounts.audit()).records] == ["session.erase"]


# Names -----------------------------------------------------------------------------------------------------------------


async def test_a_key_whose_session_was_erased_says_so_and_begins_nothing(store: Any) -> None:
    async with a_house(store) as house:
        ada, owner = Access(house, somebody()), Access(house, somebody("ada", "owner"))
        sent = await ada.sessions.start(api.NewSession(text="hello"), "k")
        await over(ada, sent)
        await owner.sessions.erase(sent.session)
        for busy in ("queue", "reject", "fork"):
            with pytest.raises(KeyConflict, match="was erased"):
                await ada.sessions.start(api.NewSession(text="hello", busy=busy), "k")
        assert (await ada.sessions.start(api.NewSession(text="hello"), "k2")).is_new


async def test_a_name_of_a_face_is_that_of_the_next_session_once_one_was_erased(store: Any) -> None:
    async with a_house(store) as house:
        ada, owner = Access(house, somebody()), Access(house, somebody("ada", "owner"))
        other = Access(house, somebody("ada", "member", "somebody-else"))
        seen: list[str] = []
        for _ in range(6):
            sent = await ada.sessions.start_with_id(api.NewSession(text="hello"), "chat")
            assert not (await ada.sessions.start_with_id(api.NewSession(text="hello"), "chat")).is_new
            assert await ada.scope.named_session("chat") == sent.session
            assert await other.scope.named_session("chat") != sent.session
            await over(ada, sent)
            await owner.sessions.erase(sent.session)
            seen.append(sent.session)
        assert len(set(seen)) == 6
        assert await ada.scope.named_session("chat") not in seen


async def test_a_key_that_was_used_for_something_else_is_called_as_its_sender_knows_it() -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        sent = await ada.sessions.start(api.NewSession(text="hello"), "k")
        with pytest.raises(KeyConflict, match="this Idempotency-Key was used before") as raised:
            await ada.sessions.start(api.NewSession(text="other"), "k")
        assert "api." not in str(raised.value)
        await over(ada, sent)
        await ada.sessions.send(sent.session, api.NewMessage(text="one"), "k3")
        with pytest.raises(KeyConflict, match="this Idempotency-Key was used before"):
            await ada.sessions.send(sent.session, api.NewMessage(text="two"), "k3")


async def test_a_turn_that_was_cancelled_before_it_began_is_one_that_was_cancelled(store: Any) -> None:
    async with a_house(store) as house:
        ada = Access(house, somebody())
        first = await start_session(ada, "hang")
        second = await ada.sessions.send(first.session, api.NewMessage(text="hello"))
        assert (await ada.sessions.turn(first.session, second.turn)).phase == Phase.IDLE
        await ada.sessions.cancel_turn(first.session, second.turn, api.CancelTurn())
        assert (await over(ada, second)).phase == Phase.CANCELLED
        with pytest.raises(UnknownTurn):
            await ada.sessions.turn(first.session, "nothing")
        await ada.sessions.cancel_turn(first.session, first.turn, api.CancelTurn(hard=True))
        await over(ada, first)
        assert (await ada.sessions.turn(first.session, second.turn)).phase == Phase.CANCELLED


# What is reviewed ------------------------------------------------------------------------------------------------------


async def test_whoever_may_not_answer_learns_nothing_of_a_hash() -> None:
    async with a_house() as house:
        member, approver = Access(house, somebody()), Access(house, somebody("ada", "approver"))
        sent = await start_session(member, "peek")
        right = (await gate_in(approver, sent.session)).gate
        assert right.hash
        messages: set[str] = set()
        for hash in (right.hash, "0" * 64, ""):
            for answered in (api.AnswerGate(hash=hash, allow="once"), api.AnswerGate(hash=hash, deny=True)):
                with pytest.raises(Forbidden) as raised:
                    await member.gates.resolve(sent.session, right.id, answered)
                messages.add(str(raised.value))
            with pytest.raises(AnswerUnfit, match="a client cannot claim it"):
                await member.gates.claim(sent.session, right.id, api.ClaimGate(hash=hash, claim="c" * 20))
        assert len(messages) == 1
        with pytest.raises(HashMismatch):
            await approver.gates.resolve(sent.session, right.id, api.AnswerGate(hash="0" * 64, allow="once"))
        await approver.gates.resolve(sent.session, right.id, api.AnswerGate(hash=right.hash, allow="once"))
        await over(member, sent)


async def test_the_same_answer_again_is_noted_once() -> None:
    async with a_house() as house:
        member, approver = Access(house, somebody()), Access(house, somebody("ada", "approver"))
        sent = await start_session(member, "pay")
        gate = (await gate_in(approver, sent.session)).gate
        for _ in range(3):
            await approver.gates.resolve(sent.session, gate.id, api.AnswerGate(hash=gate.hash, allow="once"))
        await over(member, sent)
        records = (await Access(house, somebody("ada", "owner")).accounts.audit()).records
        assert [record.did for record in records] == ["gate.answer"]


async def a_house_with_a_teller() -> tuple[ServerContext, App]:
    """A sub-agent run tells the secret, and its call is reviewed."""

    def answer(request: Any) -> Any:
        from everturn.testing import call, calls, say

        last = request.messages[-1]
        text = "".join(part.text for part in last.parts if isinstance(part, TextPart)) if last.role == "user" else ""
        if text == "ask":
            return calls(call("teller", task="tell"))
        return say(SECRET if text == "tell" else "Done.")

    from everturn.testing import ScriptedModel

    store = MemoryStore()
    app = App(
        ScriptedModel(*[answer] * 50, name="scripted"),
        tools=[SubagentTool("teller", "Tells."), peek, look],
        store=store,
    )
    agents = Agents((AgentSpec("helper", TurnOptions(model="scripted", review="always")),))
    house = ServerContext(app, store.accounts, agents)
    await settle(house.accounts)
    await app.start()
    return house, app


async def reads(access: Access, session: str, turn: str) -> list[str]:
    """By which ways somebody reads the secret in a session."""
    ways = {
        "session": lambda: access.sessions.get(session),
        "messages": lambda: access.sessions.messages(session),
        "tree": lambda: access.sessions.tree(session),
        "turn": lambda: access.sessions.turn(session, turn),
        "follow": lambda: access.follow(session),
        "blob": lambda: access.files.read(session, "0" * 64),
    }
    found: list[str] = []
    for name, way in ways.items():
        try:
            await way()
            found.append(name)
        except UnknownFile:
            found.append(name)
        except UnknownSession:
            pass
    if (await access.sessions.search(SECRET)).results:
        found.append("search")
    return found


@pytest.mark.parametrize("said_to_it", ["allow", "redact", "withhold"])
async def test_what_a_sub_turn_said_is_for_approvers_until_its_call_was_let_through(said_to_it: str) -> None:
    house, app = await a_house_with_a_teller()
    try:
        member, viewer = Access(house, somebody()), Access(house, somebody("ada", "viewer"))
        approver = Access(house, somebody("ada", "approver"))
        sent = await start_session(member, "ask")
        gate = (await gate_in(approver, sent.session)).gate
        assert gate.kind == "result"
        log = await app.store.events(sent.session)
        ((below, turn),) = [(e.event.session, e.event.child) for e in log if isinstance(e.event, SubagentStarted)]
        every = ["session", "messages", "tree", "turn", "follow", "blob", "search"]
        for veiled in (member, viewer):
            assert await reads(veiled, below, turn) == []
        assert await reads(approver, below, turn) == every
        answers = {
            "allow": api.AnswerGate(hash=gate.hash, allow="once"),
            "redact": api.AnswerGate(hash=gate.hash, allow="once", text="something"),
            "withhold": api.AnswerGate(hash=gate.hash, deny=True),
        }
        await approver.gates.resolve(sent.session, gate.id, answers[said_to_it])
        await over(approver, sent)
        assert await reads(viewer, below, turn) == (every if said_to_it == "allow" else [])
    finally:
        await app.aclose()


async def test_what_a_sub_turn_said_that_nobody_reviews_is_for_all() -> None:
    async with a_house() as house:
        viewer, approver = Access(house, somebody("ada", "viewer")), Access(house, somebody("ada", "approver"))
        sent = await start_session(approver, "clerk")
        await gate_in(approver, sent.session)
        log = await house.app.store.events(sent.session)
        below = next(entry.event.session for entry in log if isinstance(entry.event, SubagentStarted))
        assert (await viewer.sessions.messages(below)).messages
        assert len((await viewer.gates.page(sent.session)).gates) == 1
