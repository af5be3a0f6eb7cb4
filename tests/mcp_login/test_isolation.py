"""Two people and one MCP server: each call carries the token of the user who started its turn, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from everturn import api
from everturn.access.access import Access
from everturn.core.tenants.accounts import LOCAL, Principal
from everturn.errors import Forbidden, NeedsLogin
from tests.helpers.protected_mcp_server import Drive, drive
from tests.helpers.waiting import wait_until
from tests.mcp_login.world import RETURN_TO, World, answer_of, world


@pytest.fixture
async def served() -> AsyncGenerator[Drive]:
    async with drive() as server:
        yield server


@pytest.fixture
async def node(served: Drive, tmp_path: Path) -> AsyncGenerator[World]:
    async with world(served, tmp_path) as opened:
        yield opened


async def test_each_person_calls_with_their_own_token(served: Drive, node: World):
    await node.log_in("ada")
    await node.log_in("bob")
    assert await node.ask("ada", "whose 1") == ["ada@drive:1"]
    assert await node.ask("bob", "whose 2") == ["bob@drive:2"]
    assert served.calls == [("ada@drive", "1"), ("bob@drive", "2")]


async def test_calls_at_the_same_time_do_not_mix(served: Drive, node: World):
    await node.log_in("ada")
    await node.log_in("bob")
    numbers = ",".join(map(str, range(10)))
    users = [("ada", "bob")[at % 2] for at in range(12)]
    found = await asyncio.gather(*(node.ask(user, f"whose {numbers}") for user in users))
    for user, results in zip(users, found, strict=True):
        assert results == [f"{user}@drive:{number}" for number in range(10)]
    assert len(served.calls) == 120
    assert {whose for whose, _ in served.calls} == {"ada@drive", "bob@drive"}


async def test_in_a_shared_session_the_sender_of_the_message_counts_and_not_its_owner(served: Drive, node: World):
    await node.log_in("ada")
    sent = await node.say("ada", "whose 1")
    assert await node.results("ada", sent) == ["ada@drive:1"]
    await node.share(sent.session, "bob")
    second = await node.say("bob", "whose 2", sent.session)
    gate = await node.gate("bob", sent.session)
    assert "runs for bob, who is not logged in to server drive" in gate.gate.arguments
    assert served.calls == [("ada@drive", "1")], "the token of the owner of the session is not used"
    await node.log_in("bob")
    assert await node.results("bob", second) == ["bob@drive:2"]


async def test_a_message_of_another_person_into_a_running_turn_does_not_use_the_login_of_who_began_it(
    served: Drive, node: World
):
    await node.log_in("bob")  # the tools are known
    sent = await node.say("ada", "whose 1")  # waits for a login
    gate = await node.gate("ada", sent.session)
    await node.share(sent.session, "bob")
    steer = api.NewMessage(text="note sent by bob", busy="steer")
    await node.access("bob").sessions.send(sent.session, steer)
    await node.log_in("ada")
    results = await node.results("ada", sent)
    assert gate.gate.tool == "drive_whose"
    assert results[0] == "ada@drive:1", "it was called before the message joined"
    assert "bob had a hand in this call" in results[1]
    assert served.calls == [("ada@drive", "1")]


async def test_a_sub_agent_uses_the_login_of_who_started_the_turn_above_it(served: Drive, node: World):
    await node.log_in("ada")
    await node.log_in("bob")
    await node.ask("bob", "clerk whose 7")
    await node.ask("ada", "clerk whose 8")
    assert served.calls == [("bob@drive", "7"), ("ada@drive", "8")]


async def test_arguments_that_another_person_edited_do_not_run_with_the_login(served: Drive, tmp_path: Path):
    from tests.mcp_login import world as module

    before, module.RULES = module.RULES, ()
    try:
        async with world(served, tmp_path) as node:
            await node.log_in("ada")
            for editor, expected in (("bob", "bob had a hand in this call"), ("ada", "noted for ada@drive: mine")):
                sent = await node.say("ada", "note a")
                gate = await node.gate("ada", sent.session)
                answer = api.AnswerGate(hash=gate.gate.hash, allow="once", arguments={"text": "mine"})
                await node.access(editor).gates.resolve(sent.session, gate.gate.id, answer)
                (result,) = await node.results("ada", sent)
                assert expected in result
            assert served.calls == [("ada@drive", "mine")]
    finally:
        module.RULES = before


async def test_another_person_who_approves_changes_nothing_about_whose_login_it_is(served: Drive, tmp_path: Path):
    from tests.mcp_login import world as module

    before, module.RULES = module.RULES, ()
    try:
        async with world(served, tmp_path) as node:
            await node.log_in("ada")
            await node.log_in("bob")
            sent = await node.say("ada", "note a")
            gate = await node.gate("ada", sent.session)
            answer = api.AnswerGate(hash=gate.gate.hash, allow="once")
            await node.access("bob").gates.resolve(sent.session, gate.gate.id, answer)
            assert await node.results("ada", sent) == ["noted for ada@drive: a"]
    finally:
        module.RULES = before


async def test_the_browser_of_another_person_cannot_finish_a_login(served: Drive, node: World):
    """Bob sends ada the address of his login: with her account under his name, he would read her files."""
    begun = await node.access("bob").mcp_logins.log_in_server("drive", RETURN_TO)
    answer = await answer_of(begun.address, "ada@drive")
    assert (await node.access("ada").mcp_logins.finish_login(answer)).server == ""
    assert not (await node.view("bob")).is_logged_in
    assert not (await node.view("ada")).is_logged_in
    assert (await node.view("bob")).is_logging_in


async def test_prompts_and_resources_come_with_the_login_of_who_reads_them(served: Drive, node: World):
    await node.log_in("root")
    assert [resource.uri for resource in (await node.access("root").mcp.list()).resources] == ["drive://mine"]
    read = await node.access("root").mcp.resource("drive", api.ReadMcpResource(uri="drive://mine"))
    assert "the note of root@drive" in read.contexts[0].text


async def test_a_turn_of_no_user_uses_nobodys_login(served: Drive, node: World):
    await node.log_in("ada")
    nobody = Access(node.context, Principal(LOCAL, "", "owner", "key"))
    sent = await nobody.sessions.start(api.NewSession(text="whose 1"))
    (result,) = await node.results("carol", sent)
    assert "this turn runs for no user" in result
    assert served.calls == []


async def test_what_a_person_sees_is_their_own_login_and_an_owner_sees_ids(node: World):
    await node.log_in("ada")
    ada, bob = await node.view("ada"), await node.view("bob")
    assert (ada.login, ada.state, ada.is_logged_in, ada.logged_in_as) == ("user", "ready", True, "ada")
    assert ada.logged_in_since > 0
    assert (bob.state, bob.is_logged_in, bob.logged_in_as, bob.can_log_in) == ("needs_login", False, "", True)
    logins = await node.access("carol").mcp_logins.server_logins("drive")
    assert (logins.login, logins.users) == ("user", ["ada"])
    with pytest.raises(Forbidden):
        await node.access("bob").mcp_logins.server_logins("drive")


async def test_no_answer_and_no_audit_record_has_a_token(served: Drive, node: World):
    await node.log_in("ada")
    await node.ask("ada", "whose 1")
    shown = [
        await node.view("ada"),
        await node.view("root"),
        await node.access("carol").mcp_logins.server_logins("drive"),
    ]
    shown += [await node.context.accounts.audit("local")]
    text = repr(shown)
    assert len(served.giver.secrets) > 2
    assert [secret for secret in served.giver.secrets if secret in text] == []


async def test_a_login_that_is_refused_says_so_to_that_person(served: Drive, node: World):
    served.giver.refuses = True
    begun = await node.access("ada").mcp_logins.log_in_server("drive", RETURN_TO)
    with pytest.raises(NeedsLogin, match="access_denied"):
        await node.access("ada").mcp_logins.finish_login(await answer_of(begun.address, "ada@drive"))
    assert "access_denied" in (await node.view("ada")).login_problem
    assert (await node.view("bob")).login_problem == ""
    await wait_until(lambda: not node.servers.logins.is_waiting("drive"))
