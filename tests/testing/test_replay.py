"""A recorded session, played again: the same is nothing, and what has changed is told."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from everturn import App, Chat, ModelError, Output, Turn, TurnError, TurnOptions, tool
from everturn.core.events import (
    AnswerStarted,
    CallFinished,
    Event,
    LateResultReceived,
    MessageAdded,
    RequestRetried,
    StepFinished,
    SubagentStarted,
    TurnFailed,
    TurnStarted,
    TurnSuspended,
)
from everturn.core.gates import Gate
from everturn.core.hooks import GateContext
from everturn.core.options import ClientTool
from everturn.core.parts import FilePart, Opaque, ReasoningPart, StreamedPart, TextPart, ToolPart
from everturn.core.ports import Tool
from everturn.core.requests import ModelRequest, RequestResult
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError
from everturn.events import GateOpened, GateResolved
from everturn.models.retry import FallbackModel, RetryModel, RetryPolicy
from everturn.replay import Recording, differences, normalize_recording, replay, replay_model, rerun_with_tools
from everturn.replay.model import make_chunks
from everturn.replay.play import replay_offline
from everturn.stores.export import export_session
from everturn.testing import CountingIds, FakeClock, ScriptedFailure, ScriptedModel, call, calls, say, think
from everturn.tools.files import virtual_files
from everturn.turn.stream import StepAssembly

Reply = Callable[[Gate], dict[str, Any]]
paid: list[str] = []


def once(gate: Gate) -> dict[str, Any]:
    return {"allow": "once"}


@tool(idempotent=True, approval="always", subjects={"to": "text"})
async def pay(to: str) -> str:
    """Pay somebody."""
    paid.append(to)
    return f"paid {to}"


@tool(read_only=True)
async def look(place: str) -> str:
    """Look somewhere."""
    return f"keys in {place}"


@tool(read_only=True, approval="ask")
async def fetch(place: str) -> str:
    """Fetch something."""
    return f"fetched from {place}"


TOOLS = [pay, look, fetch]
SCRIPT = (
    [
        think("Hm."),
        say("I look."),
        calls(call("look", place="hall"), call("pay", to="ada"), call("pay", to="bob")),
    ],
    say("Done."),
    say("Nothing more."),
)


def ada_only(gate: Gate) -> dict[str, Any]:
    return {"allow": "once"} if "ada" in gate.arguments else {"deny": "not him"}


async def follow(turn: Turn, reply: Reply) -> None:
    async for event in turn:
        if isinstance(event, GateOpened) and (answer := reply(event.gate)):
            await turn.answer(event.gate, **answer)


async def test_retries_and_fallbacks_are_replayed_with_the_names_of_who_wrote() -> None:
    failed = ScriptedFailure(ModelError("busy", kind="rate", retryable=True))
    first = RetryModel(ScriptedModel([failed], [failed], name="first"), RetryPolicy(attempts=2, initial_delay=0.0))
    model = FallbackModel(first, ScriptedModel(say("Hello."), say("Again."), name="second"))
    async with Chat(model) as chat:
        for text in ("Go", "And now?"):
            await (await chat.send(text))
        events = [entry.event for entry in await chat.app.store.events(chat.session)]
    recording = Recording(tuple(events), chat.session)
    assert sum(isinstance(event, RequestRetried) for event in events) == 4
    assert differences(recording, await replay_offline(recording)) == []


async def record(
    *script: Any,
    says: Iterable[str] = ("Go", "And now?"),
    tools: Iterable[Any] = TOOLS,
    reply: Reply = ada_only,
    prefix: str = "",
    **more: Any,
) -> Recording:
    """Say something to a script, and record what happens."""
    options = more.pop("options", None)
    app = App(ScriptedModel(*script), tools=list(tools), ids=CountingIds(prefix), **more)
    chat = Chat("", app=app, options=options)
    async with chat:
        for text in says:
            await follow(await chat.send(text), reply)
        return await Recording.from_log(chat.app.store, chat.session)


def other(name: str, came: str | Output, like: Any = look) -> Tool:
    """A tool that is the same to everybody who reads what it is, and comes to something else."""

    class Other:
        spec = like.spec

        def validate(self, arguments: dict[str, Any]) -> None:
            """Anything will do."""

        async def run(self, arguments: dict[str, Any], context: Any) -> Output:
            return came if isinstance(came, Output) else Output(came)

    assert like.spec.name == name
    return Other()


# The same --------------------------------------------------------------------------------------------------------------


async def test_the_same_tools_make_no_difference() -> None:
    recording = await record(*SCRIPT)
    paid.clear()
    assert await replay(recording, tools=TOOLS) == []
    assert paid == ["ada"]  # as it was allowed then


async def test_what_happens_again_is_byte_equal_but_for_times() -> None:
    recording = await record(*SCRIPT)
    again = await rerun_with_tools(recording, tools=TOOLS)
    assert normalize_recording(again) == normalize_recording(recording)
    assert [type(event) for event in again.events] == [type(event) for event in recording.events]
    assert [event for event in again.events if isinstance(event, GateOpened)] == [
        replace(event, at=again.events[at].at)
        for at, event in enumerate(recording.events)
        if isinstance(event, GateOpened)
    ]  # names and hashes are those of then


async def test_two_recordings_of_the_same_are_byte_equal_whatever_things_are_called() -> None:
    first, second = await record(*SCRIPT), await record(*SCRIPT, prefix="x")
    assert first.dump() != second.dump()
    assert normalize_recording(first) == normalize_recording(second)
    assert differences(first, second) == []


async def test_the_order_of_what_happens_at_once_does_not_count() -> None:
    recording = await record(*SCRIPT)
    events = list(recording.events)
    settled = [at for at, event in enumerate(events) if isinstance(event, CallFinished)]
    first, last = settled[0], settled[-1]
    assert events[first] != events[last]
    moved = Recording((*events[:first], *events[first + 1 : last + 1], events[first], *events[last + 1 :]))
    assert differences(recording, moved) == []
    assert normalize_recording(recording) == normalize_recording(moved)


async def test_a_turn_of_many_calls_is_not_mistaken_for_its_first() -> None:
    lookups = [call("look", place=str(number)) for number in range(12)]
    recording = await record(calls(*lookups), say("Done."), says=["Go"])
    assert await replay(recording, tools=TOOLS) == []
    assert b"turn 1-1-12" in normalize_recording(recording)


async def test_answers_that_edit_arguments_or_give_results_are_given_again() -> None:
    def reply(gate: Gate) -> dict[str, Any]:
        return {"result": "done by hand"} if "bob" in gate.arguments else {"allow": "once", "arguments": {"to": "eve"}}

    recording = await record(*SCRIPT, reply=reply)
    paid.clear()
    assert await replay(recording, tools=TOOLS) == []
    assert paid == ["eve"]


async def test_what_was_allowed_from_then_on_is_again() -> None:
    script = (calls(call("fetch", place="a")), calls(call("fetch", place="b")), say("Done."))
    recording = await record(*script, says=["Go"], reply=lambda gate: {"allow": "always"})
    assert sum(isinstance(event, GateOpened) for event in recording.events) == 1
    assert await replay(recording, tools=TOOLS) == []


async def test_what_was_revoked_is_asked_again() -> None:
    script = (calls(call("fetch", place="a")), say("Done."))
    async with Chat(ScriptedModel(*script, *script), tools=TOOLS) as chat:
        await follow(await chat.send("Go"), lambda gate: {"allow": "always"})
        [grant] = await chat.grants()
        await chat.revoke(grant)
        await follow(await chat.send("Again"), once)
        recording = await Recording.from_log(chat.app.store, chat.session)
    assert sum(isinstance(event, GateOpened) for event in recording.events) == 2
    assert await replay(recording, tools=TOOLS) == []


async def test_every_model_of_a_session_has_its_own_name() -> None:
    async with Chat(ScriptedModel(say("One."), name="one")) as chat:
        await (await chat.send("Go"))
        await (await chat.send("On", model=ScriptedModel(say("Never."), say("Two."), name="two")))
        recording = await Recording.from_log(chat.app.store, chat.session)
    assert [event.message.by for event in recording.events if isinstance(event, AnswerStarted)] == ["one", "two"]
    assert await replay(recording) == []


async def test_a_model_that_failed_fails_again() -> None:
    failing = [say("I was "), ScriptedFailure(ModelError("the line is cut", kind="network"))]
    recording = await record(failing, says=["Go"])
    assert isinstance(recording.events[-1], TurnFailed)
    assert await replay(recording, tools=TOOLS) == []


async def test_a_turn_that_ran_out_of_steps_does_again() -> None:
    script = (calls(call("look", place="a")), say("That is all."))
    recording = await record(*script, says=["Go"], options=TurnOptions(max_steps=1))
    assert await replay(recording, tools=TOOLS) == []


async def test_what_refers_to_an_earlier_result_still_does() -> None:
    def refer(request: ModelRequest) -> Any:
        [result] = request.messages[-1].parts
        assert isinstance(result, RequestResult)
        return calls(call("look", place=f"$ref{{{result.call}}}"))

    recording = await record(calls(call("look", place="hall")), refer, say("Done."), says=["Go"])
    assert any(
        isinstance(event, CallFinished) and event.output.text == "keys in keys in hall" for event in recording.events
    )
    assert await replay(recording, tools=TOOLS) == []


async def test_branches_are_gone_through_again() -> None:
    model = ScriptedModel(say("One."), say("Two."))
    async with Chat(model) as chat:
        await (await chat.send("Go"))
        first = (await chat.messages())[-1]
        await (await chat.send("On"))
        await (await chat.rerun(first))
        await chat.fork(first)
        await chat.delete((await chat.tree()).get(first.id))
        await (await chat.edit((await chat.messages())[0], "Go there"))
        recording = await Recording.from_log(chat.app.store, chat.session)
    assert await replay(recording) == []


async def test_what_was_said_while_a_turn_ran_joins_it_again_behind_the_same_step() -> None:
    script = calls(call("look", place="a")), calls(call("pay", to="ada")), say("Both."), say("Paid.")
    app = App(ScriptedModel(*script), tools=list(TOOLS), ids=CountingIds())
    async with Chat("", app=app) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                for text in ("and thank her", "soon"):
                    await chat.send(text, steer=True)
                await turn.answer((await chat.gates())[0], allow="once")
        recording = await Recording.from_log(chat.app.store, chat.session)
    joined = [at for at, event in enumerate(recording.events) if isinstance(event, MessageAdded)]
    assert len(joined) == 2
    assert await replay(recording, tools=TOOLS) == []
    again = await rerun_with_tools(recording, tools=TOOLS)
    assert [type(event) for event in again.events] == [type(event) for event in recording.events]


async def test_files_of_a_session_and_their_reverts_are_the_same_trees() -> None:
    model = ScriptedModel(calls(call("write_file", path="a.md", content="one\n")), say("Written."))
    async with Chat(model, tools=[virtual_files().enabled()]) as chat:
        result = await (await chat.send("Write"))
        assert result.message is not None
        [files] = [part for part in result.message.parts if type(part).__name__ == "FilesPart"]
        await chat.unrevert(await chat.revert(files))  # pyright: ignore[reportArgumentType]
        recording = await Recording.from_log(chat.app.store, chat.session)
    assert await replay(recording, tools=[virtual_files().enabled()]) == []


# What has changed ------------------------------------------------------------------------------------------------------


async def test_another_result_is_reported_and_so_is_that_the_model_would_read_it() -> None:
    recording = await record(*SCRIPT)
    report = await replay(recording, tools=[pay, fetch, other("look", "no keys in hall")])
    assert report[0] == "turn 1-1-1 (look), CallFinished: output.text was 'keys in hall', and is 'no keys in hall'"
    assert report[-1].startswith(
        "turn 1: StepFinished was recorded, and now it is StepInterrupted (this request differs"
    )
    assert "look returned 'no keys in hall'; recorded: look returned 'keys in hall'" in report[-1]
    assert not any(line.startswith("turn 2") for line in report)  # it follows from that


async def test_another_description_of_a_tool_is_told_unless_it_does_not_count() -> None:
    @tool(read_only=True, name="look")
    async def look_here(place: str) -> str:
        """Look here."""
        return f"keys in {place}"

    recording = await record(*SCRIPT)
    report = await replay(recording, tools=[pay, fetch, look_here])
    assert any("PermissionDecided: identity was" in line for line in report)
    assert await replay(recording, tools=[pay, fetch, look_here], ignore=("identity", "origin")) == []


async def test_a_rule_that_denies_is_reported() -> None:
    recording = await record(*SCRIPT)
    paid.clear()
    report = await replay(recording, tools=TOOLS, rules=[Rule("pay", "deny", {"to": "ada"})])
    [line] = [line for line in report if line.startswith("turn 1-1-2 (pay)")]
    assert line.startswith("turn 1-1-2 (pay): GateOpened")
    assert 'now it is PermissionDecided (config: {tool = "pay"' in line
    assert paid == []


async def test_what_nobody_was_asked_then_is_denied_now_and_told() -> None:
    recording = await record(*SCRIPT)
    report = await replay(recording, tools=TOOLS, rules=[Rule("look", "ask")])
    assert report[0].startswith(
        "turn 1-1-1 (look): PermissionDecided (look runs by itself) was recorded, and now it is GateOp"
    )
    again = await rerun_with_tools(recording, tools=TOOLS, rules=[Rule("look", "ask")])
    [resolution] = [
        event.resolution for event in again.events if isinstance(event, GateResolved) and event.call.endswith("-1-1")
    ]
    assert (resolution.allowed, resolution.reason) == (False, "this was not asked when the session was recorded")


async def test_what_somebody_was_asked_then_and_nobody_now_is_reported() -> None:
    recording = await record(calls(call("fetch", place="a")), say("Done."), says=["Go"], reply=once)
    [line] = await replay(recording, tools=TOOLS, rules=[Rule("fetch", "allow")])
    assert line.startswith("turn 1-1-1 (fetch): GateOpened (no rule covers this call")
    assert "now it is PermissionDecided (config: {tool" in line


async def test_a_tool_that_is_gone_is_reported() -> None:
    report = await replay(await record(*SCRIPT), tools=[pay, fetch])
    assert any("there is no tool called 'look'" in line for line in report)


class Generous:
    """Allows whatever is asked."""

    name = "generous"

    def on_gate(self, ctx: GateContext) -> None:
        ctx.allow()


async def test_a_plugin_that_answered_answers_again_and_is_missed_where_it_is_not() -> None:
    recording = await record(*SCRIPT, reply=lambda gate: {}, plugins=[Generous()])
    assert await replay(recording, tools=TOOLS, plugins=[Generous()]) == []
    report = await replay(recording, tools=TOOLS)
    assert any("resolution" in line for line in report)


async def test_an_answer_that_does_not_fit_any_more_is_a_no_and_told() -> None:
    @tool(read_only=True, approval="always", name="fetch")
    async def strict(place: str) -> str:
        """Fetch something."""
        raise AssertionError("nobody has allowed this")

    script = (calls(call("fetch", place="a")), say("Done."))
    recording = await record(*script, says=["Go"], reply=lambda gate: {"allow": "always"})
    report = await replay(recording, tools=[strict], ignore=("identity",))
    assert any("resolution.reason was not there, and is 'the recorded answer does" in line for line in report)


async def test_what_a_client_did_is_taken_as_done() -> None:
    shout = ClientTool(
        "shout", "Shout.", {"type": "object", "properties": {"word": {"type": "string"}}}, read_only=True
    )
    async with Chat(ScriptedModel(calls(call("shout", word="hi")), say("Done.")), tools=[look]) as chat:
        turn = await chat.send("Go", clients=[shout])
        async for event in turn:
            if isinstance(event, GateOpened):
                await chat.claim(event.gate, by="tab")
                await chat.answer(event.gate, result="HI", claim="tab")
        recording = await Recording.from_log(chat.app.store, chat.session)
    assert [event.output.text for event in recording.events if isinstance(event, CallFinished)] == ["HI"]
    assert await replay(recording, tools=[look]) == []


async def test_many_differences_are_cut_short() -> None:
    lookups = [call("look", place=str(number)) for number in range(60)]
    recording = await record(calls(*lookups), say("Done."), says=["Go"])
    report = await replay(recording, tools=[other("look", "x" * 1000)])
    assert len(report) == 51
    assert report[-1].startswith("and ")
    assert max(len(line) for line in report) < 1000


async def test_only_names_as_a_whole_are_taken_for_names() -> None:
    message = next(
        event for event in (await record(say(""), says=["Go"])).events if isinstance(event, TurnStarted)
    ).input
    assert message is not None
    text = f"{message.id}1 and a{message.id}"
    first, second = await record(say(text), says=["Go"]), await record(say(text), says=["Go"], prefix="x")
    assert differences(first, second) == []
    assert text.encode() in normalize_recording(first)


async def test_what_comes_or_goes_is_reported() -> None:
    recording = await record(calls(call("look", place="hall")), say("Done."), says=["Go"])
    shorter = Recording(recording.events[:-1])
    assert differences(recording, shorter) == ["turn 1: TurnCompleted was recorded, and does not happen"]
    assert differences(shorter, recording) == ["turn 1: TurnCompleted was not recorded, and happens"]

    def titled(event: Event) -> Event:
        return replace(event, output=replace(event.output, title="Keys")) if isinstance(event, CallFinished) else event

    longer = Recording(tuple(titled(event) for event in recording.events))
    named = "turn 1-1-1 (look), CallFinished: output.title was"
    assert differences(longer, recording) == [f"{named} 'Keys', and is not there"]
    assert differences(recording, longer) == [f"{named} not there, and is 'Keys'"]


async def test_what_a_tool_says_of_its_result_counts_whatever_it_is_called() -> None:
    def hashed(name: str) -> Tool:
        return other("look", Output("keys", metadata={"hash": name, "at": 1}))

    recording = await record(calls(call("look", place="a")), say("Done."), says=["Go"], tools=[hashed("a")])
    report = await replay(recording, tools=[hashed("b")])
    assert report == ["turn 1-1-1 (look), CallFinished: output.metadata.hash was 'a', and is 'b'"]


async def test_it_is_then_again() -> None:
    recording = await record(say("Hello."), says=["Go"], clock=FakeClock(1_000_000_000.0))
    again = await rerun_with_tools(recording)
    assert 0 <= again.events[0].at - 1_000_000_000.0 < 60


# The model --------------------------------------------------------------------------------------------------------------


async def test_a_model_that_is_told_something_else_objects() -> None:
    recording = await record(say("Hello."), says=["Go"])
    async with Chat(replay_model(recording)) as chat:
        with pytest.raises(TurnError, match="the message is 'Stop'; recorded: 'Go'") as failed:
            await (await chat.send("Stop"))
    assert failed.value.kind == "replay"


async def test_a_model_that_is_asked_once_more_objects() -> None:
    recording = await record(say("Hello."), says=["Go"])
    async with Chat(replay_model(recording)) as chat:
        assert (await (await chat.send("Go"))).text == "Hello."
        with pytest.raises(TurnError, match="there were 1 steps, and this is one more"):
            await (await chat.send("Go on"))


async def test_a_model_that_is_shown_another_conversation_objects() -> None:
    recording = await record(say("Hello."), say("There."), says=["Go", "On"])
    async with Chat(replay_model(recording)) as chat:
        turn = await chat.send("Go")
        await turn
        await chat.fork(None)
        with pytest.raises(TurnError, match="in step 2 of 2, with 1 messages instead of 3"):
            await (await chat.send("On"))


@pytest.mark.parametrize(
    "parts",
    [
        (ReasoningPart("Hm.", Opaque("a", "1")), ReasoningPart("Hm?", Opaque("a", "2")), TextPart("So.")),
        (ReasoningPart("", Opaque("a", "1")), TextPart("So.", Opaque("a", "2"))),
        (
            TextPart("I look."),
            ToolPart("t-1-1", "look", "{", provider_id="x", opaque=Opaque("a", "1")),
            TextPart("Yes."),
        ),
        (ToolPart("t-1-1", "look", "{}"), ToolPart("t-1-2", "", "not json", provider_id="x")),
        (TextPart("So."), ReasoningPart("", Opaque("a", "1"))),
        (TextPart("", Opaque("a", "1")),),
        (),
    ],
)
def test_parts_come_out_as_they_were(parts: tuple[StreamedPart, ...]) -> None:
    assembly = StepAssembly("t", 1, 1)
    assembly.feed(make_chunks(parts))
    assert assembly.parts() == parts


# The file ---------------------------------------------------------------------------------------------------------------


async def test_a_recording_is_the_log_of_an_export(tmp_path: Path) -> None:
    async with Chat(ScriptedModel(say("Hello."))) as chat:
        await (await chat.send("Go"))
        store = chat.app.store
        recording = await Recording.from_log(store, chat.session)
        await export_session(store, chat.session, tmp_path / "talk.zip")
    with zipfile.ZipFile(tmp_path / "talk.zip") as archive:
        log = archive.read("log.jsonl")
    assert recording.dump() == log
    (tmp_path / "talk.jsonl").write_bytes(log)
    assert Recording.read(tmp_path / "talk.jsonl") == recording


async def test_what_happened_in_one_place_can_be_moved_to_another() -> None:
    recording = await record(say("It is in /tmp/a/b."), says=["What is in /tmp/a?"])
    moved = recording.with_paths_replaced({"/tmp/a": "/home/x"})
    assert b"/tmp/a" not in moved.dump()
    assert moved.dump().count(b"/home/x") == recording.dump().count(b"/tmp/a") > 1
    assert moved.with_paths_replaced({"/home/x": "/tmp/a"}) == recording


async def test_a_recording_that_depends_on_the_moment_is_refused() -> None:
    recording = await record(*SCRIPT, says=["Go"])
    turn = "turn_2"
    [step, *_] = [event for event in recording.events if isinstance(event, StepFinished)]
    file = replace(step, parts=(FilePart("b", "image/png", 1),))
    hopeless: list[tuple[Iterable[Event], str]] = [
        ((), "there is no turn"),
        (recording.events[:-1], "is not over in this recording"),
        ((*recording.events, LateResultReceived(turn=turn, call="c", output=Output("x"))), "a result came late"),
        (
            (*recording.events, SubagentStarted(turn=turn, call="c", session="s", child="b")),
            "a sub-agent run has a log of its own",
        ),
        ((*recording.events, file), "the model made a file"),
    ]
    for events, why in hopeless:
        with pytest.raises(ConfigError, match=why):
            await replay(Recording(tuple(events)), tools=TOOLS)


async def test_a_turn_that_was_cancelled_is_refused() -> None:
    async with Chat(ScriptedModel(calls(call("pay", to="ada"))), tools=TOOLS) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, GateOpened):
                await turn.cancel()
        recording = await Recording.from_log(chat.app.store, chat.session)
    with pytest.raises(ConfigError, match="a turn was cancelled"):
        replay_model(recording)
