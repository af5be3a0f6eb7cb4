"""Hooks: the order, the failure rules and the crash rules of the table in the design, row by row."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from inline_snapshot import snapshot

from everturn import Chat, Output, TurnError, TurnSettings, tool
from everturn.core.events import HookFinished, TurnSuspended
from everturn.core.hooks import HOOKS
from everturn.core.parts import TextPart
from everturn.errors import ConfigError, HookError
from everturn.events import CallFinished, GateOpened, Phase, TurnCompleted, TurnFailed
from everturn.plugins import SUSPEND, Plugin
from everturn.testing import ScriptedModel, call, calls, say
from tests.helpers.tools import pay_with_approval

Log = list[str]


@tool(read_only=True)
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def recorder(name: str, log: Log, fail: str = "", cleanup: str = "") -> Any:
    """A plugin with every hook: it writes down that it was called, and fails where it is told to."""

    def hook(which: str) -> Callable[..., Any]:
        def method(self: object, *args: object) -> Any:
            log.append(f"{name}.{which}")
            if which == fail:
                raise RuntimeError(f"{which} of {name}")
            if which == "on_turn_start":
                return clean_up
            return None

        return method

    def clean_up() -> None:
        log.append(f"{name}.cleanup")
        if cleanup:
            raise RuntimeError(cleanup)

    hooks = {which: hook(which) for which in HOOKS if which != "on_stream_chunk"}
    return type(name, (), {"name": name, **hooks})()


async def test_every_hook_is_called_in_its_order() -> None:
    log: Log = []
    chat = Chat(
        ScriptedModel(calls(call("add", a=1, b=2), call("pay", amount=3)), say("Done.")),
        tools=[add, pay_with_approval],
        plugins=[recorder("one", log), recorder("two", log)],
    )
    turn = await chat.send("go")
    async for event in turn:
        if isinstance(event, TurnSuspended):
            await turn.answer((await chat.gates())[0], allow="once")
    first = [entry for entry in log if entry.startswith("one.")]
    assert [entry.removeprefix("one.") for entry in first] == snapshot(
        [
            "on_input",
            "on_turn_start",
            "on_message_append",
            "on_system_prompt",
            "on_params",
            "on_before_request",
            "on_output",
            "on_output",
            "on_call_start",
            "on_call_start",
            "on_gate",
            "on_after_request",
            "on_call_end",
            "cleanup",
            "on_turn_start",
            "on_call_end",
            "on_system_prompt",
            "on_params",
            "on_before_request",
            "on_output",
            "on_after_request",
            "on_turn_end",
            "cleanup",
        ]
    )
    # Serial hooks go in registration order; clean-ups last in, first out.
    assert log[:4] == ["one.on_input", "two.on_input", "one.on_turn_start", "two.on_turn_start"]
    assert log[-2:] == ["two.cleanup", "one.cleanup"]


ENDS_THE_TURN = [
    "on_turn_start",
    "on_system_prompt",
    "on_params",
    "on_before_request",
    "on_after_request",
    "on_message_append",
]


@pytest.mark.parametrize("hook", ENDS_THE_TURN)
async def test_a_failure_there_ends_the_turn_and_clean_ups_still_run(hook: str) -> None:
    log: Log = []
    chat = Chat(ScriptedModel(say("Hi.")), plugins=[recorder("one", log), recorder("two", log, fail=hook)])
    with pytest.raises(TurnError, match=f"two.{hook} failed") as caught:
        await (await chat.send("go"))
    assert caught.value.kind == "hook"
    assert "one.on_error" in log
    assert "two.on_error" in log
    assert "one.on_turn_end" not in log
    ran = [entry for entry in log if entry.endswith("cleanup")]
    assert ran == (["one.cleanup"] if hook == "on_turn_start" else ["two.cleanup", "one.cleanup"])
    assert log.index("one.cleanup") > log.index("one.on_error")


async def test_a_failing_turn_start_keeps_later_plugins_from_starting() -> None:
    log: Log = []
    plugins = [recorder("one", log, fail="on_turn_start"), recorder("two", log)]
    with pytest.raises(TurnError):
        await (await Chat(ScriptedModel(), plugins=plugins).send("go"))
    assert "two.on_turn_start" not in log


@pytest.mark.parametrize("hook", ["on_call_start", "on_call_end"])
async def test_a_failure_around_a_call_fails_the_call_and_the_turn_goes_on(hook: str) -> None:
    log: Log = []
    model = ScriptedModel(calls(call("add", a=1, b=2)), say("Well."))
    chat = Chat(model, tools=[add], plugins=[recorder("one", log, fail=hook)])
    turn = await chat.send("go")
    settled = [event async for event in turn if isinstance(event, CallFinished)]
    assert [(event.state, f"one.{hook} failed" in event.output.text) for event in settled] == [("failed", True)]
    assert (await turn).phase is Phase.COMPLETED


async def test_a_failing_gate_hook_leaves_the_gate_to_the_person() -> None:
    log: Log = []
    model = ScriptedModel(calls(call("pay", amount=1)), say("Well."))
    chat = Chat(model, tools=[pay_with_approval], plugins=[recorder("one", log, fail="on_gate")])
    turn = await chat.send("go")
    async for event in turn:
        if isinstance(event, GateOpened):
            await turn.answer(event.gate, deny="no")
    state = await turn.state()
    assert [c.state for c in state.calls.values()] == ["denied"]


@pytest.mark.parametrize("hook", ["on_turn_end", "cleanup"])
async def test_what_fails_at_the_end_is_raised_together_and_changes_nothing(hook: str) -> None:
    log: Log = []
    plugins = [
        recorder("one", log, fail=hook, cleanup="spilt" if hook == "cleanup" else ""),
        recorder("two", log, cleanup="burnt"),
    ]
    turn = await Chat(ScriptedModel(say("Hi.")), plugins=plugins).send("go")
    with pytest.raises(ExceptionGroup) as caught:
        await turn
    assert all(isinstance(error, HookError) for error in caught.value.exceptions)
    # A clean-up's failure is raised; that of on_turn_end is reported, and both stand in the log.
    assert len(caught.value.exceptions) == (2 if hook == "cleanup" else 1)
    events = [event async for event in turn]
    assert [len(event.reports) for event in events if isinstance(event, TurnCompleted)] == [2]
    assert (await turn.state()).phase is Phase.COMPLETED
    assert log[-2:] == ["two.cleanup", "one.cleanup"]


async def test_failed_clean_ups_are_raised_with_the_turns_own_error() -> None:
    log: Log = []
    plugins = [recorder("one", log, cleanup="spilt"), recorder("two", log, fail="on_params", cleanup="burnt")]
    with pytest.raises(ExceptionGroup) as caught:
        await (await Chat(ScriptedModel(), plugins=plugins).send("go"))
    own, *others = caught.value.exceptions
    assert isinstance(own, TurnError)
    assert str(own).startswith("two.on_params failed")
    assert [str(error) for error in others] == snapshot(
        ["two.clean-up failed: RuntimeError('burnt')", "one.clean-up failed: RuntimeError('spilt')"]
    )


class EveryChunk(Plugin):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_stream_chunk(self, ctx: Any, chunk: Any, message: Any) -> None:
        self.seen.append(f"{type(chunk).__name__}:{message.text}")


async def test_every_chunk_reaches_every_plugin_with_the_answer_so_far() -> None:
    first, two = EveryChunk(), EveryChunk()
    chat = Chat(ScriptedModel(say("a b")), plugins=[_named("one", first), _named("two", two)])
    await (await chat.send("go"))
    assert first.seen == two.seen == snapshot(["TextChunk:a ", "TextChunk:a b", "UsageChunk:a b", "FinishChunk:a b"])


def _named(name: str, plugin: EveryChunk) -> object:
    return type(name, (), {"name": name, "on_stream_chunk": lambda self, *args: plugin.on_stream_chunk(*args)})()


async def test_a_failure_on_a_chunk_ends_the_turn_and_keeps_what_was_said() -> None:
    class Picky:
        def on_stream_chunk(self, ctx: Any, chunk: Any, message: Any) -> None:
            if message.text == "one two ":
                raise ValueError("two")

    turn = await Chat(ScriptedModel(say("one two three")), plugins=[Picky()]).send("go")
    ended = [event async for event in turn if isinstance(event, TurnFailed)]
    assert ended[0].problem.kind == "hook"
    state = await turn.state()
    assert [message.text for message in state.messages.values()] == ["go", "one two "]


# Appends ----------------------------------------------------------------------------------------------------------


class Appender:
    def __init__(self, name: str, *appends: tuple[str, int, bool]) -> None:
        self.name, self._appends = name, appends

    async def on_after_request(self, ctx: Any) -> None:
        if ctx.step == 1:
            for text, priority, deferred in self._appends:
                await ctx.append_message(text, role="notice", priority=priority, deferred=deferred)


async def test_deferred_appends_come_high_priority_first_then_in_registration_order() -> None:
    plugins = [
        Appender("one", ("one low", 0, True), ("one now", 9, False)),
        Appender("two", ("two high", 5, True), ("two low", 0, True)),
        Appender("three", ("three high", 5, True)),
    ]
    chat = Chat(ScriptedModel(say("Hi.")), plugins=plugins)
    await (await chat.send("go"))
    shown = [part.text for m in (await chat.messages())[2:] for part in m.parts if isinstance(part, TextPart)]
    assert shown == snapshot(["one now", "two high", "three high", "one low", "two low"])


async def test_append_and_request_asks_again_with_the_message_in_place() -> None:
    class Again:
        async def on_after_request(self, ctx: Any) -> None:
            if ctx.step == 1:
                await ctx.append_and_request("go on")

    model = ScriptedModel(say("First."), say("Second."))
    chat = Chat(model, plugins=[Again()])
    assert (await (await chat.send("go"))).text == "Second."
    assert [message.text for message in model.requests[1].messages] == ["go", "First.", "go on"]
    assert [m.text for m in await chat.messages()] == ["go", "First.", "go on", "Second."]


async def test_prevent_default_keeps_a_message_out_of_the_conversation() -> None:
    class Censor:
        def on_message_append(self, ctx: Any) -> None:
            if any("secret" in part.text for part in ctx.message.parts):
                ctx.prevent_default()

    plugins = [Appender("one", ("a secret", 0, False), ("not one", 0, False)), Censor()]
    model = ScriptedModel(say("Hi."), say("Again."))
    chat = Chat(model, plugins=plugins)
    await (await chat.send("go"))
    await (await chat.send("and"))
    assert [message.text for message in await chat.messages()][:3] == ["go", "Hi.", "not one"]
    assert not any("secret" in message.text for message in model.requests[1].messages)


async def test_a_hook_may_change_an_answer_before_it_joins_but_not_who_it_is() -> None:
    class Badge:
        def on_message_append(self, ctx: Any) -> None:
            from msgspec.structs import replace

            ctx.message = replace(ctx.message, by="somebody", id="forged", parent="forged")

    chat = Chat(ScriptedModel(say("Hi.")), plugins=[Badge()])
    await (await chat.send("go"))
    answer = (await chat.messages())[1]
    assert (answer.by, answer.id == "forged", answer.parent == "forged") == ("somebody", False, False)


# Requests ---------------------------------------------------------------------------------------------------------


async def test_request_messages_keep_only_the_fields_they_may() -> None:
    class Rewrite:
        def on_before_request(self, ctx: Any) -> None:
            ctx.set_request_messages([{"role": "user", "content": "hi", "name": "ada", "id": "x", "debug": 1}])

    model = ScriptedModel(say("Hi."))
    settings = TurnSettings(request_message_fields=frozenset({"role", "parts"}))
    await (await Chat(model, plugins=[Rewrite()], settings=settings).send("go"))
    message = model.requests[0].messages[0]
    assert (message.role, message.text, message.name) == ("user", "hi", "")


def _add_a_text(ctx: Any) -> None:
    ctx.system += "Be brief."


def _extend_by_a_text(ctx: Any) -> None:
    ctx.system.extend("Be brief.")


def _replace_by_a_text(ctx: Any) -> None:
    ctx.system = "Be brief."


@pytest.mark.parametrize("change", [_add_a_text, _extend_by_a_text, _replace_by_a_text])
async def test_a_text_in_place_of_paragraphs_of_the_prompt_is_refused(change: Callable[[Any], None]) -> None:
    class Tune:
        def on_system_prompt(self, ctx: Any) -> None:
            change(ctx)

    model = ScriptedModel(say("Hi."))
    with pytest.raises(HookError, match=r"ctx\.system\.append\(text\)"):
        await (await Chat(model, plugins=[Tune()]).send("go"))
    assert model.requests == []


async def test_paragraphs_of_the_prompt_can_be_added_or_replaced() -> None:
    class Tune:
        def on_system_prompt(self, ctx: Any) -> None:
            ctx.system = ["You are brief."]
            ctx.system += ["You are kind."]

    model = ScriptedModel(say("Hi."))
    await (await Chat(model, plugins=[Tune()]).send("go"))
    assert model.requests[0].system == "You are brief.\n\nYou are kind."


async def test_prompt_and_parameters_can_be_changed_before_the_body_is_assembled() -> None:
    class Tune:
        def on_system_prompt(self, ctx: Any) -> None:
            ctx.system.append("Be brief.")

        async def on_params(self, ctx: Any) -> None:
            ctx.params["temperature"] = 0

    model = ScriptedModel(say("Hi."))
    await (await Chat(model, plugins=[Tune()]).send("go", params={"top_p": 1, "seed": None}))
    assert model.requests[0].system.endswith("Be brief.")
    assert model.requests[0].params == {"top_p": 1, "temperature": 0}


async def test_arguments_and_results_can_be_rewritten_around_a_call() -> None:
    class Double:
        def on_call_start(self, ctx: Any) -> None:
            ctx.arguments = {"a": ctx.arguments["a"] * 10, "b": ctx.arguments["b"]}

        def on_call_end(self, ctx: Any) -> None:
            ctx.output = Output(ctx.output.text + "!")

    chat = Chat(ScriptedModel(calls(call("add", a=1, b=2)), say("Ok.")), tools=[add], plugins=[Double()])
    settled = [event async for event in await chat.send("go") if isinstance(event, CallFinished)]
    assert [event.output.text for event in settled] == ["12!"]


async def test_a_gate_hook_may_answer_and_cannot_widen() -> None:
    class Cautious:
        name = "cautious"

        def on_gate(self, ctx: Any) -> None:
            if ctx.arguments == {"amount": 1}:
                ctx.allow()
            else:
                ctx.deny("too much")

    model = ScriptedModel(calls(call("pay", amount=1), call("pay", amount=9)), say("Ok."))
    chat = Chat(model, tools=[pay_with_approval], plugins=[Cautious()])
    settled = [event async for event in await chat.send("go") if isinstance(event, CallFinished)]
    assert sorted((event.state, event.output.text) for event in settled) == snapshot(
        [("completed", "paid 1"), ("denied", "The plugin cautious did not allow this call and said why: too much.")]
    )


# Waiting and crashing ---------------------------------------------------------------------------------------------


class Asker:
    def __init__(self, name: str, log: Log) -> None:
        self.name, self._log = name, log

    async def on_after_request(self, ctx: Any) -> Any:
        self._log.append(self.name)
        resolution = await ctx.ask(f"{self.name}?")
        return SUSPEND if resolution is None else None


async def test_only_plugins_that_are_not_done_are_called_again() -> None:
    log: Log = []
    done = recorder("done", log)
    chat = Chat(ScriptedModel(say("Hi.")), tools=[add], plugins=[done, Asker("slow", log)])
    turn = await chat.send("go")
    finished: list[str] = []
    async for event in turn:
        if isinstance(event, HookFinished):
            finished.append(event.plugin)
        if isinstance(event, GateOpened):
            await turn.answer(event.gate, allow="once")
    assert sorted(finished) == ["done", "slow", "tool_calling"]
    assert log.count("done.on_after_request") == 1
    assert log.count("slow") == 2


async def test_a_pending_plugin_is_called_again_while_another_still_works() -> None:
    log: Log = []
    answered = asyncio.Event()

    class Slow:
        name = "slow"

        async def on_after_request(self, ctx: Any) -> None:
            await answered.wait()

    class Hears(Asker):
        async def on_after_request(self, ctx: Any) -> Any:
            result = await super().on_after_request(ctx)
            if result is None:
                answered.set()
            return result

    chat = Chat(ScriptedModel(say("Hi.")), plugins=[Slow(), Hears("asker", log)])
    turn = await chat.send("go")
    async for event in turn:
        if isinstance(event, GateOpened):
            await turn.answer(event.gate, allow="once")
    assert (await turn).phase is Phase.COMPLETED


@pytest.mark.parametrize("hook", ["on_before_request", "on_after_request"])
async def test_an_error_raised_because_of_a_cancel_is_that_cancellation(hook: str) -> None:
    reached = asyncio.Event()

    async def angry(self: object, ctx: Any) -> None:
        reached.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            raise RuntimeError("how dare you") from None

    log: Log = []
    chat = Chat(ScriptedModel(say("Hi.")), plugins=[type("Angry", (), {hook: angry})(), recorder("one", log)])
    turn = await chat.send("go")
    await reached.wait()
    await turn.cancel()
    assert (await turn).phase is Phase.CANCELLED
    assert "one.on_turn_end" in log
    assert "one.on_error" not in log


async def test_one_failure_among_parallel_hooks_ends_the_others() -> None:
    ended: Log = []

    class Forever:
        async def on_after_request(self, ctx: Any) -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append("forever")

    log: Log = []
    chat = Chat(ScriptedModel(say("Hi.")), plugins=[Forever(), recorder("one", log, fail="on_after_request")])
    with pytest.raises(TurnError):
        await (await chat.send("go"))
    assert ended == ["forever"]


# What a plugin is ---------------------------------------------------------------------------------------------------


async def test_a_later_plugin_of_the_same_name_takes_the_place_of_the_earlier() -> None:
    log: Log = []
    await (await Chat(ScriptedModel(say("Hi.")), plugins=[recorder("x", log), recorder("x", log)]).send("go"))
    assert log.count("x.on_turn_start") == 1


def test_an_object_without_any_hook_is_refused_with_the_list_of_hooks() -> None:
    with pytest.raises(ConfigError, match="on_turn_start"):
        Chat(ScriptedModel(), plugins=[object()])


async def test_a_plain_or_async_method_is_equally_good() -> None:
    seen: Log = []

    def plain(self: object, ctx: Any) -> None:
        seen.append("plain")

    async def later(self: object, ctx: Any) -> None:
        seen.append("async")

    kinds: list[Callable[[object, Any], Awaitable[None] | None]] = [plain, later]
    plugins = [type(f"p{at}", (), {"on_turn_end": kind})() for at, kind in enumerate(kinds)]
    await (await Chat(ScriptedModel(say("Hi.")), plugins=plugins).send("go"))
    assert seen == ["plain", "async"]
