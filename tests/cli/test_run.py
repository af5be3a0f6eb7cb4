"""`everturn run` in real pipes: what goes in, what comes out, and what the exit code says."""

import asyncio
import io
import json
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
from tests.helpers.cli_run import PATIENCE, RUN, TOOLS, Here, did, plain, run, start

from everturn import wire
from everturn.cli.commands.run import STOP_SIGNALS, _on_stop_signal
from everturn.core.events import GateOpened, StepFinished, TurnSuspended
from everturn.core.parts import TextPart
from everturn.events import TextDelta, TurnCancelled, TurnCompleted
from everturn.stores.registry import get_store
from everturn.testing.provider import Call, Hang, Provider, Say, Status

pytestmark = pytest.mark.timeout(180)  # it starts processes, and a machine may be busy
ODD = "red \x1b[31m, and \u202eback\u202c\r\tand\x9b 你好 \U0001f600"
SAVE = Call("save", '{"path": "notes/a.md", "text": "x"}')


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Here:
    return Here(tmp_path, monkeypatch, capsysbinary)


def at(provider: Provider, *steps: Sequence[object], pace: float = 0.0) -> list[str]:
    provider.script("m", steps, sequence=True, pace=pace)  # pyright: ignore[reportArgumentType]
    return ["--model", "m", "--base-url", f"{provider.url}/v1"]


def last_message(provider: Provider) -> str:
    return provider.seen[-1].body["messages"][-1]["content"]


async def log(store: Path) -> list[object]:
    opened = get_store(str(store))
    try:
        (info,) = await opened.session_page("local")
        return [entry.event for entry in await opened.events(info.id)]
    finally:
        await opened.aclose()


async def is_at_rest(store: Path) -> bool:
    """Whether nobody has anything to do in it, as `everturn sessions` and `ps` say."""
    opened = get_store(str(store))
    try:
        return not any(info.is_awake for info in await opened.session_page("local"))
    finally:
        await opened.aclose()


async def test_a_prompt_goes_before_what_comes_on_stdin(provider: Provider, tmp_path: Path) -> None:
    words = at(provider, [Say("One.")], [Say("Two.")])
    both = await run(tmp_path, *words, "Sum up:", stdin="a line\nanother\n")
    assert (both.code, both.out, both.err) == (0, "One.\n", "")
    assert last_message(provider) == "Sum up:\n\na line\nanother"
    alone = await run(tmp_path, *words, "-", stdin="only this")
    assert (alone.code, alone.out, last_message(provider)) == (0, "Two.\n", "only this")


async def test_into_a_pipe_goes_exactly_what_the_model_says(provider: Provider, tmp_path: Path) -> None:
    words = at(provider, [Say(f"  {ODD}\n\nend\n\n\n")])
    done = await run(tmp_path, *words, "Say", "--no-stdin")
    assert done.out == f"  {ODD}\n\nend\n"


async def test_every_line_of_json_is_an_event_as_a_store_keeps_it(provider: Provider, tmp_path: Path) -> None:
    words = at(provider, [Say("It "), Call("pay", '{"amount": 3}')], [Say("is paid.")])
    line = shlex.join([*RUN, *words, "--tools", TOOLS, "--json", "--deltas", "Pay", "--store", "a.db"])
    check = "import sys, json; print(json.dumps([json.loads(line) for line in sys.stdin]))"
    script = f"set -o pipefail; printf 'three euros' | {line} | {shlex.quote(sys.executable)} -c {shlex.quote(check)}"
    shell = await asyncio.create_subprocess_exec(
        "bash", "-c", script, stdout=asyncio.subprocess.PIPE, env=plain(tmp_path), cwd=tmp_path
    )
    out, _ = await shell.communicate()
    assert shell.returncode == 0
    (first, *rows) = json.loads(out)
    events = [wire.load_event(json.dumps(row)) for row in rows if "event" in row]
    stored = await log(tmp_path / "a.db")
    assert first["run"]["turn"] == stored[0].turn  # type: ignore[attr-defined]
    assert events == [event for event in stored if getattr(event, "turn", "") == first["run"]["turn"]]
    assert isinstance(events[-1], TurnCompleted)
    pieces = [row["delta"] for row in rows if "delta" in row]
    assert "".join(piece["text"] for piece in pieces if piece["type"] == TextDelta.__name__) == "It is paid."
    assert last_message(provider) == "paid 3"


