"""The concept pages: what they claim beside their examples, page by page."""

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from everturn import Chat, ModelError, TurnError, TurnOptions, TurnSettings, tool
from everturn.calls.pipeline import OutputLimits
from everturn.core.chunks import CallChunk
from everturn.core.history import DIGEST_LIMIT, render_history
from everturn.core.hooks import AppendContext, CallContext, GateContext, TurnContext
from everturn.core.parts import Finish, NoticePart, ToolPart
from everturn.core.requests import RequestCall, RequestResult
from everturn.errors import CommandRefused, ConfigError, DriverLost, GateClosed, HookError, KeyConflict
from everturn.events import (
    CallStarted,
    Cursor,
    GateOpened,
    Phase,
    TextDelta,
    TurnSuspended,
)
from everturn.testing import MemoryStore, MortalStore, ScriptedFailure, ScriptedHang, ScriptedModel, call, calls, say


@tool(read_only=True)
async def look(at: str = "it") -> str:
    return f"saw {at}"


@tool(approval="always")
async def pay(amount: int) -> str:
    return f"paid {amount}"


def calls_of(result: Any) -> list[ToolPart]:
    return [part for message in result.messages for part in message.parts if isinstance(part, ToolPart)]


# A turn ------------------------------------------------------------------------------------------------------------


async def test_the_model_does_not_read_its_own_empty_answer() -> None:
    model = ScriptedModel(say("Hi."))
    async with Chat(model) as chat:
        await (await chat.send("Hello"))
    assert [message.role for message in model.requests[0].messages] == ["user"]


async def test_a_null_takes_an_option_of_an_earlier_layer_back() -> None:
    model = ScriptedModel(say("Hi."))
    settings = TurnSettings(layers=({"top": 1, "reasoning": {"effort": "low", "budget": 5}}, {"top": 2}))
    async with Chat(model, settings=settings) as chat:
        await (await chat.send("Hello", params={"reasoning": {"budget": None}}))
    assert model.requests[0].params == {"top": 2, "reasoning": {"effort": "low"}}


async def test_a_turn_makes_at_most_one_request_more_than_max_steps() -> None:
    model = ScriptedModel(*(calls(call("look")) for _ in range(2)), say("That is all."))
    async with Chat(model, tools=[look], options=TurnOptions(max_steps=2)) as chat:
        result = await (await chat.send("Go"))
    assert (result.text, len(model.requests)) == ("That is all.", 3)
    assert [bool(request.tools) for request in model.requests] == [True, True, False]
    first, last = calls_of(result)
    assert (first.state, last.state) == ("completed", "failed")
    assert last.output is not None
    assert json.loads(last.output.text) == {"status": "incomplete", "reason": "max_steps_reached"}
    assert TurnOptions().max_steps == 10


async def test_a_failed_turn_raises_and_keeps_what_had_arrived() -> None:
    class Broken:
        def on_turn_start(self, ctx: TurnContext) -> None:
            raise ValueError

    cut_off = ScriptedFailure(ModelError("the line is dead", kind="network"))
    async with Chat(ScriptedModel([say("I was "), cut_off])) as chat:
        with pytest.raises(TurnError, match="the line is dead") as failed:
            await (await chat.send("Go"))
        assert failed.value.kind == "network"
        assert (await chat.messages())[-1].text == "I was "
    async with Chat(ScriptedModel(say("never")), plugins=[Broken()]) as chat:
        with pytest.raises(HookError) as broken:
            await (await chat.send("Go"))
        assert broken.value.kind == "hook"
        assert isinstance(broken.value, TurnError)


async def test_a_cancelled_turn_is_a_result_with_what_there_is() -> None:
    async with Chat(ScriptedModel([say("As far as "), ScriptedHang()])) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TextDelta):
                await turn.cancel()
        result = await turn
    assert result.phase is Phase.CANCELLED
    assert result.text.startswith("As ")


async def test_a_turn_runs_on_without_readers() -> None:
    over = asyncio.Event()
    async with Chat(ScriptedModel(say("Hi."))) as chat:
        chat.subscribe(lambda snapshot: over.set() if snapshot.phase.is_terminal else None)
        turn = await chat.send("Hello")
        await over.wait()
        assert (await turn.state()).phase is Phase.COMPLETED


# The log -----------------------------------------------------------------------------------------------------------


