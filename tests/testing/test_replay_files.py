"""Recordings as files: every golden log, broken ones, edited ones, and those that cannot be played again."""

from __future__ import annotations

import builtins
import json
import socket
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.helpers.tools import look

from everturn import Agent, Chat, Output
from everturn.core import history
from everturn.core.events import CallFinished, Problem, SubagentStarted, TurnCompleted, TurnFailed, TurnStarted
from everturn.core.messages import Message
from everturn.core.options import Lineage, TurnOptions
from everturn.core.requests import RequestMessage
from everturn.driver import commands
from everturn.errors import ConfigError, EverturnError, UnknownTurn, UnreadableLog
from everturn.replay import Recording, cassette, normalize_recording, play, record, replay, replay_offline
from everturn.stores.export import export_session
from everturn.testing import ScriptedModel, call, calls, say
from everturn.turn import request

# What a replay does not play: agents and plugins are code that a recording has not (decisions 0154 and 0155), and a
# compaction was decided by limits that it has not (0162).
NOT_PLAYED = {"handed_over", "refused", "compacted"}
LOGS = sorted((Path(__file__).parents[1] / "golden/v1").glob("*.jsonl"))
GOLDEN = [log for log in LOGS if log.stem not in NOT_PLAYED]


async def recorded(file: Path) -> Recording:
    async with Chat(ScriptedModel(calls(call("look", at="hall")), say("Seen.")), tools=[look]) as chat:
        await (await chat.send("Look"))
        return await record(chat, file)


async def test_a_compacted_recording_says_why_it_is_not_played() -> None:
    compacted = next(log for log in LOGS if log.stem == "compacted")
    with pytest.raises(ConfigError, match="was compacted, by a limit that is not in the recording"):
        await replay(Recording.read(compacted))


# The same ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("log", GOLDEN, ids=lambda log: log.stem)
async def test_every_golden_log_is_played_again_byte_for_byte(log: Path) -> None:
    recording = Recording.read(log)
    assert await replay(recording) == []
    assert normalize_recording(await replay_offline(recording)) == normalize_recording(recording)


async def test_nothing_outside_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [Recording.read(log) for log in GOLDEN]

    def never(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"a replay reaches out: {args}")

    with monkeypatch.context() as patched:
        for name in ("connect", "connect_ex", "bind", "sendto"):
            patched.setattr(socket.socket, name, never, raising=False)
        for where, name in ((socket, "getaddrinfo"), (socket, "create_connection"), (builtins, "open")):
            patched.setattr(where, name, never)
        for recording in logs:
            assert await replay(recording) == []


async def test_an_exported_session_is_read_as_it_is(tmp_path: Path) -> None:
    async with Chat(ScriptedModel(say("Hello.")), tools=[look]) as chat:
        await (await chat.send("Hi"))
        await export_session(chat.app.store, chat.session, tmp_path / "it.zip")
        whole = await Recording.from_session(chat.app.store, chat.session)
    recording = Recording.read(tmp_path / "it.zip")
    assert recording.session == chat.session
    assert recording.events == whole.events
    assert await replay(recording) == []
    recording.write(tmp_path / "it.jsonl")
    assert Recording.read(tmp_path / "it.jsonl").events == whole.events


async def test_a_file_says_what_it_is_of_and_a_bare_log_is_one_too(tmp_path: Path) -> None:
    recording = await recorded(tmp_path / "it.jsonl")
    first, *lines = (tmp_path / "it.jsonl").read_bytes().splitlines(keepends=True)
    assert json.loads(first)["everturn"] | {"marks": 0} == {
        "session": recording.session,
        "tenant": "local",
        "head": len(lines),
        "marks": 0,
    }
    bare = Recording.load(b"".join(lines))
    assert bare.events == recording.events
    assert await replay(bare) == []


async def test_a_release_that_asks_the_model_something_else_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recording = await recorded(tmp_path / "it.jsonl")

    def forgetful(message: Message, start: int = 0, rejected: Any = None) -> list[RequestMessage]:
        rendered = history.render_own_message(message, start)
        return [replace(item, parts=()) if item.role == "tool" else item for item in rendered]

    monkeypatch.setattr(request, "render_own_message", forgetful)
    found = await replay(recording)
    assert any("this request differs from the recorded one: in step 2" in line for line in found), found


async def test_a_release_that_ends_a_turn_in_another_way_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "derive_title", lambda parts: "Do")
    found = await replay(Recording.read(next(log for log in GOLDEN if log.stem == "late")))
    assert found == ["turn 1, TitleSet: title was 'Do it', and is 'Do'"]