async def test_what_asks_is_denied_unless_it_is_allowed_on_the_command_line(
    provider: Provider, tmp_path: Path, cli: Here
) -> None:
    both = [SAVE, Call("shout", '{"text": "hi"}')]
    words = [*at(provider, *([both, [Say("Well.")]] * 5)), "--tools", TOOLS, "Do it"]
    nobody = await run(tmp_path, *words, "--no-stdin")
    assert (nobody.code, nobody.out, did(tmp_path)) == (3, "Well.\n", [])
    assert "nobody is there to ask" in last_message(provider)
    offer = next(line for line in nobody.err.splitlines() if "--allow" in line).split("--allow ")[1]
    pasted = shlex.split(offer)[0]  # what is offered can be pasted as it is
    allowed = await cli(*words, "--allow", pasted, "--allow", "shout(text=h*)")
    assert (allowed.code, allowed.err, did(tmp_path)) == (0, "", ["save notes/a.md", "shout hi"])
    denied = await cli(*words, "--allow", "save(path=**)", "--allow", "shout", "--deny", "save(path=notes/**)")
    assert (denied.code, did(tmp_path)[2:]) == (0, ["shout hi"])
    (tmp_path / "ask.toml").write_text('[[permissions]]\ntool = "shout"\naction = "ask"\n', encoding="utf-8")
    ruled = await cli(*words, "--allow", "shout", "--deny", "save", "--permissions", "ask.toml")
    assert (ruled.code, did(tmp_path)[3:]) == (3, [])  # what a rule asks for is asked, whatever was said
    misspelt = await cli(*words, "--deny", "sav")
    assert misspelt.code == 2
    assert misspelt.err == "everturn: --deny sav: there is no tool of this name; did you mean 'save'?\n"


async def test_what_goes_wrong_is_one_line_and_a_code(provider: Provider, tmp_path: Path, cli: Here) -> None:
    words = at(provider, [Status(401)])
    failed, unusable, binary, long = await asyncio.gather(
        run(tmp_path, *words, "Hi"),
        run(tmp_path, "Hi"),
        run(tmp_path, *words, stdin=b"\xff\xfe\x00"),
        run(tmp_path, *words, stdin="x" * 1_000_001),
    )
    for done, code in ((failed, 1), (unusable, 2), (binary, 2), (long, 2)):
        assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done
    assert "--attach" in binary.err
    (tmp_path / "bad.toml").write_text("[agents.a]\nmodle = 'x'\n", encoding="utf-8")
    (tmp_path / "key.toml").write_text("[agents.a]\nmodel = 'openai:gpt-5.2'\n", encoding="utf-8")
    for expected, wrong in {
        "--model": ["Hi"],
        "bad.toml:2:": ["--config", "bad.toml", "Hi"],
        "key.toml:2:": ["--config", "key.toml", "Hi"],
        "OPENAI_API_KEY": ["--config", "key.toml", "Hi"],
        "--no-save": [*words, "Hi", "--wait", "--no-save"],
        "--allow x(y": [*words, "Hi", "--allow", "x(y"],
        "assistant": [*words, "Hi", "--agent", "b"],
        "EVERTURN_TOKEN": ["--connect", "https://example.org", "Hi"],
        "--allow works only for local runs": ["--connect", "https://example.org", "Hi", "--allow", "x"],
        "no_such.py": [*words, "--tools", "no_such.py", "Hi"],
    }.items():
        done = await cli(*wrong)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
        assert expected in done.err
    assert len(provider.seen) == 1  # nothing of it was sent


