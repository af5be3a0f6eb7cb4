"""Forks inside an answer: a branch continues after a finished step, and nothing before it is done again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from everturn import App, Chat, Rule, TurnOptions, tool, wire
from everturn.core.chunks import UsageChunk
from everturn.core.commands import Send
from everturn.core.events import CallStarted, Event, MessagesImported, StepStarted, TurnStarted
from everturn.core.messages import ForkPoint, Message
from everturn.core.parts import StepPart, ToolPart, Usage
from everturn.core.ports import Model
from everturn.errors import CommandRefused, ConfigError, KeyConflict, UnknownMessage
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.models.vendors import VENDORS
from everturn.replay import Recording, differences, replay, replay_offline
from everturn.stores.export import export_session, import_session
from everturn.testing import MemoryStore, ScriptedHang, ScriptedModel, call, calls, say
from everturn.testing.provider import Call, Provider, Say, Think
from tests.helpers.crash_harness import (
    Process,
    Story,
    World,
    check,
    entries_in,
    plain,
    unknown_calls,
    watch,
    without_results,
)
from tests.helpers.stores import ALL, CRASHES, opened
from tests.helpers.waiting import wait_until


class Works:
    """Tools that count what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def tools(self) -> list[Any]:
        @tool(read_only=True)
        async def look(path: str) -> str:
            """Look."""
            self.done.append(f"look {path}")
            return f"content of {path}"

        @tool
        async def pay(amount: int) -> str:
            """Pay."""
            self.done.append(f"pay {amount}")
            return f"paid {amount}"

        @tool(approval="always")
        async def mail(to: str) -> str:
            """Mail."""
            self.done.append(f"mail {to}")
            return f"mailed {to}"

        return [look, pay, mail]


SCRIPT: tuple[Any, ...] = (
    [say("I look."), [[UsageChunk(Usage(input=7))]], calls(call("look", path="a"), call("pay", amount=1))],
    calls(call("look", path="b")),
    say("Done."),
    say("And more."),
    say("Even more."),
)


@pytest.fixture(params=ALL)
async def chat(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Chat]:
    """A chat on a store, with the answer of three steps."""
    async with opened(request.param, tmp_path) as store:
        works, model = Works(), ScriptedModel(*SCRIPT)
        app = App(model, tools=works.tools(), store=store)
        chat = Chat(model, app=app, session="s")
        chat.works, chat.model = works, model  # type: ignore[attr-defined]
        await (await chat.send("please"))
        yield chat
        await app.aclose()


def asked(chat: Chat) -> list[Any]:
    return [request.messages for request in chat.model.requests]  # type: ignore[attr-defined]


def done(chat: Chat) -> list[str]:
    return chat.works.done  # type: ignore[attr-defined]


async def answer_of(chat: Chat) -> Message:
    return (await chat.messages())[-1]


def finished(message: Message) -> list[int]:
    return [part.step for part in message.parts if isinstance(part, StepPart)]


@pytest.mark.parametrize("step", [1, 2])
async def test_the_model_continues_after_a_step_with_the_request_that_it_had_there(chat: Chat, step: int) -> None:
    answer = await answer_of(chat)
    before = list(done(chat))
    result = await (await chat.rerun(answer, after_step=step))
    assert result.text == "Done."
    requests = asked(chat)
    assert requests[3] == requests[step]  # word for word what was asked after this step
    assert done(chat) == before + ["look b"] * (step == 1)  # the model made this call anew, and none other
    question, copy, new = await chat.messages()
    assert (copy.parent, copy.fork, finished(copy)) == (question.id, ForkPoint(answer.id, step), [*range(1, step + 1)])
    assert new.parent == copy.id
    assert (await chat.tree()).versions(answer.id) == [answer.id, copy.id]
    # What the copied steps cost is not counted again.
    assert [part.usage for part in copy.parts if isinstance(part, StepPart)] == [Usage()] * step
    assert result.usage.input == sum(part.usage.input for part in new.parts if isinstance(part, StepPart))
    log = [entry.event for entry in await chat.app.store.events("s")]
    ids = [event.call for event in log if isinstance(event, CallStarted)]
    assert len(set(ids)) == len(ids)