# Broken and edited ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"hall is there", b"hall is gone!", "(CallFinished) is not what was recorded"),
        (
            b'"arguments":"{\\"at\\":\\"hall\\"}","hash"',
            b'"arguments":"{\\"at\\":\\"safe\\"}","hash"',
            "not those that were allowed",
        ),
        (b'"text":"Seen."', b'"text":"Sean."', "(StepFinished) is not what was recorded"),
    ],
)
async def test_what_was_edited_is_reported(old: bytes, new: bytes, why: str, tmp_path: Path) -> None:
    await recorded(tmp_path / "it.jsonl")
    data = (tmp_path / "it.jsonl").read_bytes()
    assert old in data
    found = await replay(Recording.load(data.replace(old, new)))
    assert any(why in line for line in found), found


async def test_in_a_bare_log_other_arguments_than_the_model_wrote_are_reported(tmp_path: Path) -> None:
    log = next(log for log in GOLDEN if log.stem == "gate_edited").read_bytes()
    edited = log.replace(
        b'"arguments":"{\\"at\\":\\"the clock\\"}","hash"', b'"arguments":"{\\"at\\":\\"the safe\\"}","hash"'
    )
    assert edited != log
    found = await replay(Recording.load(edited))
    assert any("not those that were allowed" in line for line in found), found


