"""Guardrails: what a plugin refuses no model reads, and what a model wrote is committed only once it has passed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from everturn import Chat, input_guardrail, output_guardrail, tool
from everturn.core.chunks import FinishChunk, OpaqueChunk, ReasoningChunk, TextChunk
from everturn.core.deltas import Delta
from everturn.core.events import InputRefused, StepFinished, StepInterrupted, StepRestarted
from everturn.core.hooks import OUTPUT_BUFFERS, OutputBuffer
from everturn.core.parts import Opaque, ReasoningPart, TextPart
from everturn.core.phases import Phase
from everturn.core.requests import ModelRequest
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, HookError, HookMisused, ModelError, TurnClosed, TurnError
from everturn.testing import MemoryStore, ScriptedFailure, ScriptedHang, ScriptedModel, call, calls, say, think
from everturn.turn.input_check import REFUSED_BEFORE
from tests.helpers.stores import store
from tests.turn.steering import Slow, wait_until_processed

__all__ = ["store"]

BAD, CANARY = "my password is hunter2", "078-05-1120"


@input_guardrail
async def no_secrets(ctx: Any, message: Any) -> None:
    """Refuse passwords."""
    if "password" in message.text:
        ctx.refuse("I cannot help with that.")


def redacting(buffer: OutputBuffer) -> Any:
    return output_guardrail(buffer=buffer, name="no_ssn")(lambda ctx, text: text.replace(CANARY, "***"))


def refusing(buffer: OutputBuffer) -> Any:
    @output_guardrail(buffer=buffer)
    def no_ssn(ctx: Any, text: str) -> None:
        if CANARY in text:
            ctx.refuse("I may not say that.")

    return no_ssn


def read(model: ScriptedModel) -> list[str]:
    """The texts of the last request."""
    return [part.text for message in model.requests[-1].messages for part in message.parts if type(part) is TextPart]


async def events_of(store: Store, kind: type[Any]) -> list[Any]:
    return [entry.event for entry in await store.events("s") if isinstance(entry.event, kind)]


# Input ---------------------------------------------------------------------------------------------------------------


async def test_a_refused_message_is_in_the_log_and_in_no_request_title_or_search(store: Store) -> None:
    model = ScriptedModel(*[[say("Hi.")]] * 3)
    async with Chat(model, plugins=[no_secrets], store=store, session="s") as chat:
        result = await (await chat.send(BAD))
        assert (result.text, result.phase) == ("I cannot help with that.", Phase.COMPLETED)
        assert result.refusal is not None
        assert (result.refusal.by, result.refusal.step) == ("no_secrets", 0)
        assert model.requests == []
        assert (await store.info("s")).title == ""
        assert await store.search("hunter2") == []
        assert [(message.text, message.refused) for message in await chat.messages()] == [
            (BAD, True),
            ("I cannot help with that.", True),
        ]
        result = await (await chat.send("hello"))
        assert result.refusal is None
        assert read(model) == ["hello"]
        assert (await store.info("s")).title == "hello"
        assert [message.text for _, message in await store.search("hello")] == ["hello"]

    model = ScriptedModel(*[[say("Hi.")]] * 2)
    async with Chat(model, store=store, session="s") as chat:  # another process, without the guardrail
        await (await chat.send("bye"))
        assert read(model) == ["hello", "Hi.", "bye"]


async def test_a_refused_message_stays_refused_when_it_is_answered_anew() -> None:
    store, model = MemoryStore(), ScriptedModel(*[[say("Hi.")]] * 3)
    async with Chat(model, plugins=[no_secrets], store=store, session="s") as chat:
        await (await chat.send(BAD))
    async with Chat(model, store=store, session="s") as chat:
        [message, _] = await chat.messages()
        result = await (await chat.rerun(message))
        assert result.text == REFUSED_BEFORE
        await (await chat.send("hello"))
        assert read(model) == ["hello"]


async def test_a_message_that_passed_before_may_be_refused_when_it_is_answered_anew() -> None:
    store, model = MemoryStore(), ScriptedModel(*[[say("Hi.")]] * 3)
    async with Chat(model, store=store, session="s") as chat:
        await (await chat.send(BAD))
    async with Chat(model, plugins=[no_secrets], store=store, session="s") as chat:
        [message, _] = await chat.messages()
        assert (await (await chat.rerun(message))).refusal is not None
        assert len(model.requests) == 1
        await (await chat.send("hello"))
        assert read(model) == ["hello"]


async def test_a_refused_steering_message_joins_no_request_and_the_turn_goes_on(store: Store) -> None:
    model = Slow(say("One."), say("Two."), say("Three."))
    async with Chat(model, plugins=[no_secrets], store=store, session="s") as chat:
        turn = await chat.send("go")
        await model.asked.wait()
        await chat.send(BAD, steer=True)
        await chat.send("and hurry", steer=True)
        await wait_until_processed(chat)
        model.go_on.set()
        result = await turn
        assert (result.text, result.refusal) == ("Two.", None)
        assert read(model) == ["go", "One.", "and hurry"]
        [refused] = await events_of(store, InputRefused)
        [message] = [message for message in await chat.messages() if message.refused]
        assert (refused.message, message.text) == (message.id, BAD)
        assert await store.search("hunter2") == []
        await (await chat.send("bye"))
        assert BAD not in read(model)


async def test_a_refused_steering_message_alone_asks_for_no_step() -> None:
    model = Slow(say("One."), say("Two."))
    async with Chat(model, plugins=[no_secrets]) as chat:
        turn = await chat.send("go")
        await model.asked.wait()
        await chat.send(BAD, steer=True)
        await wait_until_processed(chat)
        model.go_on.set()
        assert (await turn).text == "One."
        assert len(model.requests) == 1


async def test_on_input_comes_before_everything_and_a_refused_turn_starts_no_plugin() -> None:
    seen: list[str] = []

    class Index:
        def on_turn_start(self, ctx: Any) -> None:
            seen.append(ctx.messages[0].text)

    async with Chat(ScriptedModel(say("Hi.")), plugins=[Index(), no_secrets]) as chat:
        await (await chat.send(BAD))
        await (await chat.send("hello"))
        assert seen == ["hello"]


async def test_no_plugin_asks_for_another_step_after_a_refusal() -> None:
    class Eager:
        async def on_after_request(self, ctx: Any) -> None:
            await ctx.retry("Go on.")

    model = ScriptedModel(*[say(CANARY)] * 3)
    async with Chat(model, plugins=[Eager(), no_secrets, refusing("step")]) as chat:
        await (await chat.send(BAD))
        assert model.requests == []
        await (await chat.send("go"))
        assert len(model.requests) == 1
        refusals = ["I cannot help with that.", "I may not say that."]
        assert [message.text for message in await chat.messages()] == [BAD, refusals[0], "go", refusals[1]]


async def test_a_guardrail_that_fails_ends_the_turn_and_its_message_is_never_sent() -> None:
    class Away(Exception):
        pass

    @input_guardrail
    def classifier(ctx: Any, message: Any) -> None:
        if message.text == "one":
            raise Away("no route") from OSError("cable")

    model = ScriptedModel(say("Hi."))
    async with Chat(model, plugins=[classifier]) as chat:
        with pytest.raises(HookError, match=r"classifier.on_input failed: .*Away\('no route'\)") as raised:
            await (await chat.send("one"))
        assert type(raised.value.__cause__) is Away
        assert isinstance(raised.value.__cause__.__cause__, OSError)
        await (await chat.send("two"))
        assert read(model) == ["two"]


# Output --------------------------------------------------------------------------------------------------------------


def all_kinds() -> list[Any]:
    return [think(f"I know {CANARY}. Well."), say(f"One. It is {CANARY}. Two."), calls(call("save", text=CANARY))]


@tool(read_only=True)
def save(text: str) -> str:
    """Save."""
    return f"saved {text}"


async def everything_shown(chat: Chat, store: Store) -> tuple[str, str]:
    """What one reader saw, and the whole log."""
    shown = [str(item) async for item in await chat.send("go")]
    return "".join(shown), str(await store.events("s"))


@pytest.mark.parametrize("buffer", OUTPUT_BUFFERS)
async def test_what_a_guardrail_returns_is_what_is_committed(buffer: OutputBuffer, store: Store) -> None:
    model = ScriptedModel(all_kinds(), say("Done."))
    async with Chat(model, tools=[save], plugins=[redacting(buffer)], store=store, session="s") as chat:
        shown, log = await everything_shown(chat, store)
    assert CANARY not in log
    # Readers of a step without a buffer drop what they saw. Over a remote bus they may come too late to see it.
    assert CANARY not in shown if buffer != "none" else CANARY in shown or not isinstance(store, MemoryStore)
    [first, _] = await events_of(store, StepFinished)
    [reasoning, text, called] = first.parts
    assert (reasoning.text, text.text) == ("I know ***. Well.", "One. It is ***. Two.")
    assert called.arguments == '{"text":"***"}'
    assert len(await events_of(store, StepRestarted)) == (buffer == "none")
    assert CANARY not in str(model.requests)


@pytest.mark.parametrize("buffer", OUTPUT_BUFFERS)
async def test_a_refused_step_is_its_refusal_and_none_of_its_calls_runs(buffer: OutputBuffer, store: Store) -> None:
    model = ScriptedModel(all_kinds(), say("Done."))
    async with Chat(model, tools=[save], plugins=[refusing(buffer)], store=store, session="s") as chat:
        shown, log = await everything_shown(chat, store)
        assert CANARY not in log
        assert CANARY not in shown if buffer != "none" else CANARY in shown or not isinstance(store, MemoryStore)
        [step] = await events_of(store, StepFinished)
        assert step.parts == (TextPart("I may not say that."),)
        assert step.refused == "no_ssn"
        [message] = [message for message in await chat.messages() if message.role == "assistant"]
        assert message.text == "I may not say that."
        result = await (await chat.send("again"))
        assert result.refusal is None
        assert read(model) == ["go", "I may not say that.", "again"]


async def test_a_refusal_of_output_is_in_the_result() -> None:
    async with Chat(ScriptedModel(say(CANARY)), plugins=[refusing("step")]) as chat:
        result = await (await chat.send("go"))
        assert result.refusal is not None
        assert (result.refusal.text, result.refusal.by, result.refusal.step) == ("I may not say that.", "no_ssn", 1)
        assert result.text == "I may not say that."


async def test_with_a_sentence_buffer_whole_sentences_flow() -> None:
    seen: list[str] = []
    guardrail = output_guardrail(buffer="sentence", name="x")(lambda ctx, text: seen.append(text))
    async with Chat(ScriptedModel(say("Pi is 3.14. Really? Yes")), plugins=[guardrail]) as chat:
        deltas = [item.text async for item in await chat.send("go") if isinstance(item, Delta)]
    assert seen == ["Pi is 3.14. ", "Really? ", "Yes"]
    assert deltas == seen


@pytest.mark.parametrize("buffer", OUTPUT_BUFFERS)
@pytest.mark.parametrize("is_changed", [True, False])
async def test_a_changed_part_loses_the_signature_of_its_provider(buffer: OutputBuffer, is_changed: bool) -> None:
    store, opaque = MemoryStore(), Opaque("vendor", "signature")
    thought = f"I know {CANARY}." if is_changed else "I know."
    chunks = [[ReasoningChunk(thought), OpaqueChunk(opaque, "reasoning"), TextChunk("Hello."), FinishChunk("stop")]]
    async with Chat(ScriptedModel(chunks), plugins=[redacting(buffer)], store=store, session="s") as chat:
        await (await chat.send("go"))
    [step] = await events_of(store, StepFinished)
    [reasoning, text] = step.parts
    assert reasoning == (ReasoningPart("I know ***.") if is_changed else ReasoningPart("I know.", opaque))
    assert text == TextPart("Hello.")


class Stalling:
    """Says something, and then falls silent or fails."""

    name = "stalling"

    def __init__(self, *batches: Any, ending: Any) -> None:
        self.stalled, self._batches, self._ending = asyncio.Event(), batches, ending

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        for batch in self._batches:
            yield batch
        self.stalled.set()
        if isinstance(self._ending, ScriptedFailure):
            raise self._ending.error
        await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("buffer", OUTPUT_BUFFERS)
@pytest.mark.parametrize("ending", [ScriptedHang(), ScriptedFailure(ModelError("it broke"))], ids=["cancel", "fail"])
async def test_what_has_not_passed_when_a_stream_breaks_off_is_not_committed(buffer: OutputBuffer, ending: Any) -> None:
    store = MemoryStore()
    model = Stalling(*say(f"Safe. It is {CANARY}"), ending=ending)
    async with Chat(model, plugins=[redacting(buffer)], store=store, session="s") as chat:
        turn = await chat.send("go")
        if isinstance(ending, ScriptedHang):
            await model.stalled.wait()
            await turn.cancel()
            await turn
        else:
            with pytest.raises(TurnError):
                await turn
    assert CANARY not in str(await store.events("s"))
    parts = [part for event in await events_of(store, StepInterrupted) for part in event.parts]
    assert parts == ([TextPart("Safe. ")] if buffer == "sentence" else [])


@pytest.mark.parametrize("buffer", ["sentence", "step"])
async def test_other_plugins_see_only_what_has_passed(buffer: OutputBuffer) -> None:
    seen: list[str] = []

    class Nosy:
        def on_stream_chunk(self, ctx: Any, chunk: Any, message: Any) -> None:
            seen.append(f"{chunk} {message.text}")

    plugins = [Nosy(), redacting(buffer)]
    async with Chat(ScriptedModel(all_kinds(), say("Done.")), tools=[save], plugins=plugins) as chat:
        await (await chat.send("go"))
    assert CANARY not in "".join(seen)
    assert "***" in "".join(seen)


async def test_guardrails_check_in_order_and_the_largest_buffer_holds() -> None:
    store = MemoryStore()
    plugins = [
        output_guardrail(buffer="none", name="one")(lambda ctx, text: text.replace("a", "b")),
        output_guardrail(buffer="step", name="two")(lambda ctx, text: text.replace("b", "c")),
    ]
    async with Chat(ScriptedModel(say("abc")), plugins=plugins, store=store, session="s") as chat:
        shown, log = await everything_shown(chat, store)
    assert "ccc" in log
    assert "abc" not in shown


async def test_a_guardrail_knows_what_it_reads() -> None:
    seen: list[tuple[str, str, str]] = []
    guardrail = output_guardrail(lambda ctx, text: seen.append((ctx.kind, ctx.tool, text)))
    guardrail.name = "kinds"
    model = ScriptedModel([think("Hm."), say("Yes."), calls(call("save", text="x"))], say("Done."))
    async with Chat(model, tools=[save], plugins=[guardrail]) as chat:
        await (await chat.send("go"))
    assert seen == [
        ("reasoning", "", "Hm."),
        ("text", "", "Yes."),
        ("arguments", "save", '{"text":"x"}'),
        ("text", "", "Done."),
    ]


# Appends and retries -------------------------------------------------------------------------------------------------


class Retrieval:
    """Appends what it found before the first request."""

    async def on_turn_start(self, ctx: Any) -> None:
        await ctx.append("found: 42", role="notice")
        await ctx.append("found: 43", role="notice")


async def test_a_message_appended_at_the_start_is_in_the_first_request_once() -> None:
    store, model = MemoryStore(), ScriptedModel(calls(call("save", text="x")), say("Done."))
    async with Chat(model, tools=[save], plugins=[Retrieval()], store=store, session="s") as chat:
        turn = await chat.send("go")
        await turn
        ids = [message.id for message in await chat.messages() if message.role == "notice"]
    assert ids == [f"{turn.id}.Retrieval.start.0", f"{turn.id}.Retrieval.start.1"]
    assert read(model) == ["go", "found: 42", "found: 43"]


class Shorten:
    """Leaves out the oldest message when a request is too long."""

    def __init__(self) -> None:
        self.attempts: list[int] = []

    def on_overflow(self, ctx: Any, error: ModelError) -> None:
        self.attempts.append(ctx.attempt)
        ctx.retry(ctx.body.messages[1:])


TOO_LONG = [ScriptedFailure(ModelError("too long", kind="context"))]


def one_after_the_other(*answers: Any) -> ScriptedModel:
    left = iter(answers)
    return ScriptedModel(*[lambda _: next(left)] * 5)


async def test_a_request_that_is_too_long_is_sent_again_as_a_plugin_shortened_it() -> None:
    store, plugin = MemoryStore(), Shorten()
    model = one_after_the_other(say("Hi."), TOO_LONG, TOO_LONG, say("Done."))
    async with Chat(model, plugins=[plugin], store=store, session="s") as chat:
        await (await chat.send("one"))
        result = await (await chat.send("two"))
    assert (result.text, read(model), plugin.attempts) == ("Done.", ["two"], [1, 2])
    assert len(await events_of(store, StepRestarted)) == 2


async def test_a_request_that_stays_too_long_fails_in_the_end() -> None:
    plugin = Shorten()
    async with Chat(ScriptedModel(TOO_LONG), plugins=[plugin]) as chat:
        with pytest.raises(TurnError, match="too long") as raised:
            await (await chat.send("one"))
    assert (raised.value.kind, plugin.attempts) == ("context", [1, 2, 3])


async def test_other_failures_are_no_overflow() -> None:
    plugin = Shorten()
    async with Chat(ScriptedModel([ScriptedFailure(ModelError("no", kind="server"))]), plugins=[plugin]) as chat:
        with pytest.raises(TurnError):
            await (await chat.send("one"))
    assert plugin.attempts == []


async def test_retry_after_a_request_appends_and_asks_for_another_step() -> None:
    class Again:
        async def on_after_request(self, ctx: Any) -> None:
            if ctx.step == 1:
                await ctx.retry("Shorter, please.")

    model = ScriptedModel(say("Long."), say("Short."))
    async with Chat(model, plugins=[Again()]) as chat:
        assert (await (await chat.send("go"))).text == "Short."
    assert read(model) == ["go", "Long.", "Shorter, please."]


# Wrong use -----------------------------------------------------------------------------------------------------------


def plugin_with(hook: str, use: Callable[[Any], Any]) -> Any:
    return type("Wrong", (), {hook: lambda self, ctx, *_: use(ctx)})()


@pytest.mark.parametrize(
    ("hook", "use", "advice"),
    [
        ("on_stream_chunk", lambda ctx: ctx.append("x"), "on_turn_start and on_after_request append messages"),
        ("on_before_request", lambda ctx: ctx.refuse("x"), "on_input refuses what a person says"),
        ("on_turn_start", lambda ctx: ctx.retry("x"), "on_after_request asks for another step"),
        ("on_params", lambda ctx: ctx.body, "on_before_request changes the body"),
        ("on_input", lambda ctx: ctx.refuse(""), "needs the text that the person reads"),
    ],
)
async def test_what_a_hook_cannot_do_is_an_error_that_says_which_can(
    hook: str, use: Callable[[Any], Any], advice: str
) -> None:
    async with Chat(ScriptedModel(say("Hi.")), plugins=[plugin_with(hook, use)]) as chat:
        with pytest.raises(HookError, match=advice) as raised:
            await (await chat.send("go"))
    assert isinstance(raised.value.__cause__, HookMisused)


@pytest.mark.parametrize(
    ("hook", "late"), [("on_input", "refuse"), ("on_output", "refuse"), ("on_turn_start", "append")]
)
async def test_a_context_that_is_kept_says_that_it_is_too_late(hook: str, late: str) -> None:
    contexts: list[Any] = []
    async with Chat(ScriptedModel(say("Hi.")), plugins=[plugin_with(hook, contexts.append)]) as chat:
        await (await chat.send("go"))
    with pytest.raises(HookMisused, match="before the hook returns"):
        await getattr(contexts[0], late)("x")


async def test_a_context_that_is_kept_after_its_turn_writes_nothing() -> None:
    contexts: list[Any] = []
    async with Chat(ScriptedModel(say("Hi.")), plugins=[plugin_with("on_after_request", contexts.append)]) as chat:
        await (await chat.send("go"))
        with pytest.raises(TurnClosed, match="finish within the hook"):
            await contexts[0].append("x")


async def test_a_guardrail_returns_a_text_or_none() -> None:
    guardrail: Any = output_guardrail(lambda ctx, text: 7)  # pyright: ignore[reportArgumentType]
    async with Chat(ScriptedModel(say("Hi.")), plugins=[guardrail]) as chat:
        with pytest.raises(HookError, match="a string or None, not int"):
            await (await chat.send("go"))


def test_no_guardrail_takes_the_place_of_another() -> None:
    with pytest.raises(ConfigError, match="two plugins have the name 'no_ssn'"):
        Chat(ScriptedModel(), plugins=[redacting("step"), refusing("step")])


def test_a_buffer_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no buffer 'word'"):
        output_guardrail(buffer="word")(lambda ctx, text: None)  # pyright: ignore[reportArgumentType]
