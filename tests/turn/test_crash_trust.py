"""Gates, reviews, grants, loops, limits and sub-agent runs, stopped after every event: what is asked is asked once, what was
answered stays answered, and nothing runs that nobody allowed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from everturn import Chat, ToolContext, TurnOptions
from everturn.core.events import CallStarted, GateOpened, LimitReached
from everturn.core.gates import Gate
from everturn.core.options import Budget
from everturn.core.ports import Tool
from everturn.core.rules.policy import Rule
from everturn.testing import call, calls, say
from tests.helpers.crash_harness import SESSION, Story, World, entries_in, tell, watch
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


def trusted(world: World) -> list[Tool]:
    """Tools that are asked about, looked at, and counted."""

    @repeated_tool(approval="ask")
    async def send(to: str, ctx: ToolContext) -> str:
        await world.happen("once", ctx)
        return f"sent to {to}"

    @repeated_tool(read_only=True, review="always")
    async def read(path: str, ctx: ToolContext) -> str:
        await world.happen("read", ctx)
        return f"SECRET of {path}"

    @repeated_tool(read_only=True, review="on_error")
    async def risky(ctx: ToolContext) -> str:
        await world.happen("read", ctx)
        raise ValueError("SECRET in an error")

    @repeated_tool()
    async def pay(amount: int, ctx: ToolContext) -> str:
        await world.happen("once", ctx)
        return f"paid {amount}"

    return [send, read, risky, pay]


def by_kind(**kinds: dict[str, Any]) -> Any:
    """Answer each kind of gate as told."""

    def reply(gate: Gate) -> dict[str, Any]:
        return kinds[gate.kind]

    return reply


async def twice(chat: Chat, world: World) -> None:
    """Two turns: what the first grants, the second need not ask."""
    await watch(await chat.send("one", key="1"), resolution={"allow": "always"})
    await watch(await chat.send("two", key="2"), resolution={"deny": "not again"})


THREE = calls(call("send", to="a"), call("send", to="b"), call("send", to="c"))
LOOP = [calls(call("pay", amount=1)) for _ in range(3)]

STORIES = [
    Story("always", model(THREE, say("Done.")), send_message(resolution={"allow": "always"}), tools=trusted),
    Story(
        "granted for later",
        model(calls(call("send", to="a")), say("One."), calls(call("send", to="b")), say("Two.")),
        twice,
        tools=trusted,
    ),
    Story(
        "a denial of all",
        model(THREE, say("Done.")),
        send_message(resolution={"deny": "no", "others": True}),
        tools=trusted,
    ),
    Story(
        "a result sent",
        model(calls(call("read", path="a")), say("Done.")),
        send_message(resolution={"allow": "once"}),
        tools=trusted,
    ),
    Story(
        "a result redacted",
        model(calls(call("read", path="a")), say("Done.")),
        send_message(resolution={"allow": "once", "text": "[-]"}),
        tools=trusted,
    ),
    Story(
        "a result withheld",
        model(calls(call("read", path="a")), say("Done.")),
        send_message(resolution={"deny": "private"}),
        tools=trusted,
    ),
    Story(
        "an error read first",
        model(calls(call("risky")), say("Done.")),
        send_message(resolution={"allow": "once"}),
        tools=trusted,
    ),
    Story(
        "asked, run and read",
        model(calls(call("read", path="a")), say("Done.")),
        send_message(resolution=by_kind(call={"allow": "once"}, result={"allow": "once", "text": "[-]"})),
        options=TurnOptions(rules=(Rule("read", "ask", layer="session"),)),
        tools=trusted,
    ),
    Story("a loop allowed", model(*LOOP, say("Done.")), send_message(resolution={"allow": "once"}), tools=trusted),
    Story("a loop denied", model(*LOOP, say("Done.")), send_message(resolution={"deny": "enough"}), tools=trusted),
    Story(
        "a limit of calls",
        model(calls(call("pay", amount=1), call("pay", amount=2), call("pay", amount=3)), say("Closing.")),
        send_message(),
        options=TurnOptions(budget=Budget(calls=2)),
        tools=trusted,
    ),
    Story(
        "a limit of steps",
        model(calls(call("pay", amount=1)), calls(call("pay", amount=2)), say("Closing.")),
        send_message(),
        options=TurnOptions(budget=Budget(steps=1)),
        tools=trusted,
    ),
    Story(
        "a limit while one is asked",
        model(calls(call("pay", amount=1), call("send", to="a"), call("pay", amount=2)), say("Closing.")),
        send_message(resolution={"allow": "once"}),
        options=TurnOptions(budget=Budget(calls=2)),
        tools=trusted,
    ),
    Story(
        "by hand",
        model(calls(call("pay", amount=1)), say("Done.")),
        send_message(resolution={"result": "paid in cash"}),
        options=TurnOptions(manual=("pay",)),
        tools=trusted,
    ),
    Story(
        "denied by a rule",
        model(calls(call("pay", amount=1), call("pay", amount=2)), say("Done.")),
        send_message(),
        options=TurnOptions(rules=(Rule("pay", "deny", {"amount": "1"}, "session"),)),
        tools=trusted,
    ),
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
async def test_wherever_it_is_stopped_nothing_is_asked_twice_and_no_limit_is_passed(story: Story) -> None:
    limit = story.options.budget.calls
    for stop in range(len(await entries_in(await tell(story)))):
        for before_next in (False, True):
            world = await tell(story, lives=stop, before_next=before_next)
            events = [entry.event for entry in await entries_in(world)]
            gate_counts = Counter((e.gate.call, e.gate.kind) for e in events if isinstance(e, GateOpened))
            assert max(gate_counts.values(), default=0) <= 1
            started = sum(isinstance(event, CallStarted) for event in events)
            assert not limit or started <= limit
            assert sum(isinstance(event, LimitReached) for event in events) <= 1
            sent = [part for request in world.requests for message in request.messages for part in message.parts]
            if story.name in ("a result redacted", "a result withheld"):
                assert "SECRET" not in str(sent)


async def test_what_was_granted_is_granted_once_wherever_it_is_stopped() -> None:
    story = STORIES[1]
    for stop in range(len(await entries_in(await tell(story)))):
        world = await tell(story, lives=stop)
        grants = await world.store.grants(SESSION, 0.0)
        assert [grant.rule.tool for grant in grants] == ["send"]
