"""A turn that changes memory, stopped at every event: each change is made once, and the log ends as it would have."""

from __future__ import annotations

import pytest

from everturn import Chat, TurnOptions
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import memory
from tests.helpers.crash_harness import Story, World, check, entries_in, plain, tell, watch

CALLS = (
    call("memory_create", path="a", file_text="one\n"),
    call("memory_insert", path="a", insert_line=1, insert_text="two\n"),
    call("memory_insert", path="a", insert_line=1, insert_text="two\n"),
    call("memory_str_replace", path="a", old_str="one", new_str="one one"),
    call("memory_rename", old_path="a", new_path="b"),
    call("memory_create", path="a", file_text="x"),
    call("memory_delete", path="a"),
)


async def play(chat: Chat, world: World) -> None:
    turn = await chat.send("remember", key="send")
    await watch(turn, resolution={"allow": "once"})


def story(approval: str) -> Story:
    return Story(
        f"memory, approval {approval}",
        lambda _: ScriptedModel(*(calls(call) for call in CALLS), say("Done.")),
        play,
        options=TurnOptions(by="ada", max_steps=20),
        tools=lambda _: [memory(approval=approval).enabled()],  # type: ignore[arg-type,list-item]
    )


async def files(world: World) -> dict[str, str]:
    memory_of_store = world.store.user_memory
    texts: dict[str, str] = {}
    for info in await memory_of_store.files("local", "ada"):
        file = await memory_of_store.file("local", "ada", info.path)
        assert file is not None
        texts[info.path] = file.text
    return texts


@pytest.mark.parametrize("before_next", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("approval", ["auto", "ask"])
async def test_stopped_at_any_event_each_change_is_made_once(approval: str, before_next: bool) -> None:
    scenario = story(approval)
    whole = await tell(scenario)
    expected = plain(await entries_in(whole))
    assert await files(whole) == {"b": "one one\ntwo\ntwo\n"}
    assert len(expected) > 20
    for stop in range(len(await entries_in(whole))):
        world = await tell(scenario, lives=stop, before_next=before_next)
        await check(world)
        assert await files(world) == {"b": "one one\ntwo\ntwo\n"}, f"stopped at {stop}"
        if not before_next:
            assert plain(await entries_in(world)) == expected, f"stopped at {stop}"
