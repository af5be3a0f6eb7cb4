"""Private conversations: every route, asked by everybody who is, was or is not part of one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from everturn import api
from everturn.access.access import Access
from everturn.access.administration.admin import AdminAccess
from everturn.access.context.scope import ScopedAccess
from everturn.access.conversations.audio import AudioAccess
from everturn.access.conversations.files import FileAccess
from everturn.access.conversations.log import LogAccess
from everturn.access.conversations.presence import PresenceAccess
from everturn.access.conversations.prompts import PromptAccess
from everturn.access.conversations.sessions import SessionAccess
from everturn.access.conversations.sharing import SharingAccess
from everturn.access.conversations.traces import TraceAccess
from everturn.access.gates import GateAccess
from everturn.core.tenants.accounts import Principal
from everturn.core.tenants.sharing import Reader, reader_of
from everturn.errors import UnknownSession
from everturn.server.protocols.a2a import TaskId
from tests.helpers.private_world import (
    CONVERSATION,
    OTHER,
    PEOPLE,
    SECRET,
    TENANT,
    TITLE,
    PrivateWorld,
    a_private_world,
    access_of,
    find_leaks,
    find_leaks_in_bodies,
)
from tests.helpers.route_matrix import Things, absent, may, state_of
from tests.helpers.server_app import Answer
from tests.security.test_fuzz_ids import fuzz
from tests.stores.test_postgres import Place
from tests.stores.test_row_security import everything

WITHOUT_EFFECT = [name for name, person in PEOPLE.items() if person.level in (None, "read")]
"""Those who may change nothing, so that one world serves all routes; an approver's answer is the exception."""


@pytest.fixture
async def private() -> AsyncIterator[PrivateWorld]:
    async with a_private_world() as private:
        yield private


async def test_every_route_is_in_one_of_the_two_lists(private: PrivateWorld) -> None:
    names = {route.name for route in private.routes}
    assert names == CONVERSATION.keys() | OTHER
    assert not CONVERSATION.keys() & OTHER


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
async def test_every_route_shows_as_much_as_the_relation_to_the_conversation_allows(
    name: str, private: PrivateWorld
) -> None:
    person = PEOPLE[name]
    before = await state_of(private.world, TENANT)
    assert await find_leaks(private, person) == []
    after = await state_of(private.world, TENANT)
    if person.role in ("viewer", "member"):
        assert after["logs"] == before["logs"]
        assert after["inboxes"] == before["inboxes"]


@pytest.mark.parametrize("name", ["stranger", "outside_approver", "outside_owner", "former_writer", "foreign_owner"])
async def test_routes_that_take_an_id_in_a_body_or_a_query_tell_those_outside_nothing(name: str) -> None:
    async with a_private_world() as private:
        assert await find_leaks_in_bodies(private, PEOPLE[name]) == []


async def test_every_route_that_changes_something_answers_without_it(private: PrivateWorld) -> None:
    for name in ("outside_owner", "foreign_owner"):
        for route in private.routes:
            if route.name in OTHER and route.method != "GET" and may(PEOPLE[name].role, route):
                answer = await private.ask(route, PEOPLE[name])
                assert SECRET.encode() not in answer.body, route.name
                assert TITLE.encode() not in answer.body, route.name


@pytest.mark.parametrize("name", ["author", "writer"])
async def test_the_author_and_those_who_may_write_are_let_in(name: str) -> None:
    person = PEOPLE[name]
    async with a_private_world() as private:
        access = access_of(private.world, name)
        session = private.things.session
        assert session in {view.id for view in (await access.sessions.list()).sessions}
        assert [hit.session for hit in (await access.sessions.search(SECRET)).results]
        await access.sessions.cancel_turn(session, private.things.turn, api.CancelTurn())
        assert (await access.sessions.send(session, api.NewMessage(text="hello"))).is_new
        assert (await access.sharing.get(session)).level == person.level


async def test_lists_and_search_of_a_reader_have_it_and_those_of_a_stranger_do_not(private: PrivateWorld) -> None:
    for name, person in PEOPLE.items():
        access = access_of(private.world, name)
        listed = [view for view in (await access.sessions.list()).sessions if view.title.startswith(TITLE)]
        found = (await access.sessions.search(SECRET)).results
        assert bool(listed) == bool(found) == (person.level is not None), name
        inbox = await access.inbox()
        assert not [view for view in inbox.awake if view.title.startswith(TITLE)] or person.level is not None