async def test_a_step_that_is_asked_again_is_asked_the_same() -> None:
    store, requests = MemoryStore(), []

    async def live(store: Any) -> None:
        model = ScriptedModel(calls(call("look")), say("Done."))
        async with Chat(model, tools=[look], store=store, session="s") as chat:
            try:
                await (await chat.send("Go", key="k"))
            finally:
                requests.append(model.requests[-1])

    mortal = MortalStore(store, lives=4, before_next=True)
    first = asyncio.ensure_future(live(mortal))
    await mortal.died.wait()
    first.cancel()
    await asyncio.wait({first})
    model = ScriptedModel(calls(call("look")), say("Done."))
    async with Chat(model, tools=[look], store=store, session="s") as chat:
        await (await chat.send("Go", key="k"))
    assert model.requests[0] == requests[0]


async def test_the_same_key_is_the_same_turn() -> None:
    async with Chat(ScriptedModel(say("Hi."))) as chat:
        first = await chat.send("Hello", key="k")
        assert (await chat.send("Hello", key="k")).id == first.id
        with pytest.raises(KeyConflict):
            await chat.send("Goodbye", key="k")


async def test_sessions_share_an_app_its_tools_and_its_end() -> None:
    model = ScriptedModel(calls(call("look")), say("Done."))
    chat = Chat(model, tools=[look])
    other = Chat(model, session="other", app=chat.app)
    result = await (await other.send("Go"))
    assert [tool_call.state for tool_call in calls_of(result)] == ["completed"]
    assert await chat.messages() == []
    await other.aclose()
    with pytest.raises(ConfigError):
        await chat.send("Go")


async def test_a_turn_that_is_not_over_is_lost_to_a_closed_chat_and_not_to_the_store() -> None:
    store, model = MemoryStore(), ScriptedModel(calls(call("pay", amount=1)), say("Done."))
    async with Chat(model, tools=[pay], store=store, session="s") as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                break
    with pytest.raises(DriverLost):
        await turn
    with pytest.raises(DriverLost):
        _ = [event async for event in turn.events()]
    async with Chat(model, tools=[pay], store=store, session="s") as chat:
        (gate,) = await chat.gates()
        await chat.answer(gate, allow="once")
        assert (await chat.turn(turn.id)).text == "Done."


# Calls and gates ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finish", ["length", "content_filter", "refusal"])
async def test_calls_of_an_answer_that_did_not_end_as_it_meant_to_do_not_run(finish: Finish) -> None:
    model = ScriptedModel(calls(call("look"), finish=finish), say("Oh."))
    async with Chat(model, tools=[look]) as chat:
        (tool_call,) = calls_of(await (await chat.send("Go")))
    assert (tool_call.state, tool_call.used) == ("failed", "")


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "other"])
async def test_calls_of_an_answer_that_ended_well_run(finish: Finish) -> None:
    model = ScriptedModel(calls(call("look"), finish=finish), say("Oh."))
    async with Chat(model, tools=[look]) as chat:
        (tool_call,) = calls_of(await (await chat.send("Go")))
    assert tool_call.state == "completed"


async def test_part_of_a_batch_may_be_answered() -> None:
    model = ScriptedModel(calls(call("pay", amount=1), call("pay", amount=2)), say("Done."))
    async with Chat(model, tools=[pay]) as chat:
        turn = await chat.send("Go")
        states: list[list[str]] = []
        async for event in turn:
            if isinstance(event, TurnSuspended):
                states.append([tool_call.state for tool_call in (await turn.state()).calls.values()])
                await turn.answer((await chat.gates())[0], allow="once")
    assert states == [["asking", "asking"], ["completed", "asking"]]


async def test_a_gate_closes_with_its_turn() -> None:
    async with Chat(ScriptedModel(calls(call("pay", amount=1))), tools=[pay]) as chat:
        turn = await chat.send("Go")
        gates = [event.gate async for event in turn if isinstance(event, GateOpened) and not await turn.cancel()]
        assert await chat.gates() == []
        with pytest.raises(GateClosed):
            await turn.answer(gates[0], allow="once")


@pytest.mark.parametrize("allow", ["always", True, False])
async def test_allow_other_than_once_is_refused_and_the_gate_stays_open(allow: Any) -> None:
    model = ScriptedModel(calls(call("pay", amount=1)), say("Done."))
    async with Chat(model, tools=[pay]) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                with pytest.raises(ConfigError):
                    await turn.answer(gate, allow=allow)
                assert await chat.gates() == [gate]
                await turn.answer(gate, deny="no")
    (result,) = model.requests[-1].messages[-1].parts
    assert isinstance(result, RequestResult)
    assert result.text == "The person did not allow this call and said why: no."