async def test_the_copy_and_the_turn_are_one_append() -> None:
    class BatchRecorder(MemoryStore):
        batches: ClassVar[list[list[Event]]] = []

        async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
            self.batches.append(list(events))
            return await super().append(session, after, events, epoch)

    works, store = Works(), BatchRecorder()
    async with Chat(ScriptedModel(*SCRIPT), tools=works.tools(), store=store, session="s") as chat:
        await (await chat.send("please"))
        await (await chat.rerun(await answer_of(chat), after_step=1, key="k"))
    [batch] = [batch for batch in store.batches if any(isinstance(event, MessagesImported) for event in batch)]
    [copied, started] = batch
    assert isinstance(copied, MessagesImported)
    assert isinstance(started, TurnStarted)
    assert (started.parent, started.input, started.command) == (copied.messages[0].id, None, "k")


async def test_a_fork_waits_for_a_message(chat: Chat) -> None:
    answer = await answer_of(chat)
    copy = await chat.fork(answer, step=1)
    assert len(asked(chat)) == 3
    assert [message.id for message in await chat.messages()] == [answer.parent, copy]
    assert [message.text for message in await chat.messages()] == ["please", "I look."]
    result = await (await chat.send("Wait: what is it?"))
    assert result.text == "Done."
    first = asked(chat)[3]
    assert [message.role for message in first] == ["user", "assistant", "tool", "user"]
    assert done(chat)[:3] == ["look a", "pay 1", "look b"]
    assert done(chat).count("pay 1") == 1


async def test_the_same_key_is_the_same_fork(chat: Chat) -> None:
    answer = await answer_of(chat)
    first, again = [await chat.fork(answer, step=1, key="k") for _ in range(2)]
    assert first == again
    turns = [await chat.rerun(answer, after_step=2, key="r") for _ in range(2)]
    assert turns[0].id == turns[1].id
    await turns[0]
    copies = [message for message in (await chat.tree()).messages.values() if message.fork is not None]
    assert [copy.fork for copy in copies] == [ForkPoint(answer.id, 1), ForkPoint(answer.id, 2)]
    with pytest.raises(KeyConflict):
        await chat.fork(answer, step=2, key="k")


async def test_a_fork_can_be_forked_and_its_answer_regenerated(chat: Chat) -> None:
    answer = await answer_of(chat)
    await (await chat.rerun(answer, after_step=2))
    _, copy, new = await chat.messages()
    await (await chat.rerun(new))
    assert (await chat.tree()).versions(new.id)[0] == new.id
    assert len((await chat.tree()).versions(new.id)) == 2
    again = await chat.fork(copy, step=1)
    assert finished((await chat.tree()).get(str(again))) == [1]
    assert asked(chat)[3] == asked(chat)[4]


async def test_a_turn_that_waits_can_be_forked_before_what_it_waits_for() -> None:
    works = Works()
    model = ScriptedModel(calls(call("look", path="a")), calls(call("mail", to="ada")), say("Sent."))
    async with Chat(model, tools=works.tools()) as chat:
        turn = await chat.send("please")
        waiting = await turn.result()
        assert waiting.status == "waiting"
        answer = await answer_of(chat)
        with pytest.raises(CommandRefused, match="its finished steps are: 1"):
            await chat.rerun(answer, after_step=2)
        forked = await (await chat.rerun(answer, after_step=1)).result()
        assert forked.status == "waiting"
        assert works.done == ["look a"]
        await forked.gates[0].approve()
        assert (await forked.resume()).text == "Sent."
        assert works.done == ["look a", "mail ada"]
        assert (await chat.turn(turn.id).result(0)).status == "waiting"  # it still asks
        await waiting.gates[0].deny("not twice")
        await chat.turn(turn.id)
    assert works.done == ["look a", "mail ada"]


async def test_a_turn_that_runs_can_be_forked_after_its_finished_steps() -> None:
    works = Works()
    hang: list[Any] = [ScriptedHang()]
    model = ScriptedModel(calls(call("pay", amount=1)), lambda request: hang[0] if len(hang) == 1 else hang[1])
    async with Chat(model, tools=works.tools()) as chat:
        turn = await chat.send("please")
        async for event in turn:
            if isinstance(event, StepStarted) and event.step == 2:
                break
        hang[0], hang[1:] = [ScriptedHang()], [say("Done.")]
        answer = next(message for message in (await chat.tree()).messages.values() if message.role == "assistant")
        result = await (await chat.rerun(answer, after_step=1))
        assert result.text == "Done."
        await turn.cancel()
    assert works.done == ["pay 1"]