async def test_an_approver_outside_sees_the_question_and_answers_it(private: PrivateWorld) -> None:
    approver, session = access_of(private.world, "outside_approver"), private.things.session
    (view,) = [gate for gate in (await approver.gates.page()).gates if gate.session == session]
    assert view.title.startswith(TITLE)
    assert SECRET not in view.title
    assert (view.gate.tool, view.gate.id) == ("pay", private.things.gate)
    await approver.gates.resolve(session, view.gate.id, api.AnswerGate(hash=view.gate.hash, allow="once"))
    assert not [gate for gate in (await approver.gates.page()).gates if gate.session == session]
    stranger = access_of(private.world, "stranger")
    assert not [gate for gate in (await stranger.gates.page()).gates if gate.session == session]


async def test_opening_as_administrator_is_audited_and_the_author_is_told(private: PrivateWorld) -> None:
    author, owner = access_of(private.world, "author"), access_of(private.world, "administrator")
    (notice,) = (await author.sharing.notices()).notices
    assert (notice.by, notice.reason, notice.session) == ("administrator", "a complaint", private.things.session)
    assert 0 < notice.expires - notice.at <= 3600
    records = (await owner.accounts.audit(limit=1000)).records
    (record,) = [row for row in records if row.did == "session.open_as_administrator" and row.by == "administrator"]
    assert record.on == private.things.session
    assert (await owner.sharing.notices()).notices == []
    await author.sharing.dismiss_notice(notice.id)
    assert (await author.sharing.notices()).notices == []
    kinds = [share.kind for share in (await author.sharing.get(private.things.session)).shares]
    assert "admin" in kinds


@pytest.mark.parametrize("name", ["stranger", "outside_owner", "former_friend", "foreign_owner", "friend", "author"])
async def test_every_a2a_method_follows_the_conversation(name: str, private: PrivateWorld) -> None:
    (route,) = [route for route in private.routes if route.name == "a2a_call"]
    things, person = private.things, PEOPLE[name]
    nothing = absent(things)

    async def call(method: str, of: Things) -> Answer:
        task, message = TaskId(of.session, of.turn).id, {"messageId": method, "parts": [{"text": SECRET[:5]}]}
        params = {
            "SendMessage": {"message": {**message, "contextId": of.session}},
            "SendStreamingMessage": {"message": {**message, "taskId": task}},
            "ListTasks": {"contextId": of.session, "includeArtifacts": True, "historyLength": 9},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params.get(method, {"id": task})}
        return await private.world.ask(route, private.keys[name], of.ids(), body)

    for method in ("GetTask", "ListTasks", "SubscribeToTask", "SendMessage", "SendStreamingMessage", "CancelTask"):
        if method == "SendMessage" and person.level == "manage":
            continue  # it would wait for an approval
        real, absent_one = await call(method, things), await call(method, nothing)
        if person.level is None:
            assert (real.status, real.body) == (absent_one.status, absent_one.body), method
            assert SECRET.encode() not in real.body
        elif method in ("GetTask", "ListTasks"):
            assert SECRET.encode() in real.body, method
        elif method in ("SendMessage", "CancelTask") and person.level == "read":
            assert real.status == 403, method
    listed = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"historyLength": 9}}
    everything = await private.world.ask(route, private.keys[name], things.ids(), listed)
    assert (SECRET.encode() in everything.body) == (person.level is not None)


# Seeded bugs ----------------------------------------------------------------------------------------------------------

_unchecked: ContextVar[bool] = ContextVar("unchecked", default=False)

SEEDED: dict[str, tuple[type, str]] = {
    "session": (SessionAccess, "get"),
    "messages": (SessionAccess, "messages"),
    "tree": (SessionAccess, "tree"),
    "turn": (SessionAccess, "turn"),
    "export": (SessionAccess, "export"),
    "sessions": (SessionAccess, "list"),
    "search": (SessionAccess, "search"),
    "log": (LogAccess, "page"),
    "log_tail": (LogAccess, "tail"),
    "queue": (LogAccess, "queue"),
    "blob": (FileAccess, "read"),
    "grants": (GateAccess, "grants"),
    "sharing": (SharingAccess, "get"),
    "session_instructions": (PromptAccess, "session_instructions"),
    "follow": (Access, "follow"),
    "update_session": (SessionAccess, "update"),
    "rate": (SessionAccess, "rate"),
    "a2a_call": (SessionAccess, "send"),
    "trace": (TraceAccess, "get"),
    "sent_request": (TraceAccess, "request"),
    "speak": (AudioAccess, "speak"),
}
"""Routes, and the method of each that is run without its check."""


