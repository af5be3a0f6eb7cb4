"""Datasets: read from folders, made from sessions, and readable."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from everturn import Chat, tool
from everturn.errors import ConfigError
from everturn.evals import Dataset, evaluate, make_dataset, make_rated_dataset
from everturn.evals.dataset import to_toml
from everturn.testing import ScriptedModel, call, calls, say
from tests.evals.shop import Shop, record_refund, refund_script


async def new_dataset(folder: Path, sessions: int = 1) -> Dataset:
    from everturn.stores.memory import MemoryStore

    store = MemoryStore()
    for number in range(sessions):
        recording = await record_refund()
        await store.restore(f"session {number}", "local", recording.events)
    await make_dataset(store, [f"session {number}" for number in range(sessions)], folder)
    return Dataset.read(folder)


async def test_a_session_becomes_a_case_that_says_what_was_done(tmp_path: Path) -> None:
    data = await new_dataset(tmp_path / "refunds")
    text = (tmp_path / "refunds" / "dataset.toml").read_text()
    assert "# I want my money back for order 4512" in text
    assert [case.name for case in data.cases] == ["session-0"]
    assert [check.name for check in data.cases[0].checks] == ["called refund", "gate_asked refund"]  # pyright: ignore[reportFunctionMemberAccess]
    table = tomllib.loads(text)["cases"][0]["checks"][0]
    assert table == {"kind": "called", "tool": "refund", "arguments": {"amount": 40, "number": "4512"}}
    assert (await evaluate(data, depth="turn")).exit_code == 0


async def test_more_sessions_are_added_and_none_is_overwritten(tmp_path: Path) -> None:
    assert len((await new_dataset(tmp_path / "d", 2)).cases) == 2
    with pytest.raises(ConfigError, match="exists"):
        await new_dataset(tmp_path / "d")


async def test_a_turn_that_is_not_over_makes_no_case(tmp_path: Path) -> None:
    shop = Shop()
    async with Chat(ScriptedModel(*refund_script()), tools=shop.tools) as chat:
        turn = await chat.send("Refund 4512")
        async for event in turn:
            if type(event).__name__ == "TurnSuspended":
                break
        with pytest.raises(ConfigError, match="is not over"):
            await make_dataset(chat.app.store, [chat.session], tmp_path / "d")
        await turn.cancel()


async def test_what_toml_cannot_write_is_left_out_of_a_check(tmp_path: Path) -> None:
    @tool
    async def note(text: str, tags: list[str | None]) -> str:
        """Write a note."""
        return "done"

    model = ScriptedModel(calls(call("note", text='a "b" \n\x7f', tags=[None])), say("Noted \x00."))
    async with Chat(model, tools=[note]) as chat:
        await (await chat.send("Note\x00 this\x1b[31m"))
        await make_dataset(chat.app.store, [chat.session], tmp_path / "d")
    assert tomllib.loads((tmp_path / "d" / "dataset.toml").read_text())["cases"][0]["checks"] == [
        {"kind": "called", "tool": "note"}
    ]


@pytest.mark.parametrize("value", [{"a": [1, 2.5, True, "x"], "b": {"c": "ü\n\"'"}}, {}, {"a b": []}])
def test_toml_values_are_read_back(value: object) -> None:
    assert tomllib.loads(f"v = {to_toml(value)}")["v"] == value


async def test_a_folder_of_recordings_is_a_dataset(tmp_path: Path) -> None:
    (await record_refund()).write(tmp_path / "a" / "one.jsonl")
    (await record_refund()).write(tmp_path / "two.jsonl")
    assert [case.name for case in Dataset.read(tmp_path).cases] == ["a-one", "two"]
    assert [case.name for case in Dataset.read(tmp_path / "two.jsonl").cases] == ["two"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("nme = 'x'", "there is no key 'nme'"),
        ("[[cases]]\nname = 'x'", "needs a recording"),
        ("name = 'x'", "has no cases"),
        ("[[checks]]\nkind = 'polite'", "checks check 1: there is no check of kind 'polite'"),
        ("[[cases]]\nrecording = 'missing.jsonl'", "missing.jsonl cannot be read"),
        ("[[cases", "cannot be read"),
    ],
)
def test_a_mistake_in_a_dataset_is_named(tmp_path: Path, text: str, error: str) -> None:
    from everturn.errors import EverturnError

    (tmp_path / "dataset.toml").write_text(text)
    with pytest.raises(EverturnError, match=error):
        Dataset.read(tmp_path)


async def test_what_people_rated_down_becomes_a_case_for_a_judge(tmp_path: Path) -> None:
    model = ScriptedModel(say("Paris."), say("Rome."), say("Oslo."), say("Bern."))
    async with Chat(model) as chat:
        for question in ("France?", "Italy?", "Norway?", "Switzerland?"):
            await (await chat.send(question))
        paris, rome, oslo, bern = [message for message in await chat.messages() if message.role == "assistant"]
        await chat.rate(rome, "down", reason='too "short"\x07', by="ada")
        await chat.rate(rome, "down", reason="no source", by="bob")
        await chat.rate(oslo, "down", by="ada")
        await chat.rate(paris, "up", by="ada")
        await chat.rate(bern, "down", by="ada")
        await chat.rate(bern, "", by="ada")
        store, session = chat.app.store, chat.session
        await make_rated_dataset(store, [session], tmp_path / "down", "down")
        await make_rated_dataset(store, [session], tmp_path / "up", "up")
        await chat.delete(paris)
        with pytest.raises(ConfigError, match="no answer of these sessions is rated up"):
            await make_rated_dataset(store, [session], tmp_path / "none", "up")
    first, second = tomllib.loads((tmp_path / "down" / "dataset.toml").read_text())["cases"]
    assert first["checks"] == [
        {
            "kind": "judge",
            "rubric": 'The answer does not have the problem that a person reported: too "short"; no source',
        }
    ]
    assert second["checks"] == [
        {"kind": "judge", "rubric": "The answer does what the person asked for.", "compare": True}
    ]
    down, up = Dataset.read(tmp_path / "down"), Dataset.read(tmp_path / "up")
    assert [case.recording.turn for case in down.cases] == [rome.turn, oslo.turn]
    assert [case.recording.turn for case in up.cases] == [paris.turn]
    assert (await evaluate(up, depth="pure")).exit_code == 0