async def test_earlier_answers_are_shortened_and_the_one_that_continues_is_not() -> None:
    works, model = Works(), ScriptedModel(*SCRIPT)
    async with Chat(model, tools=works.tools(), options=TurnOptions(tool_history="none")) as chat:
        await (await chat.send("please"))
        await (await chat.rerun(await answer_of(chat), after_step=2))
        assert model.requests[3].messages == model.requests[2].messages
        await (await chat.send("And?"))
        assert [message.role for message in model.requests[-1].messages] == ["user", "assistant", "assistant", "user"]


@pytest.mark.parametrize("context", ["last_turns(1)", "last_turns(2)"])
async def test_of_the_last_turns_a_fork_keeps_what_it_continues(context: str) -> None:
    works, model = Works(), ScriptedModel(*SCRIPT)
    async with Chat(model, tools=works.tools(), options=TurnOptions(context=context)) as chat:
        await (await chat.send("please"))
        answer = await answer_of(chat)
        await (await chat.rerun(answer, after_step=2))
        assert model.requests[3].messages == model.requests[2].messages
        await (await chat.rerun(answer))
        assert model.requests[4].messages == model.requests[0].messages


async def test_a_step_that_is_not_there_is_refused(chat: Chat) -> None:
    answer = await answer_of(chat)
    for step in (4, -1):
        with pytest.raises(CommandRefused, match=f"after step {step}; its finished steps are: 1, 2, 3"):
            await chat.rerun(answer, after_step=step)
        with pytest.raises(CommandRefused, match="its finished steps are: 1, 2, 3"):
            await chat.fork(answer, step=step)
    with pytest.raises(CommandRefused, match="is not an answer"):
        await chat.fork(str(answer.parent), step=1)
    with pytest.raises(UnknownMessage):
        await chat.fork("nobody", step=1)
    with pytest.raises(ConfigError, match="a step is one of an answer"):
        await chat.fork(None, step=1)
    assert (await answer_of(chat)).id == answer.id
    assert not [message for message in (await chat.tree()).messages.values() if message.fork is not None]


async def test_a_command_whose_step_is_not_there_is_dropped_by_the_driver(chat: Chat) -> None:
    answer = await answer_of(chat)
    app = chat.app
    send = Send(key="k", session="s", turn="t9", message="copy", parent=answer.parent, fork=ForkPoint(answer.id, 9))
    await app.command(send)
    assert await wait_until(lambda: app.find_drop_reason("s", "k")) == (
        f"answer {answer.id!r} cannot be forked after step 9; its finished steps are: 1, 2, 3"
    )
    assert "copy" not in (await chat.tree()).messages


async def test_no_fork_while_an_older_release_may_carry_it_out(chat: Chat) -> None:
    answer = await answer_of(chat)
    wire.set_write_version(1)
    try:
        with pytest.raises(CommandRefused, match="--writes"):
            await chat.rerun(answer, after_step=1)
        with pytest.raises(CommandRefused, match="--writes"):
            await chat.fork(answer, step=1)
        assert await chat.fork(answer) == answer.id
    finally:
        wire.set_write_version(0)


async def test_late_results_reach_the_original_and_are_told_in_the_fork_of_it(chat: Chat) -> None:
    answer = await answer_of(chat)
    await chat.fork(answer, step=1)
    tree = await chat.app.store.tree("s")
    calls_of = [part.call for part in answer.parts if isinstance(part, ToolPart)]
    assert {tree.calls[name] for name in calls_of} == {answer.id}  # events of these calls are about the original


async def test_a_session_with_forks_is_replayed_and_exported(chat: Chat, tmp_path: Path) -> None:
    answer = await answer_of(chat)
    await (await chat.rerun(answer, after_step=1))
    await (await chat.rerun(answer, after_step=2))
    await chat.fork(answer, step=1)
    await (await chat.send("And?"))
    recording = await Recording.from_log(chat.app.store, "s")
    assert differences(recording, await replay_offline(recording)) == []
    assert await replay(recording, tools=chat.works.tools()) == []  # type: ignore[attr-defined]
    store = MemoryStore()
    await export_session(chat.app.store, "s", tmp_path / "s.zip")
    await import_session(store, tmp_path / "s.zip")
    async with Chat(chat.model, app=App(chat.model, store=store), session="s") as again:  # type: ignore[attr-defined]
        assert [message.fork for message in await again.messages()] == [
            message.fork for message in await chat.messages()
        ]
        await (await again.rerun(answer.id, after_step=1))


# Crashes ----------------------------------------------------------------------------------------------------------------