@pytest.mark.parametrize("route", SEEDED)
async def test_a_check_that_is_removed_from_a_route_is_found(
    route: str, private: PrivateWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name = SEEDED[route]
    remove_check(monkeypatch, owner, name)
    assert route in await find_leaks(private, PEOPLE["stranger"])


@pytest.mark.parametrize(
    ("route", "owner", "name"),
    [
        ("presence", PresenceAccess, "look"),
        ("transcribe", AudioAccess, "transcribe"),
        ("explain", AdminAccess, "explain"),
    ],
)
async def test_a_check_of_an_id_in_a_body_that_is_removed_is_found(
    route: str, owner: type, name: str, private: PrivateWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_check(monkeypatch, owner, name)
    assert route in await find_leaks_in_bodies(private, PEOPLE["stranger"])


def remove_check(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    """Let one method run as if its caller were the author."""
    method: Callable[..., Awaitable[Any]] = getattr(owner, name)

    async def unchecked(self: Any, *args: Any, **kwargs: Any) -> Any:
        token = _unchecked.set(True)
        try:
            return await method(self, *args, **kwargs)
        finally:
            _unchecked.reset(token)

    def reader(self: ScopedAccess) -> Reader:
        person = access_principal(self)
        return reader_of(person, self.server_context.app.clock.now())

    def access_principal(scope: ScopedAccess) -> Any:
        return (
            type(scope.principal)(scope.principal.tenant, "author", "member") if _unchecked.get() else scope.principal
        )

    monkeypatch.setattr(ScopedAccess, "reader", property(reader))
    monkeypatch.setattr(owner, name, unchecked)


# PostgreSQL -----------------------------------------------------------------------------------------------------------


@pytest.mark.live
async def test_without_the_check_of_the_access_layer_the_database_hides_it_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def let_all_in(self: ScopedAccess, info: Any) -> str:
        return "manage"

    place = Place()
    try:
        async with a_private_world(place.store()) as private:
            stranger, session = access_of(private.world, "stranger"), private.things.session
            assert await find_leaks(private, PEOPLE["stranger"]) == []
            monkeypatch.setattr(ScopedAccess, "session_level", let_all_in)
            for read in (
                stranger.sessions.get(session),
                stranger.sessions.messages(session),
                stranger.sessions.tree(session),
                stranger.log.page(session),
                stranger.log.tail(session),
                stranger.files.read(session, private.things.blob),
            ):
                with pytest.raises(UnknownSession):
                    await read
            friend = access_of(private.world, "friend")
            assert SECRET in repr(await friend.sessions.messages(session))
    finally:
        await place.aclose()


CONTENT = "sessions inbox events event_keys turns messages gates grants files mentions lookup".split()
"""Tables with what was said, by whatever query."""


@pytest.mark.live
async def test_the_database_shows_every_person_only_what_they_may_read_whatever_the_query() -> None:
    place = Place()
    try:
        store = place.store()
        async with a_private_world(store) as private:
            session, now = private.things.session, private.world.house.app.clock.now()
            for person in PEOPLE.values():
                reader = reader_of(Principal(person.tenant, person.name, person.role, "c"), now)
                seen = set[str]()
                for table in CONTENT:
                    with store.restrict_to_tenant(person.tenant, reader):
                        rows = await place.opened[0].read(lambda table=table: everything(table))
                    seen |= {table} if session in repr(rows) else set()
                if person.level is None:
                    assert seen == set(), (person.name, seen)
                else:
                    assert {"sessions", "events", "messages", "gates"} <= seen, (person.name, seen)
    finally:
        await place.aclose()


# Ids ------------------------------------------------------------------------------------------------------------------


async def test_ids_of_a_private_conversation_lead_nowhere(private: PrivateWorld) -> None:
    await fuzz_private(private, 300, seed=3)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2))
async def test_ten_thousand_ids_of_a_private_conversation_lead_nowhere(private: PrivateWorld, seed: int) -> None:
    await fuzz_private(private, 10_000, seed)


# The schedule of these worlds is nobody's: all of the tenant may see it, and only owners may change it.
CHANGES = ("replace_schedule", "delete_schedule", "pause_schedule", "resume_schedule", "run_schedule")
SHARED = {"schedule": 200, **dict.fromkeys(CHANGES, 403)}


async def fuzz_private(private: PrivateWorld, tries: int, seed: int) -> None:
    before = await state_of(private.world, TENANT)
    key = private.keys["stranger"]
    statuses = await fuzz(
        private.world, tries, seed, ours=private.things, key=key, role="member", canary=SECRET, shared=SHARED
    )
    assert statuses[404] > tries / 2
    assert 500 not in statuses
    after = await state_of(private.world, TENANT)
    assert after["logs"] == before["logs"]
