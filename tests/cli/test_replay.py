"""`everturn replay`: a file is played, shown, looked into and held against other rules, and every mistake is one line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers.tools import mail

from everturn import Chat, TurnOptions
from everturn.cli import main
from everturn.cli.commands.replay import export_turn
from everturn.core.events import TurnEvent, TurnSuspended
from everturn.replay import Recording, record
from everturn.replay.inspect import inspect_turn, render_inspection
from everturn.stores.registry import get_store
from everturn.testing import ScriptedModel, call, calls, say

Run = Callable[..., tuple[int, str, str]]
GOLDEN = Path(__file__).parents[1] / "golden/v1"
TOOLS = '''
from everturn import tool

@tool(idempotent=True, approval="always")
async def mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"{SAYS} {to}"
'''


async def _talk(file: Path) -> Recording:
    tool_calls = calls(call("mail", to="ada@example.org", text="Lunch?"))
    model = ScriptedModel(tool_calls, say("Ada knows."))
    async with Chat(model, tools=[mail], options=TurnOptions(system="You write mails.")) as chat:
        turn = await chat.send("Ask Ada to lunch")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                [gate] = await chat.gates()
                await turn.answer(gate, allow="once")
        return await record(chat, file)


@pytest.fixture
def lunch(tmp_path: Path) -> Path:
    asyncio.run(_talk(tmp_path / "lunch.jsonl"))
    return tmp_path / "lunch.jsonl"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: object) -> tuple[int, str, str]:
        code = main(["replay", *map(str, words)])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_a_turn_is_shown_and_is_the_same(run: Run, lunch: Path) -> None:
    code, out, err = run(lunch)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "> Ask Ada to lunch"
    assert '? mail {"text":"Lunch?","to":"ada@example.org"}: mail always requires approval' in lines
    assert "! allowed by person" in lines
    assert "Ada knows." in lines
    assert lines[-1] == f"the same, event for event: {len(Recording.read(lunch).events)} events"
    assert "\x1b" not in out


def test_an_edited_file_is_reported(run: Run, lunch: Path) -> None:
    lunch.write_bytes(lunch.read_bytes().replace(b"sent to ada", b"sent to eve"))
    code, out, _ = run("-q", lunch)
    assert code == 1
    assert out == "event 11 (CallFinished) is not what was recorded: the file was edited\n"


def test_its_events_are_printed_as_a_log(run: Run, lunch: Path) -> None:
    code, out, err = run("--json", lunch)
    assert code == 0
    assert err.startswith("the same, event for event")
    kinds = [json.loads(line)["event"]["type"] for line in out.splitlines()]
    assert kinds == [type(event).__name__ for event in Recording.read(lunch).events]


def test_what_cannot_be_played_is_one_line_and_can_be_shown(run: Run, lunch: Path, tmp_path: Path) -> None:
    open_turn = tmp_path / "open.jsonl"
    Recording(Recording.read(lunch).events[:6]).write(open_turn)
    code, out, err = run(open_turn)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is not over in this recording" in err
    assert "--show" in err
    code, out, err = run("--show", open_turn)
    assert (code, err) == (0, "")
    assert "? mail" in out


@pytest.mark.parametrize("name", [log.stem for log in sorted(GOLDEN.glob("*.jsonl"))])
def test_every_golden_log_is_shown_and_looked_into(run: Run, name: str) -> None:
    log = GOLDEN / f"{name}.jsonl"
    assert run("--show", log)[0] == 0
    recording = Recording.read(log)
    for number, event in enumerate(recording.events, 1):
        if isinstance(event, TurnEvent):
            rows = dict(render_inspection(inspect_turn(recording, number)))
            assert rows["event"] == f"{number} of {len(recording.events)}: {type(event).__name__}"
            assert rows["next"]


@pytest.mark.parametrize(
    ("place", "has"),
    [
        ("gate", ["GateOpened", "is asking", "asks (call) about mail", "tool_calling goes on with this step"]),
        ("step:2", ["StepStarted", "step 2", "is completed: sent to ada", "the model is asked again (step 2)"]),
        ("call:mail", ["GateOpened"]),
        ("CallStarted", ["CallStarted", "is running", "tool_call"]),
        ("TurnSuspended", ["waiting", "it waits for gate_"]),
        ("1", ["1 of 17: TurnStarted", "preparing", "an answer is opened"]),
        ("TurnCompleted", ["completed", "nothing: the turn is over", "Ada knows."]),
    ],
)
def test_how_things_stood_is_said(run: Run, lunch: Path, place: str, has: list[str]) -> None:
    code, out, err = run("--until", place, lunch)
    assert (code, err) == (0, "")
    for text in has:
        assert text in out, out


def test_a_new_rule_is_held_against_an_old_turn(run: Run, lunch: Path, tmp_path: Path) -> None:
    rules = tmp_path / "new.toml"
    rules.write_text('[[permissions]]\ntool = "mail"\nmatch = { to = "*@example.org" }\naction = "deny"\n', "utf-8")
    code, out, _ = run("--diff", "--permissions", rules, lunch)
    assert code == 1
    call, was, now = out.splitlines()[:3]
    assert call.endswith(' mail {"text":"Lunch?","to":"ada@example.org"}')
    assert was == "  was asked about: mail always requires approval"
    assert now.startswith("  would be denied by ")
    assert "new.toml:1: " in now
    assert "-sent to ada@example.org" in out
    assert "+This call is not allowed: " in out
    rules.write_text('[[permissions]]\ntool = "mail"\nmatch = { to = "*@other.org" }\naction = "deny"\n', "utf-8")
    assert run("--diff", "--permissions", rules, lunch)[:2] == (0, "nothing would have been different\n")


def test_another_prompt_is_shown_as_a_diff(run: Run, lunch: Path, tmp_path: Path) -> None:
    code, out, _ = run("--diff", "--system", "You write letters.", lunch)
    assert code == 1
    assert "-You write mails." in out.splitlines()
    assert "+You write letters." in out.splitlines()
    prompt = tmp_path / "prompt.md"
    prompt.write_text("You write mails.\n", "utf-8")
    assert run("--diff", "--system-file", prompt, lunch)[0] == 0


def test_a_configuration_says_both(run: Run, lunch: Path, tmp_path: Path) -> None:
    config = tmp_path / "everturn.toml"
    config.write_text(
        '[agents.writer]\nsystem = "You are brief."\n[[agents.writer.permissions]]\ntool = "mail"\naction = "deny"\n',
        "utf-8",
    )
    code, out, err = run("--diff", "--config", config, "--agent", "writer", lunch)
    assert code == 1, err
    assert "+You are brief." in out
    assert "would be denied" in out
    code, _, err = run("--diff", "--config", config, "--agent", "nobody", lunch)
    assert code == 2
    assert "there is no agent 'nobody'" in err


def test_several_files_have_a_line_each(run: Run, lunch: Path, tmp_path: Path) -> None:
    rules = tmp_path / "new.toml"
    rules.write_text('[[permissions]]\ntool = "mail"\nmatch = { to = "ada*" }\naction = "deny"\n', "utf-8")
    plain = GOLDEN / "plain.jsonl"
    code, out, _ = run("--diff", "--permissions", rules, lunch, plain)
    assert code == 1
    assert out.splitlines() == [
        f"{lunch}: 1 call judged otherwise",
        f"{plain}: the same",
        "2 files, 1 of them would have been different",
    ]
    code, out, _ = run(lunch, plain)
    assert code == 0
    assert [line.partition(": ")[0] for line in out.splitlines()] == [str(lunch), str(plain)]


def test_real_tools_take_the_place_of_the_recorded_ones(run: Run, lunch: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(TOOLS.replace("{SAYS}", "mailed"), "utf-8")
    code, out, _ = run("-q", "--real-tools", mine, lunch)
    assert code == 1
    assert "sent to ada@example.org" in out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nothing.jsonl"], "nothing.jsonl cannot be read: No such file or directory"),
        ([__file__], "event 1 cannot be read"),
        (["--until", "never", "LUNCH"], "write a number, step:2, gate, call:NAME, or a kind of event"),
        (["--until", "99", "LUNCH"], "there is no event 99; there are 1 to 17"),
        (["--until", "call:pay", "LUNCH"], "this recording has no event 'call:pay'"),
        (["--diff", "LUNCH"], "say --system, --system-file, --permissions or --config"),
        (["--diff", "--system", "x", "--subject", "to", "LUNCH"], "write NAME=KIND"),
        (["--diff", "--system-file", "no.md", "LUNCH"], "no.md cannot be read: No such file"),
        (["--show", "LUNCH", "LUNCH"], "one can be shown at a time"),
    ],
)
def test_a_mistake_is_one_line(run: Run, lunch: Path, words: list[str], why: str) -> None:
    code, out, err = run(*(str(lunch) if word == "LUNCH" else word for word in words))
    assert (code, out) == (2, "")
    assert why in err
    assert err.count("\n") == 1
    assert err.startswith("everturn: ")


def test_a_turn_is_exported_from_a_store(run: Run, tmp_path: Path) -> None:
    async def talk() -> None:
        async with Chat(ScriptedModel(say("One."), say("Two.")), store=str(tmp_path / "talks.db")) as chat:
            await (await chat.send("Hi"))
            turn = await chat.send("More")
            await turn
        store = get_store(str(tmp_path / "talks.db"))
        try:
            await export_turn(store, chat.session, turn.id, tmp_path / "more.jsonl")
        finally:
            await store.aclose()

    asyncio.run(talk())
    code, out, err = run(tmp_path / "more.jsonl")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "> More"
    assert "One." not in out
    assert "Two." in out
