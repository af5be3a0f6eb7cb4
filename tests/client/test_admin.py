"""What an overseer asks of a server: agents, the inbox, rules, explanations, grants, MCP servers, the set-up, the queue."""

from __future__ import annotations

import asyncio

import pytest

from everturn import api
from everturn.errors import EverturnError, Forbidden, UnknownGrant
from tests.client.test_server import gate_of, key_for
from tests.helpers.server_process import Node


async def test_agents_come_with_their_models_and_the_set_up_says_which_answers(node: Node) -> None:
    async with node.client() as server:
        found = await server.agent_list()
        assert found.agents[0].is_default
        assert [agent.name for agent in found.agents] == [agent.name for agent in await server.agents()]
        setup = await server.setup()
        assert setup.agent == found.agents[0].name


async def test_the_inbox_begins_with_a_snapshot_and_tells_of_a_gate(node: Node) -> None:
    async with node.client() as server:
        inbox = server.inbox()
        try:
            async with asyncio.timeout(30):
                first = await anext(inbox)
                assert first.snapshot is not None
                turn = await server.start_session("what is 2+2?")
                moved = await anext(inbox)
                while moved.session is None or moved.session.id != turn.session:
                    moved = await anext(inbox)
                assert moved.waits is not None
        finally:
            await inbox.aclose()


async def test_rules_are_listed_and_a_call_is_explained(node: Node) -> None:
    async with node.client() as server:
        view = await server.rules()
        assert view.agent
        assert view.tools
        tool = view.tools[0].name
        explanation = await server.explain(tool, {})
        assert explanation.action in ("allow", "ask", "deny")
        assert any(tool in line for line in explanation.lines)
        assert (await server.rules(view.agent)).agent == view.agent
        with pytest.raises(EverturnError):
            await server.rules("nobody")


async def test_a_grant_that_is_not_there_cannot_be_revoked(node: Node) -> None:
    """That one is listed and revoked is shown where a tool offers it: tests/tui/test_permissions.py."""
    async with node.client() as server:
        assert await server.grants() == []
        with pytest.raises(UnknownGrant):
            await server.revoke("nothing")


async def test_mcp_servers_are_listed_and_only_operators_do_something_about_them(node: Node) -> None:
    async with node.client() as server:
        assert await server.mcp_servers() == []
        assert await server.mcp_offers() == api.McpOffers(prompts=[], resources=[])
        for doing in (
            server.retry_mcp("nowhere"),
            server.login_mcp("nowhere"),
            server.mcp_prompt("nowhere", "x"),
            server.mcp_resource("nowhere", "x:y"),
        ):
            with pytest.raises(EverturnError):
                await doing
        view = api.McpView(
            name="nowhere", transport="stdio", state="untrusted", since=0.0, title="", tools=[], hash="h"
        )
        with pytest.raises(EverturnError):
            await server.trust_mcp(view)
        _, secret = await key_for(server, "looker", "viewer")
    async with node.client(token=secret) as viewer:
        with pytest.raises(Forbidden):
            await viewer.retry_mcp("nowhere")


async def test_what_is_sent_while_a_turn_waits_stands_in_the_queue(node: Node) -> None:
    async with node.client() as server:
        turn = await server.start_session("note that it hails")
        session, gate = server.session(turn.session), await gate_of(server, turn.session)
        behind = await session.send("and then?")
        assert [(queued.turn, queued.text) for queued in await session.queue()] == [(behind.id, "and then?")]
        await server.answer(gate, deny="no")
        await behind
        assert await session.queue() == []


async def test_a_webhook_is_changed_and_keeps_what_is_not_named(node: Node) -> None:
    async with node.client() as server:
        made = await server.create_webhook(api.NewWebhook(url="https://example.com/hook", events=["turn.failed"]))
        id = made.webhook.id
        changed = await server.update_webhook(id, url="https://example.com/new", is_paused=True)
        assert (changed.url, list(changed.events), changed.is_paused) == (
            "https://example.com/new",
            ["turn.failed"],
            True,
        )
        again = await server.update_webhook(id, events=["turn.completed"], is_paused=False)
        assert (again.url, list(again.events), again.is_paused) == (
            "https://example.com/new",
            ["turn.completed"],
            False,
        )
        await server.delete_webhook(id)