async def test_only_the_hash_of_an_answer_counts_and_what_runs_is_what_the_store_has() -> None:
    async with Chat(ScriptedModel(calls(call("pay", amount=1)), say("Done.")), tools=[pay]) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                await turn.answer(replace(gate, arguments='{"amount":1000}'), allow="once")
        (tool_call,) = calls_of(await turn)
    assert tool_call.output is not None
    assert tool_call.output.text == "paid 1"


async def test_a_plugin_may_answer_and_both_are_in_the_log() -> None:
    class Allows:
        def on_gate(self, ctx: GateContext) -> None:
            ctx.allow()

    async with Chat(ScriptedModel(calls(call("pay", amount=1)), say("Done.")), tools=[pay], plugins=[Allows()]) as chat:
        turn = await chat.send("Go")
        names = [type(event).__name__ async for event in turn]
    assert names.index("GateOpened") < names.index("GateResolved") < names.index("CallStarted")
    assert "TurnSuspended" not in names


async def test_arguments_are_checked_before_anybody_is_asked() -> None:
    async with Chat(ScriptedModel(calls(call("pay", amount="much")), say("Oh.")), tools=[pay]) as chat:
        result = await (await chat.send("Go"))
    assert [tool_call.state for tool_call in calls_of(result)] == ["failed"]


async def test_a_broken_text_of_arguments_is_shown_as_what_it_is() -> None:
    model = ScriptedModel([[CallChunk(0, '{"at":', "look", "x")], *calls()], say("Oh."))
    async with Chat(model, tools=[look]) as chat:
        (tool_call,) = calls_of(await (await chat.send("Go")))
    assert tool_call.state == "failed"
    shown = model.requests[-1].messages[1].parts[0]
    assert isinstance(shown, RequestCall)
    assert shown.arguments == '{"invalid_json":"{\\"at\\":"}'
    assert (tool_call.call.split("-")[1:], tool_call.provider_id) == (["1", "1"], "x")


async def test_a_rewrite_by_a_plugin_is_kept_and_not_told() -> None:
    class Rewrites:
        def on_call_start(self, ctx: CallContext) -> None:
            ctx.arguments = {"at": "there"}

    model = ScriptedModel(calls(call("look", at="here")), say("Oh."))
    async with Chat(model, tools=[look], plugins=[Rewrites()]) as chat:
        (tool_call,) = calls_of(await (await chat.send("Go")))
    assert (tool_call.arguments, tool_call.used) == ('{"at":"here"}', '{"at":"there"}')
    (result,) = model.requests[-1].messages[-1].parts
    assert isinstance(result, RequestResult)
    assert result.text == "saw there"


async def test_the_same_arguments_again_are_no_edit() -> None:
    model = ScriptedModel(calls(call("pay", amount=1)), say("Done."))
    async with Chat(model, tools=[pay]) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, GateOpened):
                await turn.answer(event.gate, allow="once", arguments={"amount": 1})
        (tool_call,) = calls_of(await turn)
    assert not tool_call.is_edited


def test_the_numbers_on_the_pages_are_those_in_the_code() -> None:
    assert OutputLimits() == OutputLimits(parallel=8, output=50_000)
    assert DIGEST_LIMIT == 200


@pytest.mark.parametrize(
    ("first", "second", "is_kept", "is_told"),
    [
        ("inject", "inject", True, True),
        ("keep", "inject", True, True),
        ("inject", "keep", True, False),
        ("discard", "inject", False, False),
    ],
)
async def test_discard_looks_at_the_cancelled_turn_and_the_others_at_the_next(
    first: Any, second: Any, is_kept: bool, is_told: bool
) -> None:
    may_end = asyncio.Event()

    @tool
    async def slow() -> str:
        await may_end.wait()
        return "at last"

    model = ScriptedModel(calls(call("slow")), say("I see."))
    async with Chat(model, tools=[slow]) as chat:
        turn = await chat.send("Go", late=first)
        async for event in turn:
            if isinstance(event, CallStarted):
                await turn.cancel()
        may_end.set()
        await chat.app.tool_tasks.wait_idle()
        await (await chat.send("And?", late=second))
        late = next(part for part in (await chat.messages())[1].parts if isinstance(part, ToolPart)).late
    assert (late is not None) is is_kept
    notices = [
        part for message in model.requests[-1].messages for part in message.parts if isinstance(part, NoticePart)
    ]
    assert bool(notices) is is_told


# The tree ----------------------------------------------------------------------------------------------------------


