"""Tools of servers in turns: allowed by a person, written down, and gone on with after a restart."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from everturn import Chat
from everturn.core.events import CallFinished, CallSuspended
from everturn.core.gates import Gate
from everturn.mcp.servers import McpServers
from everturn.testing import ScriptedModel, call, calls, say
from tests.helpers.conversations import Talk, once
from tests.helpers.events import wait_for_event
from tests.helpers.hostile_mcp import hostile, noted
from tests.helpers.waiting import wait_until


def servers(ledger: Path, mode: str = "plain") -> McpServers:
    return McpServers([hostile(ledger, mode)], timeout=20)


def state_of(source: McpServers) -> str:
    return source.status()[0].state


async def test_a_turn_calls_a_tool_of_a_server(ledger: Path):
    talk = Talk(servers(ledger))  # pyright: ignore[reportArgumentType]
    result = await talk.tell(calls(call("h_echo", text="hello")), say("Done."), reply=once)
    [came] = await talk.settled()
    assert (came.state, came.output.text, came.output.origin) == ("completed", "hello", "mcp:h")
    assert (result.text, noted(ledger)) == ("Done.", ["echo"])
    assert [gate.tool for gate in talk.asked] == ["h_echo"]


async def test_a_tool_that_changes_between_offer_and_call_is_not_called(ledger: Path):
    source = servers(ledger)
    talk = Talk(source)  # pyright: ignore[reportArgumentType]
    async with talk.process(calls(call("h_change"), call("h_echo", text="hello")), say("Done.")) as chat:
        turn = await chat.send("go")
        gates = {gate.tool: gate for gate in await talk.waiting(chat, 2)}
        await chat.answer(gates["h_change"], allow="once")
        await wait_until(lambda: source.status()[0].changed == ("h_echo",))
        await chat.answer(gates["h_echo"], allow="once")
        result = await turn
    [echo] = [event for event in await talk.settled() if event.output.code]
    assert (echo.state, echo.output.code) == ("failed", "tool_changed")
    assert (result.text, noted(ledger)) == ("Done.", ["change"])


async def test_a_server_that_dies_in_a_call_leaves_it_unknown_and_the_turn_goes_on(ledger: Path):
    talk = Talk(servers(ledger))  # pyright: ignore[reportArgumentType]
    script = calls(call("h_die")), calls(call("h_echo", text="back")), say("Done.")
    result = await talk.tell(*script, reply=once)
    assert [came.state for came in await talk.settled()] == ["outcome_unknown", "completed"]
    assert (result.text, noted(ledger)) == ("Done.", ["die", "echo"])


async def test_what_a_server_asked_is_answered_after_a_restart_once_its_call_was_suspended(
    ledger: Path, tmp_path: Path
):
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    script = calls(call("h_ask")), say("Done.")
    async with Chat(ScriptedModel(*script), tools=[servers(ledger, "modern")], store=store, session="s") as chat:
        await chat.send("go", key="k")
        [gate] = await _gates(chat, "call")
        await chat.answer(gate, allow="once")
        await _gates(chat, "form")
        # The question can be seen a moment before the call can be gone on with; a stop in between loses the call.
        await wait_for_event(chat.app.store, "s", CallSuspended)
    assert noted(ledger) == ["ask"]

    source = servers(ledger, "modern")
    async with Chat(ScriptedModel(*script), tools=[source], store=store, session="s") as chat:
        turn = await chat.send("go", key="k")  # the same one
        await wait_until(lambda: state_of(source) == "ready")
        [gate] = await _gates(chat, "form")
        assert gate.why == "Server h asks: who?"
        await chat.answer(gate, result='{"name": "Ada"}')
        assert (await turn).text == "Done."
        log = await chat.app.store.events("s")
    [came] = [entry.event for entry in log if isinstance(entry.event, CallFinished)]
    received = json.loads(came.output.text)
    assert (came.state, received["state"]) == ("completed", "sealed")
    assert received["given"]["who"]["content"] == {"name": "Ada"}
    assert noted(ledger) == ["ask", "ask"]


async def _gates(chat: Chat, kind: str) -> list[Gate]:
    found: list[Gate] = []
    for _ in range(10_000):
        found = [gate for gate in await chat.gates() if gate.kind == kind]
        if found:
            return found
        await asyncio.sleep(0.001)
    raise AssertionError(f"nobody asked for a {kind}")
