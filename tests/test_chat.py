"""The front door: a turn is awaited, watched, answered and found again; a person decides at its gates."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from everturn import Chat, ModelError, Turn, TurnError, TurnOptions, TurnStatus, tool
from everturn.app import App
from everturn.chat import EventStream
from everturn.chat.chat_arguments import APP_ARGUMENTS
from everturn.core.chunks import TextChunk
from everturn.core.events import AnswerStarted, CallStarted, GateResolved, TurnSuspended
from everturn.core.hooks import GateContext, StepContext
from everturn.core.options import Prompt
from everturn.core.parts import FilePart, TextPart
from everturn.core.phases import TRANSITIONS
from everturn.core.ports import Tool
from everturn.core.requests import RequestResult
from everturn.core.rules.policy import Rule
from everturn.errors import BadArguments, ConfigError, DriverLost, GateClosed, HashMismatch, UnknownGate, UnknownTurn
from everturn.events import GateOpened, Phase, StepRestarted, TextDelta
from everturn.running.drive_setup import TurnSettings
from everturn.testing import MemoryStore, ScriptedFailure, ScriptedHang, ScriptedModel, call, calls, say
from everturn.wire import dump_log
from tests.helpers.waiting import wait_until

SOON = 2  # seconds after which something that should have happened is taken to hang


def quiet(name: str, ran: list[str] | None = None, **how: Any) -> Tool:
    """A tool that takes nothing and says nothing; `ran` tells whether it ran."""

    async def function() -> str:
        if ran is not None:
            ran.append(name)
        return "ran"

    return tool(name=name, **how)(function)


async def parked(turn: Turn) -> None:
    async for event in turn:
        if isinstance(event, TurnSuspended):
            return


# A turn -------------------------------------------------------------------------------------------------------------


async def test_a_turn_may_be_awaited_as_often_as_one_likes() -> None:
    async with Chat(ScriptedModel(say("Hello."))) as chat:
        turn = await chat.send("hi")
        first, second = await turn, await turn
    assert first == second
    assert (first.text, first.phase) == ("Hello.", Phase.COMPLETED)
    assert [message.role for message in first.messages] == ["user", "assistant"]


async def test_a_turn_may_be_watched_and_then_awaited() -> None:
    async with Chat(ScriptedModel(say("Hello you."))) as chat:
        turn = await chat.send("hi")
        live = "".join([event.text async for event in turn if isinstance(event, TextDelta)])
        assert live == (await turn).text == "Hello you."


async def test_several_may_watch_and_wait_at_once() -> None:
    async with Chat(ScriptedModel(say("Hello you."))) as chat:
        turn = await chat.send("hi")

        async def watch() -> str:
            return "".join([event.text async for event in turn if isinstance(event, TextDelta)])

        async def wait() -> str:
            return (await turn).text

        assert await asyncio.gather(watch(), wait(), watch(), wait()) == ["Hello you."] * 4


async def test_the_text_of_a_turn_is_what_was_said_in_the_end() -> None:
    model = ScriptedModel([say("Let me look."), calls(call("look"))], say("It is empty."))
    async with Chat(model, tools=[quiet("look")]) as chat:
        result = await (await chat.send("hi"))
    assert result.text == "It is empty."
    assert result.message is not None
    assert [type(part).__name__ for part in result.message.parts] == [
        "TextPart", "ToolPart", "StepPart", "TextPart", "StepPart",
    ]  # fmt: skip


async def test_a_turn_is_found_again_by_its_id_and_an_unknown_one_is_not() -> None:
    async with Chat(ScriptedModel(say("Hello."))) as chat:
        turn = await chat.send("hi")
        assert (await chat.turn(turn.id)).text == "Hello."
        with pytest.raises(UnknownTurn):
            await chat.turn("nothing").cancel()


@pytest.mark.parametrize("kind", ["server", "auth", "anything"])
async def test_a_failed_turn_raises_what_it_failed_of(kind: str) -> None:
    failing: Any = [say("so far"), ScriptedFailure(ModelError("no luck", kind=kind))]
    async with Chat(ScriptedModel(failing)) as chat:
        turn = await chat.send("hi")
        for _ in range(2):
            with pytest.raises(TurnError, match="no luck") as caught:
                await turn
            assert caught.value.kind == kind
        assert [message.text for message in await chat.messages()] == ["hi", "so far"]
        assert (await turn.state()).phase is Phase.ERROR


async def test_a_message_may_bring_files() -> None:
    model = ScriptedModel(say("A cat."))
    async with Chat(model) as chat:
        blob = await chat.app.store.put_blob(b"...")
        parts = (TextPart("what is this?"), FilePart(blob, "image/png", 3, "cat.png"))
        await (await chat.send(parts))
        assert (await chat.messages())[0].parts == parts
    assert model.requests[0].messages[0].parts == parts


async def test_text_that_is_no_text_is_mended_on_arrival() -> None:
    model = ScriptedModel(say("Hello."))
    async with Chat(model) as chat:
        await (await chat.send("a\ud800b"))
        assert (await chat.messages())[0].text == "a?b"
        dump_log(await chat.app.store.events(chat.session))


async def test_a_model_nobody_knows_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="anthropic, "):
        Chat("acme/large")


async def test_another_model_may_answer_one_turn() -> None:
    first, other = (
        ScriptedModel(say("one"), name="first"),
        ScriptedModel(say("-"), say("two"), say("three"), name="other"),
    )
    async with Chat(first) as chat:
        await (await chat.send("hi"))
        turn = await chat.send("again", model=other)
        assert (await turn).text == "two"
        answer = (await chat.messages())[-1]
        assert (answer.by, (await turn.state()).options.model) == ("other", "other")
        with pytest.raises(ConfigError, match="is not a model name"):
            await chat.send("and?", model="nobody")


async def test_chats_of_one_app_may_have_models_of_their_own() -> None:
    app = App(ScriptedModel(say("a"), name="a"))
    async with Chat(ScriptedModel(say("b"), name="b"), app=app) as chat:
        assert (await (await chat.send("hi"))).text == "b"


async def test_a_file_can_be_attached_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(b"\x89PNG")
    model = ScriptedModel(say("A cat."))
    async with Chat(model) as chat:
        file = await chat.attach(tmp_path / "cat.png")
        assert (file.media_type, file.size, file.name) == ("image/png", 4, "cat.png")
        await (await chat.send([TextPart("what is this?"), file]))
        assert (await chat.attach(b"fn main() {}", name="main.toml")).media_type == "text/plain"
        with pytest.raises(ConfigError, match="empty"):
            await chat.attach(b"", name="cat.png")
    assert model.requests[0].files == {file.blob: b"\x89PNG"}


# Snapshots ----------------------------------------------------------------------------------------------------------


async def test_a_subscriber_hears_of_every_phase_in_order_and_a_failing_one_does_no_harm() -> None:
    snapshots: list[TurnStatus] = []

    def fail(snapshot: TurnStatus) -> None:
        raise RuntimeError("I do not want to know")

    model = ScriptedModel(calls(call("look"), call("mail")), say("Done."))
    async with Chat(model, tools=[quiet("look"), quiet("mail", approval="always")]) as chat:
        chat.subscribe(fail)
        stop = chat.subscribe(snapshots.append)
        turn = await chat.send("hi")
        await parked(turn)
        await turn.answer(snapshots[-1].gates[0], allow="once")
        await turn
        stop()
        stop()
        await (await chat.rerun((await chat.messages())[0].id)).cancel()
    assert [snapshot.phase.value for snapshot in snapshots] == [
        "preparing", "streaming", "tool_call", "waiting", "tool_call", "streaming", "finalizing", "completed",
    ]  # fmt: skip
    ways = {(before, after) for before, row in TRANSITIONS.items() for after in row.values()}
    phases = [Phase.IDLE, *(snapshot.phase for snapshot in snapshots)]
    assert set(itertools.pairwise(phases)) <= ways
    assert [len(snapshot.open_calls) for snapshot in snapshots] == [0, 0, 2, 1, 1, 0, 0, 0]
    assert {snapshot.turn for snapshot in snapshots} == {turn.id}


async def test_a_subscriber_hears_only_of_its_own_session() -> None:
    snapshots: list[TurnStatus] = []
    model = ScriptedModel(say("Hello."))
    async with Chat(model) as chat:
        other = Chat(model, app=chat.app)
        other.subscribe(snapshots.append)
        await (await chat.send("hi"))
    assert snapshots == []


# Another process ------------------------------------------------------------------------------------------------------


async def test_what_one_process_leaves_the_next_goes_on_with_by_itself() -> None:
    store = MemoryStore()
    hanging: Any = [say("I was about to"), [ScriptedHang()]]
    chat = Chat(ScriptedModel(hanging), store=store, session="s")
    turn, queued = await chat.send("hi"), await chat.send("and?")
    async for event in turn:
        if isinstance(event, TextDelta):
            break
    await chat.aclose()
    assert (await turn.state()).phase is Phase.STREAMING
    async with Chat(ScriptedModel(say("Hello."), say("And you.")), store=store, session="s") as other:
        assert (await other.turn(turn.id)).text == "Hello."
        assert (await other.turn(queued.id)).text == "And you."


async def test_closing_does_not_wait_for_a_tool_that_ignores_it() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    @tool
    async def dig() -> None:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                pass  # it does not care

    chat = Chat(ScriptedModel(calls(call("dig"))), tools=[dig])
    await chat.send("hi")
    await started.wait()
    closing = asyncio.ensure_future(chat.aclose())
    try:
        async with asyncio.timeout(SOON):
            await asyncio.shield(closing)
    finally:
        release.set()
        await closing


# Gates ----------------------------------------------------------------------------------------------------------------


async def test_a_call_that_asks_parks_its_turn_and_nothing_is_held_in_memory() -> None:
    ran: list[str] = []
    store, tools = MemoryStore(), [quiet("mail", ran, approval="always")]
    model = ScriptedModel(calls(call("mail")), say("Sent."))
    before = asyncio.all_tasks()
    chat = Chat(model, tools=tools, store=store, session="s")
    turn = await chat.send("please")
    await parked(turn)
    await wait_until(lambda: asyncio.all_tasks() == before)
    assert ran == []
    await chat.aclose()

    async with Chat(model, tools=tools, store=store, session="s") as other:
        [gate] = await other.gates()
        await other.answer(gate, allow="once")
        assert (await other.turn(turn.id)).text == "Sent."
        events = [entry.event for entry in await store.events("s")]
    assert ran == ["mail"]
    opened = [event.gate.hash for event in events if isinstance(event, GateOpened)]
    assert opened == [event.hash for event in events if isinstance(event, CallStarted)]


async def test_a_denied_call_does_not_run_and_the_model_reads_why() -> None:
    ran: list[str] = []
    model = ScriptedModel(calls(call("mail")), say("Then not."))
    async with Chat(model, tools=[quiet("mail", ran, approval="always")]) as chat:
        turn = await chat.send("please")
        await parked(turn)
        await turn.answer((await chat.gates())[0], deny="not before noon")
        await turn
    [result] = [part for part in model.requests[1].messages[-1].parts if isinstance(part, RequestResult)]
    assert (result.is_error, ran) == (True, [])
    assert result.text == "The person did not allow this call and said why: not before noon."


@pytest.mark.parametrize("to", ["bob", "ada"])
async def test_a_person_may_edit_what_runs_and_the_model_is_told(to: str) -> None:
    sent: list[str] = []

    @tool(approval="always")
    async def mail(to: str) -> str:
        sent.append(to)
        return "sent"

    model = ScriptedModel(calls(call("mail", to="ada")), say("Sent."))
    async with Chat(model, tools=[mail]) as chat:
        turn = await chat.send("please")
        await parked(turn)
        await turn.answer((await chat.gates())[0], allow="once", arguments={"to": to})
        await turn
    [result] = [part for part in model.requests[1].messages[-1].parts if isinstance(part, RequestResult)]
    # Edited to what it was, it was not changed: there is nothing to tell.
    expected = {"bob": '[The person changed the arguments to {"to":"bob"}]\nsent', "ada": "sent"}
    assert (sent, result.text) == ([to], expected[to])


async def test_part_of_a_batch_may_be_answered_and_the_rest_later() -> None:
    ran: list[str] = []
    tools = [quiet(name, ran, approval="always") for name in ("one", "two", "three")]
    async with Chat(ScriptedModel(calls(call("one"), call("two"), call("three")), say("Done.")), tools=tools) as chat:
        turn, order = await chat.send("please"), ["two", "three", "one"]
        async for event in turn:
            if isinstance(event, TurnSuspended):
                assert ran == order[: len(ran)]
                [gate] = [gate for gate in await chat.gates() if gate.tool == order[len(ran)]]
                await turn.answer(gate, allow="once")
    assert ran == order


@pytest.mark.parametrize(("resolution", "state"), [("allow", "completed"), ("deny", "denied")])
async def test_a_plugin_may_answer_a_gate_before_a_person_is_asked(resolution: str, state: str) -> None:
    class Guard:
        def on_gate(self, ctx: GateContext) -> None:
            getattr(ctx, resolution)()

    model = ScriptedModel(calls(call("mail")), say("Done."))
    async with Chat(model, tools=[quiet("mail", approval="always")], plugins=[Guard()]) as chat:
        turn = await chat.send("please")
        await turn
        [called] = (await turn.state()).calls.values()
        events = [entry.event for entry in await chat.app.store.events(chat.session)]
    assert (called.state, called.resolution and called.resolution.by) == (state, "plugin:Guard")
    assert not any(isinstance(event, TurnSuspended) for event in events)


async def test_a_plugin_that_fails_at_a_gate_leaves_it_to_the_person() -> None:
    class Shaky:
        def on_gate(self, ctx: GateContext) -> None:
            ctx.allow()
            raise RuntimeError("on second thoughts")

    async with Chat(
        ScriptedModel(calls(call("mail"))), tools=[quiet("mail", approval="always")], plugins=[Shaky()]
    ) as chat:
        await parked(await chat.send("please"))
        assert [gate.tool for gate in await chat.gates()] == ["mail"]


# What a gate refuses --------------------------------------------------------------------------------------------------


async def at_a_gate(ran: list[str]) -> tuple[Chat, Turn, Any]:
    @tool(approval="always")
    async def mail(to: str) -> str:
        ran.append(to)
        return "sent"

    chat = Chat(ScriptedModel(calls(call("mail", to="ada")), say("Done.")), tools=[mail])
    turn = await chat.send("please")
    await parked(turn)
    [gate] = await chat.gates()
    return chat, turn, gate


async def test_the_same_answer_again_is_taken_for_the_first() -> None:
    ran: list[str] = []
    chat, turn, gate = await at_a_gate(ran)
    await asyncio.gather(*(turn.answer(gate, allow="once") for _ in range(3)))
    await turn
    await turn.answer(gate, allow="once")
    answered = [e for e in await chat.app.store.events(chat.session) if isinstance(e.event, GateResolved)]
    assert (len(answered), ran, await chat.gates()) == (1, ["ada"], [])
    await chat.aclose()


async def test_of_two_answers_that_differ_the_first_counts() -> None:
    ran: list[str] = []
    chat, turn, gate = await at_a_gate(ran)
    await turn.answer(gate, deny=True)
    others: list[Any] = [{"allow": "once"}, {"deny": "because"}, {"allow": "once", "arguments": {"to": "eve"}}]
    for other in others:
        with pytest.raises(GateClosed):
            await turn.answer(gate, **other)
    await turn
    with pytest.raises(GateClosed):
        await turn.answer(gate, allow="once")
    assert ran == []
    await chat.aclose()


async def test_an_answer_to_something_else_than_was_shown_is_refused_and_the_gate_stays_open() -> None:
    ran: list[str] = []
    chat, turn, gate = await at_a_gate(ran)
    with pytest.raises(HashMismatch):
        await turn.answer(replace(gate, hash="0" * 64), allow="once")
    with pytest.raises(UnknownGate):
        await turn.answer(replace(gate, id="gate_of_somebody_else"), allow="once")
    for wrong in ({"to": 7}, {}, {"to": "ada", "bcc": "eve"}):
        with pytest.raises(BadArguments):
            await turn.answer(gate, allow="once", arguments=wrong)
    nothing, both, neither = {}, {"allow": "once", "deny": True}, {"deny": True, "arguments": {"to": "eve"}}
    unclear_ones: list[dict[str, Any]] = [nothing, both, neither, {"deny": False}]
    for unclear in unclear_ones:
        with pytest.raises(ConfigError):
            await turn.answer(gate, **unclear)
    assert (ran, await chat.gates()) == ([], [gate])
    await chat.answer(gate, allow="once")
    await turn
    assert ran == ["ada"]
    await chat.aclose()


async def test_a_gate_of_one_session_cannot_be_answered_from_another() -> None:
    ran: list[str] = []
    chat, _, gate = await at_a_gate(ran)
    other = Chat(ScriptedModel(), app=chat.app)
    await other.send("hi")
    with pytest.raises(UnknownGate):
        await other.answer(gate, allow="once")
    await chat.aclose()
    assert ran == []


# What is refused before anything is admitted --------------------------------------------------------------------------


async def test_parameters_that_cannot_be_kept_are_refused_on_arrival() -> None:
    async with Chat(ScriptedModel()) as chat:
        with pytest.raises(ConfigError, match="plain JSON"):
            await chat.send("hi", params={"x": object()})
        assert await chat.messages() == []


async def test_a_turn_without_a_step_is_refused() -> None:
    async with Chat(ScriptedModel()) as chat:
        with pytest.raises(ConfigError, match="at least one step"):
            await chat.send("hi", max_steps=0)


def test_a_function_that_no_model_can_call_is_no_tool_and_the_error_says_why() -> None:
    with pytest.raises(ConfigError, match="tool 'print': parameter 'args' must be usable as a keyword argument"):
        Chat(ScriptedModel(), tools=[print])


def test_a_plugin_class_or_a_hook_that_does_not_exist_is_refused() -> None:
    class Misspelt:
        def on_turn_begin(self) -> None: ...

    with pytest.raises(ConfigError, match="Misspelt\\(\\)"):
        Chat(ScriptedModel(), plugins=[Misspelt])
    with pytest.raises(ConfigError, match="no hook 'on_turn_begin'"):
        Chat(ScriptedModel(), plugins=[Misspelt()])


def test_what_an_app_brings_cannot_be_given_again() -> None:
    model = ScriptedModel()
    with pytest.raises(ConfigError, match="not both"):
        Chat(model, system="be brief", settings=TurnSettings())


@tool(read_only=True)
async def glance() -> str:
    """Glance."""
    return "seen"


class Idle:
    def on_turn_start(self, ctx: Any) -> None:
        pass


ADVICE: dict[str, tuple[Any, Any, Any]] = {
    # what is refused -> what was given, and the two places that the advice names: options of the chat, and the runtime
    "system": ("be brief", {"system": "be brief"}, {"settings": TurnSettings(prompt=Prompt(agent="be brief"))}),
    "tools": ([glance], None, {"tools": [glance]}),
    "plugins": ([Idle()], None, {"plugins": [Idle()]}),
    "store": (MemoryStore(), None, {"store": MemoryStore()}),
    "settings": (TurnSettings(), None, {"settings": TurnSettings()}),
    "rules": ([Rule("x", "deny")], {"rules": (Rule("x", "deny", layer="session"),)}, {"rules": [Rule("x", "deny")]}),
}


@pytest.mark.parametrize("name", ADVICE)
async def test_what_an_app_brings_is_refused_with_advice_that_works(name: str) -> None:
    value, options, elsewhere = ADVICE[name]
    model = ScriptedModel([say("Hi.")])
    with pytest.raises(ConfigError, match=rf"{name}: .*App\({next(iter(elsewhere))}=") as raised:
        Chat(model, app=App(model), **{name: value})
    assert (options is not None) == ("options=TurnOptions(" in str(raised.value))

    for more, app in ((options, App(model)), (None, App(model, **elsewhere))):
        async with Chat(model, app=app, options=TurnOptions(**(more or {}))) as chat:
            assert (await (await chat.send("Hello"))).text == "Hi."
    if name == "system":
        assert [request.system.startswith("be brief") for request in model.requests] == [True, True]


def test_every_keyword_that_an_app_has_is_refused_with_advice() -> None:
    assert set(APP_ARGUMENTS) == set(ADVICE)


async def test_a_chat_whose_session_another_one_took_over_says_so_and_does_not_hang() -> None:
    store = MemoryStore()
    hanging: Any = [say("one"), [ScriptedHang()]]
    first = Chat(ScriptedModel(hanging), store=store, session="s")
    turn = await first.send("hi")
    reader = turn.events()
    async for event in reader:
        if isinstance(event, TextDelta):
            break
    async with Chat(ScriptedModel(hanging), store=store, session="s") as second:  # it drives what it finds unfinished
        async for event in second.turn(turn.id):
            if isinstance(event, StepRestarted):
                break
        await turn.cancel()
        with pytest.raises(DriverLost, match="no longer driven here"):
            await asyncio.wait_for(the_rest_of(reader), SOON)
    await first.aclose()


@pytest.mark.parametrize("allow", [True, False, "no", "always", ""])
async def test_whatever_is_not_exactly_once_allows_nothing(allow: Any) -> None:
    """A checkbox that says False must not allow."""
    ran: list[int] = []

    @tool(approval="always")
    def pay(amount: int) -> None:
        ran.append(amount)

    async with Chat(ScriptedModel(calls(call("pay", amount=3)), say("Ok.")), tools=[pay]) as chat:
        turn = await chat.send("pay")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                [gate] = await chat.gates()
                with pytest.raises(ConfigError, match="once"):
                    await turn.answer(gate, allow=allow)
                await turn.answer(gate, deny=True)
    assert ran == []


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"approval": "Ask"}, "auto, ask, always, deny"),
        ({"read_only": "reads"}, "True or False"),
        ({"timeout": 0}, "seconds"),
        ({"timeout": "5"}, "seconds"),
    ],
)
def test_a_slip_in_the_options_of_a_tool_is_refused(how: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        tool(name="slip", **how)(lambda: None)


@pytest.mark.parametrize("message", ["", [], 5, None, {"role": "user", "content": "x"}, ["a"], [TextPart("")]])
async def test_what_is_no_message_is_refused(message: Any) -> None:
    async with Chat(ScriptedModel()) as chat:
        with pytest.raises(ConfigError, match="message"):
            await chat.send(message)


@pytest.mark.parametrize(("option", "says"), [({"tool_history": "short"}, "digest"), ({"late": "drop"}, "discard")])
async def test_a_policy_that_does_not_exist_is_refused_when_it_is_given(option: Any, says: str) -> None:
    async with Chat(ScriptedModel()) as chat:
        with pytest.raises(ConfigError, match=says):
            await chat.send("hi", **option)
    with pytest.raises(ConfigError, match=says):
        Chat(ScriptedModel(), options=TurnOptions(**option))


@pytest.mark.parametrize("model", [None, object(), ScriptedModel])
def test_what_is_no_model_is_refused(model: Any) -> None:
    with pytest.raises(ConfigError, match=r"stream|an agent"):
        Chat(model)


async def test_a_model_that_yields_chunks_and_not_batches_is_reported() -> None:
    class Single:
        name = "single"

        async def stream(self, request: Any) -> Any:
            yield TextChunk("hi")

    wrong: Any = Single()
    with pytest.raises(TurnError, match="batches"):
        await (await Chat(wrong).send("hi"))


async def test_a_turn_of_a_closed_chat_does_not_keep_anybody_waiting() -> None:
    hanging: Any = [say("one"), [ScriptedHang()]]
    chat = Chat(ScriptedModel(hanging))
    turn = await chat.send("hi")
    await chat.aclose()
    with pytest.raises(DriverLost, match="same store"):
        await asyncio.wait_for(the_rest_of(turn.events()), SOON)


async def test_an_answer_cannot_be_edited_as_if_a_person_had_said_it() -> None:
    async with Chat(ScriptedModel(say("Hi."), say("Hello."))) as chat:
        await (await chat.send("hey"))
        [question, answer] = await chat.messages()
        with pytest.raises(ConfigError, match="rerun"):
            await chat.edit(answer, "Ho.")
        await (await chat.edit(question, "hello"))  # a message is as good as its id


async def test_a_plugins_no_is_reported_as_the_plugins() -> None:
    class Budget:
        name = "budget"

        def on_gate(self, ctx: GateContext) -> None:
            ctx.deny("too dear")

    @tool(approval="always")
    def pay() -> None: ...

    model = ScriptedModel(calls(call("pay")), say("Then not."))
    async with Chat(model, tools=[pay], plugins=[Budget()]) as chat:
        await (await chat.send("pay"))
    [result] = [part for part in model.requests[1].messages[-1].parts if isinstance(part, RequestResult)]
    assert result.text == "The plugin budget did not allow this call and said why: too dear."


async def the_rest_of(reader: EventStream) -> None:
    async for _ in reader:
        pass


async def test_a_message_sent_while_an_answer_is_written_again_waits_for_it() -> None:
    written = asyncio.Event()

    class Slow(MemoryStore):
        async def append(self, session: str, after: int, events: Any, epoch: int | None = None) -> int:
            if any(isinstance(event, AnswerStarted) for event in events) and after > 5:
                written.set()
                await asyncio.sleep(0.05)  # as a database may take
            return await super().append(session, after, events, epoch)

    async with Chat(ScriptedModel(say("one"), say("two"), say("three")), store=Slow()) as chat:
        first = (await (await chat.send("hi"))).message
        assert first is not None
        again = await chat.rerun(first)
        await written.wait()
        second = await chat.send("and?")
        await again
        await second
        assert [message.text for message in await chat.messages()] == ["hi", "one", "and?", "two"]


async def test_a_finished_hook_is_written_before_a_plugin_takes_its_time() -> None:
    class Slow:
        name = "slow"

        async def on_after_request(self, ctx: StepContext) -> None:
            if ctx.step == 1:
                await ctx.append_and_request("and?")

        async def on_message_append(self, ctx: Any) -> None:
            log.append([type(entry.event).__name__ for entry in await chat.app.store.events(chat.session)])

    log: list[list[str]] = []
    chat = Chat(ScriptedModel(say("one"), say("two")), plugins=[Slow()])
    async with chat:
        await (await chat.send("hi"))
    assert log[-1][-1] == "HookFinished"
