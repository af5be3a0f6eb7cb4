"""Whatever is another tenant's is not there, and looks exactly so: for every method, and every id that it takes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everturn import api
from everturn.access import Access, needs, role_of
from everturn.access.context.server_context import ServerContext
from everturn.core.tenants.accounts import ROLES, Role
from everturn.errors import (
    EverturnError,
    Forbidden,
    UnknownFile,
    UnknownGrant,
    UnknownMessage,
    UnknownSession,
    UnknownTurn,
)
from tests.helpers.access_methods import METHODS, RESOURCES, method_at, without_a_role
from tests.helpers.tenants import a_house, gate_in, over, somebody, start_session

HEX = "0" * 64

# For every parameter of every method: something that fits, for ids from a session that is given.
BODIES: dict[str, Any] = {
    "request": api.NewMessage(text="look"),
    "asked": api.RegenerateAnswer(),
    "edited": api.EditMessage(text="again"),
    "selected": api.SelectBranch(),
    "change": api.PatchSession(title="Mine"),
    "rated": api.PutRating(rating="up"),
    "switched": api.SwitchAgent(agent="assistant"),
    "cancelled": api.CancelTurn(),
    "answered": api.AnswerGate(hash="h", allow="once"),
    "reverted": api.RevertFiles(root="", tree="t"),
    "share": api.NewShare(user="member-ada"),
    "link": api.NewLink(),
    "put": api.PutSessionInstructions(text="Be brief."),
    "step": 1,
    "data": b"",
    "spoken": api.SpeakText(text="hello"),
}


class Ids(msgspec.Struct):
    """Ids that are there, in one session."""

    session: str
    turn: str
    message: str
    gate: str
    hash: str
    blob: str
    grant: str = "gate_that_is_none"


async def lived_in(house: ServerContext, tenant: str) -> Ids:
    """A session of a tenant with all that can be named by an id."""
    access = Access(house, somebody(tenant, "owner"))
    file = await access.files.upload(f"bytes of {tenant}".encode(), "text/plain", "notes.txt")
    sent = await start_session(access, "pay now", files=[file.file])
    view = await gate_in(access, sent.session)
    return Ids(sent.session, sent.turn, sent.message, view.gate.id, view.gate.hash, file.part.blob)


def arguments(method: Callable[..., Any], ids: Ids, foreign: Ids, file: Path) -> dict[str, Any]:
    """Arguments of a method for these ids; whatever is not the session is of one that is `there`."""
    call_arguments: dict[str, Any] = {}
    for name in list(inspect.signature(method).parameters)[1:]:
        if name == "claim":
            call_arguments[name] = api.ClaimGate(hash=foreign.hash, claim="c" * 16)
        elif name == "answered":
            call_arguments[name] = api.AnswerGate(hash=foreign.hash, allow="once")
        elif name == "request" and "ForkAnswer" in str(inspect.signature(method).parameters[name].annotation):
            call_arguments[name] = api.ForkAnswer(step=1)
        elif name in BODIES:
            call_arguments[name] = BODIES[name]
        elif name == "file":
            call_arguments[name] = file
        elif name == "session":
            call_arguments[name] = ids.session
        elif name in Ids.__struct_fields__:
            call_arguments[name] = getattr(foreign, name)
    return call_arguments


def of_sessions() -> list[str]:
    return [path for path, method in METHODS.items() if "session" in inspect.signature(method).parameters]


def test_every_method_takes_a_role() -> None:
    assert len(METHODS) > 45
    assert sorted(RESOURCES) == [
        "accounts",
        "admin",
        "audio",
        "files",
        "gates",
        "hooks",
        "log",
        "mcp",
        "mcp_logins",
        "mcp_settings",
        "memory",
        "presence",
        "prompts",
        "push",
        "quarantine",
        "rule_settings",
        "schedules",
        "sessions",
        "settings",
        "sharing",
        "traces",
        "users",
        "webhooks",
    ]
    assert sorted(without_a_role()) == sorted(["principal", "scope", *(f"{name}.scope" for name in RESOURCES)])


@pytest.mark.parametrize("path", METHODS)
async def test_a_role_that_is_not_enough_is_refused_before_anything_is_looked_at(path: str) -> None:
    method = METHODS[path]
    for role in ROLES[: ROLES.index(role_of(method))]:
        access = Access(None, somebody(role=role))  # pyright: ignore[reportArgumentType] - it must not be asked
        with pytest.raises(Forbidden, match=role_of(method)):
            await method_at(access, path)(*[None] * (len(inspect.signature(method).parameters) - 1))


def test_the_roles_are_those_that_were_agreed() -> None:
    table: dict[Role, str] = {
        "viewer": (
            "accounts.cache_usage accounts.usage admin.grants admin.servers agents audio.get files.read follow gates.grants gates.page inbox log.page "
            "log.queue log.tail me memory.list memory.read presence.look prompts.instructions prompts.list "
            "prompts.session_instructions push.get push.subscribe push.unsubscribe schedules.get schedules.list sessions.context sessions.get sessions.list "
            "sessions.messages sessions.search sessions.tree sessions.turn sharing.dismiss_notice sharing.get "
            "sharing.notices sharing.open_link tools traces.get traces.request"
        ),
        "member": (
            "admin.explain admin.rules audio.speak audio.transcribe files.upload gates.claim gates.resolve mcp_logins.finish_login mcp_logins.log_in_server "
            "mcp_logins.log_out_server memory.delete memory.write prompts.delete "
            "prompts.write prompts.write_instructions prompts.write_session_instructions "
            "schedules.create schedules.delete schedules.pause schedules.plan schedules.replace schedules.resume schedules.run_now "
            "sessions.cancel_turn sessions.compact sessions.delete_message sessions.edit_message sessions.erase "
            "sessions.export sessions.fork_answer "
            "sessions.import_file sessions.rate sessions.rerun sessions.select_message sessions.send sessions.start "
            "sessions.start_with_id sessions.switch_agent sessions.update sharing.create_link sharing.people "
            "sharing.revoke sharing.share"
        ),
        "approver": "admin.revoke_grant files.revert gates.revoke_grant",
        "owner": (
            "accounts.audit accounts.create_key accounts.keys accounts.put_user accounts.revoke_key accounts.users "
            "hooks.calls hooks.delete hooks.list hooks.put hooks.rotate_secret mcp_logins.revoke_login mcp_logins.server_logins "
            "mcp_settings.delete mcp_settings.put mcp_settings.retry mcp_settings.trust "
            "memory.erase_user quarantine.cancel quarantine.list quarantine.retry "
            "rule_settings.dry_run rule_settings.explain rule_settings.get rule_settings.put rule_settings.restore "
            "rule_settings.versions "
            "settings.agent_versions settings.delete_agent settings.delete_key settings.delete_model "
            "settings.list settings.put_agent settings.put_key settings.put_model settings.restore_agent "
            "settings.test_key sharing.open_as_administrator users.invitations users.invite users.remove "
            "users.reset_password users.revoke_invitation users.search_audit users.set_budget users.usage "
            "webhooks.create webhooks.delete webhooks.deliveries webhooks.get "
            "webhooks.list webhooks.pause webhooks.replay webhooks.resume webhooks.rotate_secret webhooks.send_test "
            "webhooks.update"
        ),
        "operator": (
            "accounts.put_tenant accounts.tenants admin.retry_server admin.setup admin.trust_server"
            " mcp.list mcp.prompt mcp.resource"
        ),
    }
    assert {role: sorted(path for path in METHODS if role_of(METHODS[path]) == role) for role in ROLES} == {
        role: paths.split() for role, paths in table.items()
    }


async def refusal_of(access: Access, path: str, call_arguments: dict[str, Any]) -> tuple[type[BaseException], str]:
    """What a method answers to somebody who asks for what is not theirs."""
    with pytest.raises(EverturnError) as raised:
        await method_at(access, path)(**call_arguments)
    assert raised.value.__cause__ is None
    return type(raised.value), str(raised.value)


async def test_a_foreign_session_is_an_absent_one_and_an_erased_one(tmp_path: Path) -> None:
    async with a_house() as house:
        theirs, gone = await lived_in(house, "bob"), await lived_in(house, "ada")
        owner = Access(house, somebody("ada", "owner"))
        await owner.sessions.cancel_turn(gone.session, gone.turn, api.CancelTurn())
        await over(owner, api.MessageReceipt(session=gone.session, turn=gone.turn, message="", is_new=True))
        await owner.sessions.erase(gone.session)
        assert len(of_sessions()) > 15
        for path in of_sessions():
            answers = {
                await refusal_of(owner, path, arguments(METHODS[path], ids, theirs, tmp_path / "out.zip"))
                for ids in (theirs, gone, msgspec.structs.replace(theirs, session="session_never"))
            }
            assert answers == {(UnknownSession, "there is no such session")}, path
        assert not os.listdir(tmp_path)
        # And nothing came of it where it was meant to be.
        bob = Access(house, somebody("bob", "owner"))
        view = await bob.sessions.turn(theirs.session, theirs.turn)
        assert [gate.id for gate in view.gates] == [theirs.gate]
        assert len(view.messages) == 2


@pytest.mark.parametrize("session", ["", " ", "\0", "a\nb", "'; DROP TABLE sessions;--", "../x", "x" * 5000, "\ud800"])
async def test_what_can_be_no_id_is_an_absent_one(session: str) -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        assert await refusal_of(access, "sessions.get", {"session": session}) == (
            UnknownSession,
            "there is no such session",
        )


async def test_an_id_of_another_session_is_an_absent_one(tmp_path: Path) -> None:
    """Of the same tenant or not: a child is looked for beneath its parent only."""
    async with a_house() as house:
        theirs, ours, other = [await lived_in(house, tenant) for tenant in ("bob", "ada", "ada")]
        never = Ids("", "turn_never", "msg_never", "gate_never", HEX, HEX)
        owner = Access(house, somebody("ada", "owner"))
        for path in of_sessions():
            parameters = set(inspect.signature(METHODS[path]).parameters)
            if not parameters & {"turn", "message", "gate", "blob", "grant"}:
                continue
            answers = {
                await refusal_of(owner, path, arguments(METHODS[path], ours, foreign, tmp_path))
                for foreign in (theirs, never, *([other] if path != "files.read" else []))
            }
            assert len(answers) == 1, (path, answers)
        assert (await owner.sessions.turn(ours.session, ours.turn)).turn == ours.turn
        assert await owner.files.read(ours.session, ours.blob) == b"bytes of ada"


async def test_ids_inside_of_bodies_are_held_against_the_session_too() -> None:
    async with a_house() as house:
        theirs, ours = await lived_in(house, "bob"), await lived_in(house, "ada")
        owner = Access(house, somebody("ada", "owner"))
        answers: set[tuple[type[BaseException], str]] = set()
        for message in (theirs.message, "msg_never", "\0", "x" * 2000):
            answers.add(
                await refusal_of(
                    owner,
                    "sessions.send",
                    {"session": ours.session, "request": api.NewMessage(text="x", after=message)},
                )
            )
            answers.add(
                await refusal_of(
                    owner,
                    "sessions.select_message",
                    {"session": ours.session, "selected": api.SelectBranch(message=message)},
                )
            )
            answers.add(await refusal_of(owner, "sessions.messages", {"session": ours.session, "leaf": message}))
        assert answers == {(UnknownMessage, "there is no such message in this session")}
        assert await refusal_of(owner, "sessions.turn", {"session": ours.session, "turn": "\0"}) == (
            UnknownTurn,
            "there is no such turn in this session",
        )


async def test_lists_hold_only_what_is_of_the_tenant() -> None:
    async with a_house() as house:
        everything = {tenant: await lived_in(house, tenant) for tenant in ("ada", "bob")}
        for tenant, other in (("ada", "bob"), ("bob", "ada")):
            access = Access(house, somebody(tenant, "owner"))
            shown: list[Any] = [
                await access.sessions.list(),
                await access.gates.page(),
                await access.inbox(),
                await access.sessions.search("pay"),
                await access.accounts.usage(),
                await access.accounts.cache_usage(),
                await access.accounts.users(),
                await access.accounts.keys(),
                await access.accounts.audit(),
                await access.users.usage(),
                await access.users.search_audit(),
                await access.users.invitations(),
                await access.quarantine.list(),
                await access.gates.grants(everything[tenant].session),
            ]
            text = msgspec.json.encode(shown).decode()
            assert everything[tenant].session in text
            for value in msgspec.structs.astuple(everything[other])[:5]:
                assert value not in text
            assert f"-{other}" not in text


async def test_a_grant_everywhere_holds_in_its_own_tenant_only() -> None:
    async with a_house() as house:
        theirs, ours = await lived_in(house, "bob"), await lived_in(house, "ada")
        owner, bob = Access(house, somebody("ada", "owner")), Access(house, somebody("bob", "owner"))
        await owner.gates.resolve(
            ours.session, ours.gate, api.AnswerGate(hash=ours.hash, allow="always", everywhere=True, within="tenant")
        )
        await over(owner, api.MessageReceipt(session=ours.session, turn=ours.turn, message="", is_new=True))
        granted = (await owner.gates.grants(ours.session)).grants
        assert [grant.by for grant in granted] == ["owner-ada"]
        assert not (await bob.gates.grants(theirs.session)).grants
        for session in (ours.session, theirs.session):
            error, _ = await refusal_of(bob, "gates.revoke_grant", {"session": session, "grant": granted[0].id})
            assert error is (UnknownSession if session == ours.session else UnknownGrant)
        assert (await owner.gates.grants(ours.session)).grants == granted
        again = await start_session(Access(house, somebody("ada")), "pay again")
        assert (await over(owner, again)).phase.value == "completed"


async def test_files_that_were_never_recorded_here_are_not_reverted() -> None:
    async with a_house() as house:
        ours = await lived_in(house, "ada")
        owner = Access(house, somebody("ada", "owner"))
        for root, tree in (("", HEX), ("/etc", HEX), ("", "x")):
            call_arguments = {"session": ours.session, "reverted": api.RevertFiles(root=root, tree=tree)}
            assert await refusal_of(owner, "files.revert", call_arguments) == (UnknownFile, "there is no such file")


async def test_the_same_words_come_from_wherever_it_is_found_out() -> None:
    class Somewhere:
        principal = somebody()

    class Loud:
        scope = Somewhere()

        @needs("viewer")
        async def find(self) -> None:
            raise UnknownSession("session 's' is of tenant bob")

    with pytest.raises(UnknownSession) as raised:
        await Loud().find()
    assert str(raised.value) == "there is no such session"
    assert "bob" not in repr(raised.value)