async def test_a_file_that_was_cut_is_refused(tmp_path: Path) -> None:
    await recorded(tmp_path / "it.jsonl")
    data = (tmp_path / "it.jsonl").read_bytes()
    lines = data.splitlines(keepends=True)
    with pytest.raises(UnreadableLog, match=r"it has \d+ events, and should have \d+: record it again"):
        Recording.load(b"".join(lines[:-2]))
    with pytest.raises(UnreadableLog, match="cannot be read"):
        Recording.load(data[:-20])
    with pytest.raises(UnreadableLog, match="upgrade"):
        Recording.load(b'{"everturn":{"version":99}}\n')
    (tmp_path / "it.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(UnreadableLog, match=r"it.zip: it is not an exported session"):
        Recording.read(tmp_path / "it.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(UnreadableLog, match="not an exported session"):
        Recording.read(tmp_path / "other.zip")
    with pytest.raises(UnreadableLog, match="No such file"):
        Recording.read(tmp_path / "nothing.jsonl")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_whatever_is_in_a_file_it_is_played_told_or_refused(
    data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines left out, twice, in another order, or with something else in them: never anything but our own errors."""
    monkeypatch.setattr(play, "PATIENCE", 0.05)
    lines = data.draw(st.sampled_from(GOLDEN)).read_bytes().splitlines()
    at, other = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    damage = data.draw(st.sampled_from(["drop", "twice", "swap", "cut", "change"]))
    if damage == "drop":
        del lines[at]
    elif damage == "twice":
        lines.insert(other, lines[at])
    elif damage == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    elif damage == "cut":
        lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at])))]
    else:
        event = json.loads(lines[at])
        name = data.draw(st.sampled_from(sorted(event["event"])))
        event["event"][name] = data.draw(st.sampled_from(["", "x", 0, 7, None, [], {}]))
        lines[at] = json.dumps(event).encode()
    with suppress(EverturnError):
        assert isinstance(await replay(Recording.load(b"\n".join(lines))), list)


# What cannot be ------------------------------------------------------------------------------------------------------


def _failed(recording: Recording) -> Recording:
    *events, last = recording.events
    assert isinstance(last, TurnCompleted)
    failed = TurnFailed(turn=last.turn, problem=Problem("hook", "snapshots.on_turn_start failed"))
    return Recording((*events, failed))


def _reported(recording: Recording) -> Recording:
    *events, last = recording.events
    assert isinstance(last, TurnCompleted)
    return Recording((*events, TurnCompleted(turn=last.turn, reports=(Problem("hook", "it broke"),))))


def _below(recording: Recording) -> Recording:
    first, *events = recording.events
    assert isinstance(first, TurnStarted)
    options = TurnOptions(lineage=Lineage("top", "turn"))
    return Recording((TurnStarted(turn=first.turn, input=first.input, options=options), *events))


REFUSED: list[tuple[Callable[[Recording], Recording], str]] = [
    (lambda recording: Recording(()), "there is no turn in this recording"),
    (lambda recording: Recording(recording.events[:-1]), "is not over in this recording"),
    (_failed, "it did not fail in the model: snapshots.on_turn_start failed"),
    (_reported, "a plugin failed, and is not here: it broke"),
    (_below, "it is a sub-agent run; record the session above it"),
]


@pytest.mark.parametrize(("changed", "why"), REFUSED, ids=[why[:20] for _, why in REFUSED])
async def test_what_cannot_be_played_is_refused_before_anything_is(
    changed: Callable[[Recording], Recording], why: str, tmp_path: Path
) -> None:
    recording = await recorded(tmp_path / "it.jsonl")
    with pytest.raises(ConfigError, match=why):
        await replay_offline(changed(recording))


async def test_a_turn_is_recorded_when_it_is_over_and_there(tmp_path: Path) -> None:
    async with Chat(ScriptedModel(say("Hello."))) as chat:
        turn = await chat.send("Hi")
        await turn
        with pytest.raises(UnknownTurn, match="there is no turn 'nothing'"):
            await Recording.from_session(chat.app.store, chat.session, "nothing")
        store = chat.app.store
        await store.append(
            chat.session, await store.head(chat.session), [TurnStarted(turn="open")]
        )  # as another process would
        with pytest.raises(ConfigError, match="turn open is still running"):
            await Recording.from_session(store, chat.session, "open")
        with pytest.raises(ConfigError, match="is not over"):
            await record(chat, tmp_path / "it.jsonl")
        assert await replay(await Recording.from_session(store, chat.session, turn.id)) == []


async def test_a_sub_turn_that_never_began_is_left_out() -> None:
    async with Chat(ScriptedModel(say("Hello."))) as chat:
        turn = await chat.send("Hi")
        await turn
        store = chat.app.store
        below = SubagentStarted(turn=turn.id, call="c", session="gone", child="t")
        await store.append(chat.session, await store.head(chat.session), [below])
        assert (await Recording.from_session(store, chat.session)).below == ()


# As tests ------------------------------------------------------------------------------------------------------------


async def test_a_cassette_is_made_where_there_is_none_and_played_where_there_is_one(tmp_path: Path) -> None:
    file = tmp_path / "look.jsonl"

    async def story(model: Any, tools: Any) -> str:
        async with cassette(file, model=model, tools=tools) as chat:
            return (await (await chat.send("Look"))).text

    with pytest.raises(ConfigError, match="pass agent= or model= to record it"):
        await story(None, [look])
    assert await story(ScriptedModel(calls(call("look", at="hall")), say("Seen.")), [look]) == "Seen."
    assert file.exists()
    assert await story(None, [look]) == "Seen."

    class Other:
        spec: Any = look.spec

        def validate(self, arguments: Any) -> None:
            """Anything will do."""

        async def run(self, arguments: Any, context: Any) -> Output:
            return Output("nothing is there")

    with pytest.raises(
        (AssertionError, EverturnError, ExceptionGroup), match=r"differs from the recorded|hall is there"
    ):
        await story(None, [Other()])


async def test_a_cassette_of_an_agent_replays_with_its_instructions_tools_and_output_type(tmp_path: Path) -> None:
    file, script = tmp_path / "agent.jsonl", ScriptedModel(calls(call("look", at="hall")), say("3"))

    async def story(model: Any, instructions: str) -> Any:
        agent = Agent(model, instructions=instructions, tools=[look], output_type=int)
        async with cassette(file, agent=agent) as chat:
            return (await chat.run("Look")).output

    with pytest.raises(ConfigError, match="pass agent= or model= to record it"):
        await story(None, "Count.")
    assert await story(script, "Count.") == 3
    assert await story("openai:gpt-5.2", "Count.") == 3  # no key: the recorded model answers
    with pytest.raises(AssertionError, match=r"options\.system was 'Count\.', and is 'Guess\.'"):
        await story("openai:gpt-5.2", "Guess.")


async def test_a_turn_of_an_agent_is_replayed_where_its_code_is_not(tmp_path: Path) -> None:
    model = ScriptedModel(calls(call("look", at="hall")), say("3"))
    agent = Agent(model, name="looker", instructions="Count.", tools=[look], output_type=int)
    async with cassette(tmp_path / "agent.jsonl", agent=agent) as chat:
        await chat.run("Look")
    recording = Recording.read(tmp_path / "agent.jsonl")
    assert await replay(recording) == []
    assert await replay(recording, tools=[look]) == []


async def test_an_agent_on_a_cassette_takes_no_further_tools(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="an agent has its own tools"):
        async with cassette(tmp_path / "a.jsonl", agent=Agent(ScriptedModel(say("Hi."))), tools=[look]):
            raise AssertionError("it was opened")


async def test_a_cassette_is_made_anew_when_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "hello.jsonl"
    for text in ("Hello.", "Good day."):
        async with cassette(file, model=ScriptedModel(say(text))) as chat:
            await (await chat.send("Hi"))
        assert chat.session in file.read_text(encoding="utf-8")
        monkeypatch.setenv("EVERTURN_RECORD", "1")
    assert "Good day." in file.read_text(encoding="utf-8")
    assert not any(isinstance(event, CallFinished) for event in Recording.read(file).events)
