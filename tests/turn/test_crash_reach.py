"""Tools that ask, call others, have turns run for them, are done by clients and keep files, stopped after every event:
nothing is asked twice, nothing that must not be is done twice, and whatever was told is known when the tool goes on.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from everturn import Chat, ToolContext
from everturn.core.events import CallStarted, FilesChanged, GateOpened, TurnSuspended
from everturn.core.gates import Gate
from everturn.core.ports import Question, SubagentRequest, Tool
from everturn.errors import ToolError
from everturn.testing import call, calls, say
from everturn.tools.client import client_tool
from tests.helpers.conversations import Scenes
from tests.helpers.crash_harness import SESSION, Story, World, entries_in, tell
from tests.helpers.crash_scenarios import model, send_message
from tests.helpers.repeated_tools import repeated_tool
from tests.turn.test_crash import (
    test_a_story_told_twice_leaves_the_same_log as told_twice,
)
from tests.turn.test_crash import (
    test_stopped_after_any_event_it_ends_as_if_it_had_not_been as stopped_after,
)
from tests.turn.test_crash import (
    test_stopped_before_any_event_nothing_is_lost_or_done_twice as stopped_before,
)


def reaching(world: World) -> list[Tool]:
    """Tools that need somebody else."""

    @repeated_tool(idempotent=True)
    async def form(ctx: ToolContext) -> str:
        first = await ctx.ask(Question("What?", schema={"type": "string"}))
        ctx.save_state(f"heard {first.result}")
        second = await ctx.ask(Question("And then?"))
        await world.happen("write", ctx)
        return f"{first.result} {second.result}"

    @repeated_tool()
    async def pay(amount: int, ctx: ToolContext) -> int:
        await world.happen("once", ctx)
        return amount

    @repeated_tool(approval="always")
    async def mail(to: str, ctx: ToolContext) -> str:
        await world.happen("once", ctx)
        return f"mailed {to}"

    @repeated_tool(idempotent=True)
    async def script(ctx: ToolContext) -> str:
        results: list[str] = []
        for name, arguments in [
            (name, parameters) for n in "01" for name, parameters in (("pay", {"amount": int(n)}), ("mail", {"to": n}))
        ]:
            try:
                results.append((await ctx.run_tool(name, arguments)).text)
            except ToolError as error:  # whatever came of one, the next is made
                results.append(type(error).__name__)
        return f"{len(results)} calls"

    @repeated_tool(idempotent=True)
    async def inner(ctx: ToolContext) -> str:
        with suppress(ToolError):  # what came of it may not be known
            await ctx.run_tool("mail", {"to": "within"})
        return "tried"

    @repeated_tool(idempotent=True)
    async def outer(ctx: ToolContext) -> str:
        await ctx.run_tool("inner", {})
        return f"{(await ctx.ask(Question('And?'))).result}"

    @repeated_tool(idempotent=True)
    async def hand_on(ctx: ToolContext) -> str:
        return (await ctx.run_subagent(SubagentRequest("below"))).text

    @repeated_tool(idempotent=True)
    async def file(ctx: ToolContext) -> str:
        assert ctx.files is not None
        assert ctx.blobs is not None
        blobs = ctx.blobs

        async def change(tree: str) -> Any:
            before = json.loads(await blobs.get(tree)) if tree else []
            after = sorted({*before, ctx.call})
            return await blobs.put(json.dumps(after).encode()), ()

        await ctx.files.change(change)
        return "filed"  # which of two at once is first is nobody's business

    bell = client_tool("bell", "Ring.", {"type": "object", "properties": {}}, read_only=True)
    door = client_tool("door", "Open.", {"type": "object", "properties": {}})
    return [form, pay, mail, script, inner, outer, hand_on, file, bell, door]


def below(world: World) -> Scenes:
    return Scenes(
        go=[calls(call("hand_on"), call("hand_on")), say("Done.")],
        below=[calls(call("mail", to="below")), say("Mailed.")],
    )


async def with_below(chat: Chat, world: World) -> None:
    """A turn with gates in turns below it, answered wherever they stand."""
    turn = await chat.send("go", key="1")
    async for event in turn:
        if isinstance(event, TurnSuspended):
            for gate in await chat.gates():
                await chat.answer(gate, allow="once")


async def by_client(chat: Chat, world: World) -> None:
    """A turn whose calls a client does."""
    turn = await chat.send("go", key="1")
    async for event in turn:
        if isinstance(event, TurnSuspended):
            for gate in await chat.gates():
                await chat.claim(gate, "page")
                await chat.answer(gate, result="rang", claim="page", by="page")


def by_kind(gate: Gate) -> dict[str, Any]:
    return {"result": '"yes"'} if gate.kind == "form" else {"allow": "once"}


STORIES = [
    Story("a form", model(calls(call("form")), say("Done.")), send_message(resolution=by_kind), tools=reaching),
    Story(
        "two forms",
        model(calls(call("form"), call("form")), say("Done.")),
        send_message(resolution=by_kind),
        tools=reaching,
    ),
    Story(
        "a form denied",
        model(calls(call("form")), say("Done.")),
        send_message(resolution={"deny": "no"}),
        tools=reaching,
    ),
    Story("a script", model(calls(call("script")), say("Done.")), send_message(resolution=by_kind), tools=reaching),
    Story(
        "a script denied",
        model(calls(call("script")), say("Done.")),
        send_message(resolution={"deny": "no"}),
        tools=reaching,
    ),
    Story("turns below", below, with_below, tools=reaching),
    Story("a client", model(calls(call("bell")), say("Done.")), by_client, tools=reaching),
    Story("a client, once", model(calls(call("door"), call("bell")), say("Done.")), by_client, tools=reaching),
    Story(
        "a call in a call", model(calls(call("outer")), say("Done.")), send_message(resolution=by_kind), tools=reaching
    ),
    # One after the other: of two at once either may be first, and the trees between them differ.
    Story("files", model(calls(call("file")), calls(call("file")), say("Done.")), send_message(), tools=reaching),
]

names = [story.name for story in STORIES]


@pytest.mark.parametrize("story", STORIES, ids=names)
async def test_told_twice_it_leaves_the_same_log(story: Story) -> None:
    await told_twice(story)


@pytest.mark.parametrize("story", STORIES, ids=names)
async def test_stopped_after_any_event_it_ends_as_if_it_had_not_been(story: Story) -> None:
    await stopped_after(story)


@pytest.mark.parametrize("story", STORIES, ids=names)
async def test_stopped_before_any_event_nothing_is_lost_or_done_twice(story: Story) -> None:
    await stopped_before(story)


@pytest.mark.parametrize("story", STORIES, ids=names)
async def test_wherever_it_is_stopped_nothing_is_asked_or_started_twice(story: Story) -> None:
    for stop in range(len(await entries_in(await tell(story)))):
        for before_next in (False, True):
            world = await tell(story, lives=stop, before_next=before_next)
            events = [
                entry.event for info in await world.store.sessions() for entry in await world.store.events(info.id)
            ]
            gate_counts = Counter((e.gate.session, e.gate.id) for e in events if isinstance(e, GateOpened))
            started = Counter((e.turn, e.call) for e in events if isinstance(e, CallStarted))
            assert max(gate_counts.values(), default=0) <= 1
            assert max(started.values(), default=0) <= 1
            assert world.wrongs == []
            if story.name == "files":
                tree = (await world.store.recorded_trees(SESSION))[""]
                recorded_calls = json.loads(await world.store.blob(tree))
                changed = {e.call for e in events if isinstance(e, FilesChanged)}
                assert set(recorded_calls) == changed
                assert len(changed) == 2