async def test_a_limit_has_a_code_of_its_own(provider: Provider, tmp_path: Path, cli: Here) -> None:
    pay = [Call("pay", '{"amount": 3}')]
    steps = await cli(*at(provider, pay, [Say("Enough.")]), "--tools", TOOLS, "Pay", "--max-steps", "1")
    assert (steps.code, steps.out, "--max-steps" in steps.err) == (4, "Enough.\n", True)
    assert "max_steps in everturn.toml" in steps.err
    budget = await cli(*at(provider, pay, [Say("So.")]), "--tools", TOOLS, "Pay", "--budget", "calls=1")
    assert (budget.code, budget.out, "calls" in budget.err) == (4, "So.\n", True)
    time = await cli(*at(provider, [Say("One "), Hang()]), "Go", "--timeout", "2")
    assert (time.code, time.out, time.err.count("\n")) == (4, "One \n", 1)


async def test_a_turn_that_waits_is_gone_on_with(provider: Provider, tmp_path: Path, cli: Here) -> None:
    words = [*at(provider, [SAVE], [Say("Well.")]), "--tools", TOOLS, "--store", "a.db"]
    parked = await run(tmp_path, *words, "--session", "s", "--wait", "Save it", "--json", "--no-stdin")
    assert (parked.code, parked.err.count("\n")) == (5, 1)
    assert "everturn run --store a.db --session s --resume --ask" in parked.err
    events = [wire.load_event(line) for line in parked.out.splitlines()[1:]]
    assert isinstance(events[-1], TurnSuspended)
    assert any(isinstance(event, GateOpened) for event in events)
    busy = await cli(*words, "--session", "s", "More")
    assert (busy.code, "--resume" in busy.err) == (2, True)
    denied = await cli(*words, "--session", "s", "--resume", "--wait", "--allow", "save(path=other/**)")
    assert (denied.code, did(tmp_path)) == (5, [])
    resumed = await cli(*words, "--session", "s", "--resume", "--allow", "save(path=notes/**)")
    assert (resumed.code, resumed.out, did(tmp_path)) == (0, "Well.\n", ["save notes/a.md"])
    nothing = await cli(*words, "--session", "s", "--resume")
    assert (nothing.code, nothing.out) == (0, "")


@pytest.mark.parametrize(
    ("number", "then"),
    [(signal.SIGINT, Hang()), (signal.SIGTERM, Call("brood", '{"seconds": 600}'))],
    ids=["int", "term"],
)
async def test_ctrl_c_ends_the_turn_as_cancelled(
    provider: Provider, tmp_path: Path, number: signal.Signals, then: object
) -> None:
    words = at(provider, [Say("One two "), then])
    process = await start(tmp_path, *words, "Go", "--no-stdin", "--store", "a.db", "--tools", TOOLS)
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        assert await process.stdout.readexactly(7) == b"One two"
        while isinstance(then, Call) and not did(tmp_path):  # noqa: ASYNC110  # in a thread that nothing can stop
            await asyncio.sleep(0.05)
        process.send_signal(number)
        rest, err = await process.communicate()
    assert (process.returncode, rest.strip()) == (130, b"")
    assert b"cancelled" in err
    events = await log(tmp_path / "a.db")
    assert any(isinstance(event, TurnCancelled) for event in events)
    assert await is_at_rest(tmp_path / "a.db")


async def test_a_second_ctrl_c_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    stopped = asyncio.Event()
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        with _on_stop_signal(stopped.set):
            signal.raise_signal(signal.SIGINT)
            await asyncio.wait_for(stopped.wait(), PATIENCE)
            assert left == []
            signal.raise_signal(signal.SIGTERM)
            assert left == [130]
        signal.raise_signal(signal.SIGINT)  # on the way out it is no other
        assert left == [130, 130]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    with _on_stop_signal(stopped.set):
        pass
    assert {number: signal.getsignal(number) for number in STOP_SIGNALS} == before


LINES = "".join(f"line {n}\n" for n in range(400))


