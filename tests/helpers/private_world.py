"""One private conversation, and people who stand in every relation to it: the privacy matrix asks every route as each."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from msgspec import Struct

from everturn import api
from everturn.access.access import Access
from everturn.core.tenants.accounts import Principal, Role, User
from everturn.core.tenants.sharing import SessionLevel
from everturn.server.protocols.openai.turns import ResponseId
from everturn.server.route import Route
from tests.helpers.recordings import a_recording
from tests.helpers.route_matrix import Things, World, a_world, absent, may
from tests.helpers.server_app import Answer, ask
from tests.helpers.waiting import wait_until

TITLE: Final = "sell the shares of spring"
SECRET: Final = "words-of-the-author-4711"
TENANT: Final = "ours"
WAV: Final = a_recording(1.0)


class Person(Struct, frozen=True):
    """Somebody, and what they may do in the conversation; None: they are not part of it."""

    name: str
    role: Role
    level: SessionLevel | None = None
    tenant: str = TENANT


PEOPLE: Final = {
    person.name: person
    for person in (
        Person("author", "member", "manage"),
        Person("stranger", "member"),
        Person("onlooker", "viewer"),
        Person("outside_approver", "approver"),
        Person("outside_owner", "owner"),
        Person("outside_operator", "operator"),
        Person("friend", "member", "read"),  # shared with this user
        Person("writer", "member", "write"),
        Person("by_link", "viewer", "read"),
        Person("administrator", "owner", "read"),  # who opened it as administrator
        Person("former_friend", "member"),  # whose share was revoked
        Person("former_writer", "approver"),  # whose share has expired
        Person("former_guest", "member"),  # whose link was revoked
        Person("foreign_owner", "owner", tenant="theirs"),
    )
}

# Every route of the API that takes a credential is in one of these two.
CONVERSATION: Final[dict[str, SessionLevel]] = {
    **dict.fromkeys(
        "session messages tree log log_tail queue context turn follow_turn follow session_gates grants blob export "
        "session_instructions sharing explain openai_retrieve trace sent_request".split(),
        "read",
    ),
    **dict.fromkeys(
        "send rerun fork compact edit delete select switch_agent cancel answer claim revoke_grant revert "
        "write_session_instructions update_session rate speak openai_create openai_cancel a2a_call".split(),
        "write",
    ),
    **dict.fromkeys(
        "erase share revoke_share create_link dismiss_notice retry_session cancel_session".split(), "manage"
    ),
}
"""Routes that name a conversation, or something in it, and the level that each needs."""

OTHER: Final = set(
    "me agents tools sessions start inbox gates attach search import_session memory read_memory write_memory "
    "delete_memory prompts write_prompt delete_prompt instructions write_instructions usage cache_usage "
    "people open_link notices open_as_administrator presence audio transcribe "
    "rules tenant_grants revoke_tenant_grant servers trust_server retry_server log_in_server log_out_server finish_mcp_login mcp_logins revoke_mcp_login mcp_offers mcp_prompt mcp_resource setup "
    "users put_user remove_user set_user_budget reset_password invitations invite revoke_invitation user_usage search_audit "
    "quarantine change_password keys make_key revoke_key audit tenants put_tenant erase_memory "
    "schedules plan_schedule create_schedule schedule replace_schedule delete_schedule pause_schedule resume_schedule run_schedule "
    "settings put_model_key delete_model_key test_model_key put_model delete_model put_agent delete_agent "
    "agent_versions restore_agent put_mcp delete_mcp trust_mcp retry_mcp "
    "stored_rules put_rules rule_versions restore_rules dry_run_rules explain_draft "
    "webhooks create_webhook webhook update_webhook delete_webhook rotate_webhook_secret webhook_deliveries replay_webhook hooks "
    "pause_webhook resume_webhook test_webhook hook_calls put_hook rotate_hook_secret delete_hook "
    "openai_models openai_chat ai_sdk_chat ai_sdk_resume ai_sdk_stop ai_sdk_answer ag_ui_run "
    "a2a_default_card a2a_card "
    "push subscribe_push unsubscribe_push "
    "openapi metrics log_out".split()
)
"""Routes that name no conversation of others: what they return must hold nothing of it."""

GATES: Final = {"session_gates", "answer", "claim"}
"""Routes by which an approver who is not part of a conversation sees and answers its questions."""

ADMINISTRATION: Final = {"erase", "retry_session", "cancel_session"}
"""What an owner may do to a conversation without seeing it."""


class PrivateWorld:
    """The world, the conversation, and a key for everybody."""

    def __init__(self, world: World, things: Things, keys: dict[str, str]) -> None:
        self.world, self.things, self.keys = world, things, keys

    async def ask(self, route: Route, person: Person, things: Things | None = None) -> Answer:
        return await self.world.ask(route, self.keys[person.name], (things or self.things).ids())

    @property
    def routes(self) -> list[Route]:
        return [route for route in self.world.routes if route.needs is not None]


@asynccontextmanager
async def a_private_world(store: Any = None, streams: Any = None) -> AsyncGenerator[PrivateWorld]:
    """A conversation of `author`, which has a gate that waits, a file, a grant and a link."""
    async with a_world(store=store, streams=streams) as world:
        house, keys = world.house, dict[str, str]()
        for person in PEOPLE.values():
            await house.accounts.put_user(User(person.tenant, person.name, role=person.role))
            top = Access(house, Principal(person.tenant, "operator", "operator", "c"))
            keys[person.name] = (await top.accounts.create_key(api.NewKey(user=person.name, role=person.role))).secret
        yield PrivateWorld(world, await _conversation(world), keys)


def access_of(world: World, name: str) -> Access:
    person = PEOPLE[name]
    return Access(world.house, Principal(person.tenant, name, person.role, f"key-{name}"))


async def _conversation(world: World) -> Things:
    author = access_of(world, "author")
    text = f"{TITLE} {'and no more than that ' * 20} canary {SECRET}"
    file = await author.files.upload(b"\x89PNG\r\n\x1a\n" + SECRET.encode(), "image/png", f"{SECRET}.png")
    sent = await author.sessions.start(api.NewSession(text=text, files=[file.file]))
    session = sent.session

    async def gates() -> list[api.GateView]:
        return (await author.gates.page(session)).gates

    first = (await wait_until(gates))[0].gate
    always = api.AnswerGate(hash=first.hash, allow="always", rule=first.offers[0])
    await access_of(world, "outside_approver").gates.resolve(session, first.id, always)

    async def is_over() -> bool:
        return (await author.sessions.turn(session, sent.turn)).phase.is_terminal

    await wait_until(is_over)
    grant = (await author.gates.grants(session)).grants[0].id
    second = await author.sessions.send(session, api.NewMessage(text=f"pay {SECRET}"))
    gate = (await wait_until(gates))[0].gate
    share, now = author.sharing.share, world.house.app.clock.now()
    friend_share = await share(session, api.NewShare(user="friend"))
    await share(session, api.NewShare(user="writer", level="write"))
    revoked = await share(session, api.NewShare(user="former_friend", level="write"))
    await author.sharing.revoke(session, revoked.id)
    for name in ("by_link", "former_guest"):
        link = await author.sharing.create_link(session, api.NewLink(expires=now + 3600))
        await access_of(world, name).sharing.open_link(api.OpenLink(link=link.link))
        if name == "former_guest":
            await author.sharing.revoke(session, link.share.id)
    expired = await share(session, api.NewShare(user="former_writer", level="write", expires=now + 60))
    rows = {row.id: row for row in await world.house.app.store.sharing.shares([session])}
    await world.house.app.store.sharing.add(msgspec.structs.replace(rows[expired.id], expires=now - 1))
    reason = api.OpenAsAdministrator(reason="a complaint", minutes=5)
    notice = await access_of(world, "administrator").sharing.open_as_administrator(session, reason)
    answer = (await author.sessions.messages(session)).messages[1].id
    base = world.things[TENANT]
    return msgspec.structs.replace(
        base,
        session=session,
        message=sent.message,
        answer=answer,
        turn=second.turn,
        gate=gate.id,
        hash=gate.hash,
        grant=grant,
        blob=file.part.blob,
        file=file.file,
        response=ResponseId(session, sent.turn).id,
        share=friend_share.id,
        notice=notice.id,
    )


async def find_leaks(private: PrivateWorld, person: Person) -> list[str]:
    """The routes by which somebody learns of the conversation what they may not, or changes what they may not."""
    leaks: list[str] = []
    for route in private.routes:
        is_let_in = may(person.role, route)
        if route.name in CONVERSATION:
            answer = await private.ask(route, person)
            if not is_let_in:
                leaks += [route.name] if answer.status != 403 or SECRET.encode() in answer.body else []
            elif person.level is None:
                leaks += [route.name] if await _is_leak(private, person, route, answer) else []
            else:
                leaks += [route.name] if not _is_allowed(private, person, route, answer) else []
        elif route.method == "GET" and is_let_in:
            answer = await private.ask(route, person)
            leaks += [route.name] if _shows_too_much(private, person, route, answer) else []
    return leaks


def _bodies(things: Things) -> dict[str, tuple[str, Any]]:
    """Requests that name a conversation, or something in it, elsewhere than in their path: a query, and a body."""
    user = {"id": "m", "role": "user", "content": "hello"}
    ui_message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "hello"}]}
    run = {"runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {}}
    resumed = [{"interruptId": things.gate, "status": "resolved", "payload": {"approved": True}}]
    return {
        "presence": ("", {"tab": "t", "at": [{"session": things.session, "gate": ""}]}),
        "transcribe": (f"?session={things.session}", WAV),
        "create_schedule": ("", {"text": "x", "cron": "0 9 * * *", "session": things.session}),
        "explain": ("", {"tool": "pay", "arguments": {"amount": 7}, "session": things.session}),
        "open_link": ("", {"link": things.share}),
        "openai_create": ("", {"model": "assistant", "input": "x", "previous_response_id": things.response}),
        "ai_sdk_chat": ("", {"id": things.session, "messages": [ui_message], "trigger": "submit-message"}),
        "ag_ui_run": ("", {"threadId": things.session, "messages": [user], **run, "resume": resumed}),
        "finish_mcp_login": ("", {"state": things.session}),
    }


async def find_leaks_in_bodies(private: PrivateWorld, person: Person) -> list[str]:
    """The routes that answer somebody outside otherwise when an id in a body is real than when nobody has it."""
    look = api.Looking(tab="author", at=[api.LookAt(session=private.things.session)])
    await access_of(private.world, "author").presence.look(look)
    real, other, leaks = _bodies(private.things), _bodies(absent(private.things)), list[str]()
    for route in private.routes:
        if route.name not in real or not may(person.role, route):
            continue
        is_approver = route.name == "presence" and person.tenant == TENANT and _is_approver(person)
        answers: list[tuple[int, bytes]] = []
        for query, body in (real[route.name], other[route.name]):
            more: dict[str, Any] = (
                {"body": body, "headers": {"content-type": "audio/wav"}} if isinstance(body, bytes) else {"json": body}
            )
            answer = await ask(private.world.app, route.method, route.path + query, private.keys[person.name], **more)
            answers.append((answer.status, b"" if answer.status in (200, 201) else answer.body))
            if SECRET.encode() in answer.body or (b'"author"' in answer.body and not is_approver):
                leaks.append(route.name)
        leaks += [route.name] if answers[0] != answers[1] else []
    return sorted(set(leaks))


async def _is_leak(private: PrivateWorld, person: Person, route: Route, answer: Answer) -> bool:
    """Whether somebody who is not part of it sees more than if it were not there."""
    # The name of an upload is a secret of whoever uploaded it: no other answer has it, or others could attach the file.
    if SECRET.encode() in answer.body or private.things.file.encode() in answer.body:
        return True
    if route.name in GATES and person.tenant == TENANT and may(person.role, route) and _is_approver(person):
        return answer.status not in (200, 204, 409, 422)
    if route.name in ADMINISTRATION and person.tenant == TENANT and person.role in ("owner", "operator"):
        return answer.status not in (200, 204, 409) or TITLE.encode() in answer.body
    nothing = await private.ask(route, person, absent(private.things))
    return (answer.status, answer.body, answer.headers) != (nothing.status, nothing.body, nothing.headers)


def _is_allowed(private: PrivateWorld, person: Person, route: Route, answer: Answer) -> bool:
    """Whether somebody who is part of it is answered as their level says."""
    levels: tuple[SessionLevel, ...] = ("read", "write", "manage")
    assert person.level is not None
    if private.things.file.encode() in answer.body:
        return False
    is_enough = levels.index(person.level) >= levels.index(CONVERSATION[route.name])
    if route.name in GATES and _is_approver(person):
        is_enough = True
    if route.name == "dismiss_notice":
        return answer.status == (204 if person.level == "manage" else 404)
    if route.name in ADMINISTRATION and person.role == "owner":
        return answer.status in (200, 204, 409)
    if route.name == "explain" and answer.status == 422:
        return True
    if not is_enough or not may(person.role, route):
        return answer.status == 403
    return answer.status not in (401, 404, 500) or route.name in ("revert",)


def _is_approver(person: Person) -> bool:
    return person.role in ("approver", "owner", "operator")


def _shows_too_much(private: PrivateWorld, person: Person, route: Route, answer: Answer) -> bool:
    session = private.things.session.encode()
    if private.things.file.encode() in answer.body:
        return True
    if person.level is not None:
        return answer.status >= 500
    is_named = session in answer.body or TITLE.encode() in answer.body
    if route.name in ("gates", "inbox") and person.tenant == TENANT and _is_approver(person):
        is_named = False  # the question, with the title of its conversation
    if route.name in ("audit", "search_audit") and person.tenant == TENANT:
        is_named = TITLE.encode() in answer.body  # ids, and no text
    return answer.status >= 500 or SECRET.encode() in answer.body or is_named


__all__ = ["CONVERSATION", "OTHER", "PEOPLE", "SECRET", "TENANT", "TITLE", "Person", "PrivateWorld", "a_private_world"]