async def test_a_delete_where_a_turn_writes_is_refused() -> None:
    async with Chat(ScriptedModel(calls(call("pay", amount=1))), tools=[pay]) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                with pytest.raises(CommandRefused):
                    await chat.delete((await chat.messages())[0].id)
                await turn.cancel()


async def test_a_message_or_its_id_will_do_and_an_answer_is_not_edited() -> None:
    async with Chat(ScriptedModel(say("A1"), say("A2"))) as chat:
        await (await chat.send("one"))
        prompt, a1 = await chat.messages()
        for message in (prompt, prompt.id):
            await (await chat.edit(message, "One!"))
        for message in (a1, a1.id):
            with pytest.raises(ConfigError, match="rerun"):
                await chat.edit(message, "A1!")
            await (await chat.rerun(message))
            await (await chat.insert(message, "more"))
            await chat.fork(message)
            assert (await chat.messages())[-1].id == a1.id
        tree = await chat.tree()
        assert len(tree.versions(prompt.id)) == len(tree.versions(a1.id)) == 3
        await chat.delete(a1)
        tree = await chat.tree()
        assert a1.id in tree.deleted
        assert a1.id in tree.messages
        assert a1.id in tree.children[prompt.id]
        assert a1.id not in tree.versions(tree.children[prompt.id][1])


@pytest.mark.parametrize("wrong", [{"tool_history": "some"}, {"late": "never"}, {"max_steps": 0}])
async def test_an_option_of_a_turn_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Chat(ScriptedModel(), options=TurnOptions(**wrong))
    async with Chat(ScriptedModel()) as chat:
        with pytest.raises(ConfigError):
            await chat.send("Go", **wrong)
        assert await chat.messages() == []


async def test_a_hidden_answer_is_read_by_its_own_turn_and_by_no_later_one() -> None:
    class Hides:
        def on_message_append(self, ctx: AppendContext) -> None:
            ctx.prevent_default()

    model = ScriptedModel(calls(call("look")), say("Secret."))
    async with Chat(model, tools=[look], plugins=[Hides()]) as chat:
        await (await chat.send("Go"))
        assert [message.role for message in await chat.messages()] == ["user"]
        tree = await chat.tree()
    assert [message.role for message in model.requests[-1].messages] == ["user", "assistant", "tool"]
    assert [message.role for message in render_history(tree.path(tree.leaf))] == ["user"]


async def test_a_turn_is_shown_earlier_ones_by_its_history_and_itself_in_full() -> None:
    def second(request: Any) -> Any:
        return calls(call("look")) if request.messages[-1].role == "user" else say("Done.")

    model = ScriptedModel([*say("One. "), *calls(call("look"))], second, second, second)
    async with Chat(model, tools=[look]) as chat:
        await (await chat.send("first"))
        before = await chat.messages()
        await (await chat.send("second", tool_history="digest"))
    shown = model.requests[-1].messages
    assert shown[: len(before)] == render_history(before, "digest")
    assert [message.role for message in shown[len(before) :]] == ["user", "assistant", "tool"]


# Streams -----------------------------------------------------------------------------------------------------------


async def test_a_cursor_that_makes_no_sense_is_the_beginning() -> None:
    assert Cursor.parse("yesterday") == Cursor()
    assert Cursor.parse("3:19") == Cursor(3, (19,))
    async with Chat(ScriptedModel(say("Hi."))) as chat:
        turn = await chat.send("Go")
        await turn
        assert [shown async for shown in turn.events(after="yesterday")] == [shown async for shown in turn]


async def test_a_cursor_behind_the_end_of_a_finished_turn_shows_nothing_and_ends() -> None:
    async with Chat(ScriptedModel(say("Hi."))) as chat:
        turn = await chat.send("Go")
        await turn
        reading = turn.events()
        assert [shown async for shown in reading]
        for cursor in (str(reading.cursor), reading.cursor, "9999"):
            assert [shown async for shown in turn.events(after=cursor)] == []


async def test_wherever_a_reader_stops_another_goes_on_and_every_character_is_seen_once() -> None:
    async with Chat(ScriptedModel(say("Every character once."))) as chat:
        turn = await chat.send("Go")
        await turn
        for stop in range(1, len([shown async for shown in turn]) + 1):
            first = turn.events()
            shown = [await anext(first) for _ in range(stop)]
            await first.aclose()
            shown += [item async for item in turn.events(after=str(first.cursor))]
            text = "".join(item.text for item in shown if isinstance(item, TextDelta))
            assert text == "Every character once.", f"stopped after {stop}"
