"""A turn that survives: every story, stopped after every event, goes on in a process that has only the store."""

from __future__ import annotations

import pytest

from everturn.core.events import StepRestarted
from tests.helpers.crash_harness import Story, check, entries_in, plain, tell, unknown_calls, without_results
from tests.helpers.crash_scenarios import NEVER_LATE, STORIES

names = [story.name for story in STORIES]


@pytest.mark.parametrize("story", STORIES, ids=names)
async def test_a_story_told_twice_leaves_the_same_log(story: Story) -> None:
    first, second = await tell(story), await tell(story)
    await check(first)
    assert plain(await entries_in(first)) == plain(await entries_in(second))


@pytest.mark.parametrize("story", STORIES, ids=names)
async def test_stopped_after_any_event_it_ends_as_if_it_had_not_been(story: Story) -> None:
    whole = plain(await entries_in(await tell(story)))
    alone = plain(await entries_in(await tell(NEVER_LATE))) if story.name == NEVER_LATE.name else whole
    for stop in range(len(await entries_in(await tell(story)))):
        world = await tell(story, lives=stop)
        await check(world)
        log = plain(await entries_in(world))
        unknown = unknown_calls(log)
        assert {world.effects.get(call) for call in world.done if world.done[call] > 1} <= {"read", "write"}
        expected = whole if "LateResultReceived" in {event["type"] for event in log} else alone
        assert without_results(log, unknown) == without_results(expected, unknown), f"stopped after {stop}"


@pytest.mark.parametrize("story", STORIES, ids=names)
async def test_stopped_before_any_event_nothing_is_lost_or_done_twice(story: Story) -> None:
    whole = await tell(story)
    for stop in range(len(await entries_in(whole))):
        world = await tell(story, lives=stop, before_next=True)
        await check(world)
        restarts = [entry for entry in await entries_in(world) if isinstance(entry.event, StepRestarted)]
        assert len(restarts) <= 1 + (story.name == "two branches at once"), f"stopped before {stop + 1}"