@pytest.mark.parametrize(
    ("step", "more", "first"),
    [
        ([Say(LINES, pieces=200), Hang()], [], b"line 0\n"),
        # The second line comes when the tool has begun; it goes on, unless it is ended, too.
        ([Call("brood", '{"seconds": 600}')], ["--json"], b'{"v":1,"run":'),
    ],
    ids=["text", "events"],
)
async def test_a_reader_that_goes_away_ends_the_turn(
    provider: Provider, tmp_path: Path, step: list[object], more: list[str], first: bytes
) -> None:
    words = at(provider, step, pace=0.005)
    line = shlex.join([*RUN, *words, "Go", "--no-stdin", "--store", "a.db", "--tools", TOOLS, *more])
    script = f'{line} | head -n 1; echo "${{PIPESTATUS[0]}}"'
    shell = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        script,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=plain(tmp_path),
        cwd=tmp_path,
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await shell.communicate()
    assert (out.startswith(first), out.endswith(b"\n141\n"), out.count(b"\n"), err) == (True, True, 2, b"")
    assert any(isinstance(event, TurnCancelled) for event in await log(tmp_path / "a.db"))
    assert await is_at_rest(tmp_path / "a.db")


@pytest.fixture
def no_reader() -> Iterator[int]:
    """The end of a pipe to write to; nobody has the other one any more."""
    reads, writes = os.pipe()
    os.close(reads)
    yield writes
    os.close(writes)


async def test_who_lists_sessions_afterwards_finds_none_that_runs(
    provider: Provider, tmp_path: Path, no_reader: int
) -> None:
    words = [*at(provider, [Say("One. Two. Three.", pieces=3)], pace=0.05), "--store", "a.db", "--session", "bar"]
    process = await asyncio.create_subprocess_exec(
        *RUN, *words, "Go", "--no-stdin", stdout=no_reader, env=plain(tmp_path), cwd=tmp_path
    )
    async with asyncio.timeout(PATIENCE):
        assert await process.wait() == 141
    listed = await run(tmp_path, "sessions", "--store", "a.db", command=RUN[:-1])
    assert ("bar" in listed.out, "running" in listed.out) == (True, False)
    driven = await run(tmp_path, "ps", "--store", "a.db", command=RUN[:-1])
    assert "0 active sessions" in driven.out


async def test_a_cancellation_that_comes_after_the_end_of_its_turn_is_waited_for(
    provider: Provider, tmp_path: Path, cli: Here, no_reader: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*at(provider, [Say("One.")]), "--store", "a.db", "--idempotency-key", "monday", "Go"]
    assert (await cli(*words)).code == 0
    with monkeypatch.context() as patch:
        unbuffered = io.FileIO(no_reader, "w", closefd=False)
        patch.setattr(sys, "stdout", io.TextIOWrapper(unbuffered, encoding="utf-8"))
        with pytest.raises(BaseExceptionGroup) as gone:
            await cli(*words)
        assert gone.group_contains(BrokenPipeError)
    assert await is_at_rest(tmp_path / "a.db")


async def test_with_a_key_it_is_done_once_though_it_is_killed(provider: Provider, tmp_path: Path, cli: Here) -> None:
    words = at(provider, [Call("pay", '{"amount": 5}')], [Say("Half"), Hang()], [Say("Paid.")])
    words += ["--tools", TOOLS, "--store", "a.db", "--no-stdin", "--idempotency-key", "monday", "Pay five"]
    process = await start(tmp_path, *words)
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        assert await process.stdout.readexactly(4) == b"Half"
        process.kill()
        await process.communicate()
    again = await run(tmp_path, *words)
    assert (again.code, again.out, did(tmp_path)) == (0, "Paid.\n", ["pay 5"])
    asked_for = len(provider.seen)
    once_more = await cli(*words)
    assert (once_more.code, once_more.out, len(provider.seen)) == (0, "Paid.\n", asked_for)
    other = await cli(*words[:-1], "Pay six")
    assert (other.code, other.err.count("\n")) == (2, 1)
    finished = [event for event in await log(tmp_path / "a.db") if isinstance(event, StepFinished)]
    assert TextPart("Paid.") in finished[-1].parts