async def forks(chat: Chat, world: World) -> None:
    """The answer is continued after its first step, by itself, and after its second, with a message."""
    await watch(await chat.send("one", key="1"))
    question = (await chat.tree()).children[None][0]
    answer = (await chat.tree()).children[question][0]
    await watch(await chat.rerun(answer, after_step=1, key="2"))
    await chat.fork(answer, step=2, key="3")
    await watch(await chat.send("and then?", key="4"))


def steps(_: World) -> ScriptedModel:
    first = calls(call("look", path="a"), call("pay", amount=1))
    return ScriptedModel(first, calls(call("put", path="b", text="x")), say("Done."), say("More."))


STORY = Story("forks inside an answer", steps, forks)


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def tell(kind: str, folder: Path, lives: int | None = None, before_next: bool = False) -> tuple[World, list[Any]]:
    async with opened(kind, made(folder)) as store:
        world = World(store)  # pyright: ignore[reportArgumentType]
        if not await Process(STORY, world, lives, before_next).tell():
            assert await Process(STORY, world).tell()
        await check(world)
        return world, await entries_in(world)


def is_inside_an_append(log: list[Any], stop: int) -> bool:
    """Whether a process would have to stop between a copy and the start of its turn, which no store writes alone."""
    return (
        0 < stop < len(log)
        and isinstance(log[stop - 1].event, MessagesImported)
        and isinstance(log[stop].event, TurnStarted)
        and log[stop].event.input is None
    )


@pytest.mark.parametrize(("kind", "before_next"), CRASHES)
async def test_stopped_anywhere_a_fork_goes_on_and_nothing_before_it_is_done_again(
    kind: str, before_next: bool, tmp_path: Path
) -> None:
    world, whole = await tell(kind, tmp_path / "whole")
    expected = plain(whole)
    assert sorted(world.effects.values()) == ["once", "read", "write", "write"]
    for stop in range(len(whole)):
        if is_inside_an_append(whole, stop):
            continue
        world, entries = await tell(kind, tmp_path / str(stop), stop, before_next)
        log = plain(entries)
        unknown = unknown_calls(log)
        assert without_results(log, unknown) == without_results(expected, unknown), f"stopped after {stop}"
        assert {name for name, count in world.done.items() if count > 1 and world.effects[name] == "once"} == set()


# Vendors ----------------------------------------------------------------------------------------------------------------

BASES = {"anthropic": "/v1", "openai": "/v1", "openai-chat": "/v1", "mistral": "/v1", "gemini": "/v1beta"}
PARAMS: dict[str, dict[str, Any]] = {
    "anthropic": {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 4096},
    "openai": {"reasoning": {"effort": "low", "summary": "auto"}},
}


@pytest.mark.parametrize(
    ("vendor", "name"),
    [
        ("anthropic", "claude"),
        ("openai", "gpt"),
        ("openai-chat", "gpt-4.1"),
        ("mistral", "mistral"),
        ("gemini", "gemini-3-pro"),
        ("gemini", "gemini-2.5-flash"),
        ("ollama", "local"),
        ("bedrock", "anthropic.claude-sonnet-4-5"),
    ],
)
async def test_no_vendor_refuses_a_fork(vendor: str, name: str) -> None:
    steps: list[Any] = [
        [Think("Hm."), Say("I look."), Call("look", '{"path": "a"}'), Call("pay", '{"amount": 1}')],
        [Think("So."), Call("look", '{"path": "b"}')],
        [Say("Done.")],
    ]
    works = Works()
    async with Provider() as provider:
        provider.script(name, [*steps, *steps[1:], steps[2], steps[2], steps[2]], sequence=True)
        profile = replace(VENDORS[vendor], base_url=provider.url + BASES.get(vendor, ""), prices="")
        model: Model = get_model(f"{vendor}:{name}", profile=profile, key="k", retry=RetryPolicy(attempts=1))
        options = TurnOptions(params=PARAMS.get(vendor))
        async with Chat(model, tools=works.tools(), options=options, rules=[Rule("*", "allow")]) as chat:
            await chat.run("please")
            answer = await answer_of(chat)
            await (await chat.rerun(answer, after_step=1))
            await (await chat.rerun(answer, after_step=2))
            await chat.fork(answer, step=1)
            await chat.run("And?")
            await chat.fork(answer, step=3)
            await chat.run("And then?")
        assert not provider.refusals
    assert works.done == ["look a", "pay 1", "look b", "look b"]
