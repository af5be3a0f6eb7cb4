"""Plans of faults and the ledger of effects: what a process is told to die of, and what is known of it afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from everturn import Chat, failpoints
from everturn.errors import ConfigError
from tools.chaos import (
    EffectLedger,
    FaultInjected,
    FaultPlan,
    LedgerLine,
    ScenarioModel,
    ask,
    make_tools,
    read_ledger,
)
from tools.chaos.plan import EXIT_CODE, VARIABLE, install_from_environment, read_token
from tools.environment import child_environment

# Plans ------------------------------------------------------------------------------------------------------------

PASSES = """
import sys
from everturn import failpoints
from tools.chaos import EffectLedger, install_from_environment
install_from_environment()
ledger = EffectLedger(sys.argv[1])
for number in range(3):
    ledger.write("effect", name=str(number))
    failpoints.hit_failpoint("here")
"""


@pytest.fixture(autouse=True)
def nothing_is_planned_afterwards() -> Iterator[None]:
    yield
    failpoints.install_plan(None)


def run(ledger: Path, plan: object) -> subprocess.Popen[bytes]:
    environment = {**child_environment(), VARIABLE: msgspec.json.encode(plan).decode()}
    return subprocess.Popen([sys.executable, "-c", PASSES, str(ledger)], env=environment)


@pytest.mark.parametrize(("do", "code"), [("kill", -signal.SIGKILL), ("exit", EXIT_CODE), ("raise", 1)])
def test_a_process_ends_at_the_point_it_was_told_to(
    tmp_path: Path, do: str, code: int, capfd: pytest.CaptureFixture[str]
):
    with run(tmp_path / "ledger", {"here": {"nth": 2, "do": do}}) as process:
        assert process.wait() == code
    assert [line.name for line in read_ledger(tmp_path / "ledger").lines] == ["0", "1"]
    assert ("here fails, as planned" in capfd.readouterr().err) == (do == "raise")


def test_a_process_halts_at_the_point_it_was_told_to_and_goes_on_when_it_is_woken(tmp_path: Path):
    with run(tmp_path / "ledger", {"here": {"nth": 2, "do": "stop"}}) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert len(read_ledger(tmp_path / "ledger").lines) == 2
        process.send_signal(signal.SIGCONT)
        assert process.wait() == 0
    assert len(read_ledger(tmp_path / "ledger").lines) == 3


def test_of_many_processes_with_one_plan_a_token_lets_one_die(tmp_path: Path):
    token = tmp_path / "token"
    plan = {"h*e": {"do": "kill", "token": str(token)}}
    processes = [run(tmp_path / "ledger", plan) for _ in range(3)]
    codes = [process.wait() for process in processes]
    assert sorted(codes) == [-signal.SIGKILL, 0, 0]
    happened = read_token(str(token))
    assert happened is not None
    assert happened.pid == processes[codes.index(-signal.SIGKILL)].pid
    assert (happened.point, happened.do) == ("here", "kill")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "token"]
    assert read_token(str(tmp_path / "another")) is None


async def test_a_trace_names_the_points_a_scenario_passes(tmp_path: Path):
    ledger = EffectLedger(tmp_path / "ledger")
    failpoints.install_plan(
        FaultPlan.parse(msgspec.json.encode({"*": {"do": "trace", "file": str(tmp_path / "trace")}}).decode())
    )
    chat = Chat(ScenarioModel(ledger), tools=make_tools(ledger, pause=0.0))
    await (await chat.send(ask("four_steps", chat.session)))
    await chat.app.aclose()
    ledger.close()
    points = await asyncio.to_thread((tmp_path / "trace").read_text, encoding="utf-8")
    passed = points.split()
    assert passed.count("model.request.after") == 4
    assert (passed.count("tool.pay.before"), passed.count("tool.pay.after")) == (2, 2)
    assert {"model.step1.batch0", "model.step4.batch5", "tool.look.before", "tool.put.after"} <= set(passed)


def test_a_raised_fault_says_where_and_happens_once():
    plan = FaultPlan.parse('{"store.*": {"nth": 2, "do": "raise"}}')
    plan("store.commit.before")
    plan("elsewhere")
    with pytest.raises(FaultInjected, match=r"store\.commit\.after fails"):
        plan("store.commit.after")
    plan("store.commit.after")


def test_without_a_plan_nothing_is_followed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert install_from_environment() is None
    assert not failpoints.is_active()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"a": {"do": "dance"}}', '{"a": {"do": "kill", "nht": 2}}', '{"a": {"do": "trace"}}']
)
def test_what_is_no_plan_is_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ConfigError):
        install_from_environment()


# The ledger -------------------------------------------------------------------------------------------------------


def test_a_line_says_who_wrote_it_and_when(tmp_path: Path):
    ledger = EffectLedger(tmp_path / "ledger", worker="w1", now=lambda: 12.5)
    ledger.write("effect", session="s", turn="t", call="c", key="k", name="pay", hash="h")
    ledger.close()
    assert read_ledger(tmp_path / "ledger").lines == [
        LedgerLine("effect", "s", "t", "c", "k", "pay", "h", os.getpid(), "w1", 12.5)
    ]


def test_a_torn_line_is_counted_and_takes_no_other_along(tmp_path: Path):
    path = tmp_path / "ledger"
    ledger = EffectLedger(path)
    ledger.write("effect", name="one")
    os.truncate(path, path.stat().st_size - 9)
    ledger.write("effect", name="two")
    ledger.write("effect", name="three")
    os.truncate(path, path.stat().st_size - 9)
    ledger.close()
    read = read_ledger(path)
    assert ([line.name for line in read.lines], read.torn) == (["two"], 2)


def test_a_last_line_without_its_end_is_still_a_line(tmp_path: Path):
    path = tmp_path / "ledger"
    ledger = EffectLedger(path)
    ledger.write("note", name="one")
    ledger.close()
    os.truncate(path, path.stat().st_size - 1)
    assert [line.name for line in read_ledger(path).lines] == ["one"]


def test_many_processes_write_one_ledger_and_no_line_is_lost(tmp_path: Path):
    script = (
        "import sys; from tools.chaos import EffectLedger\n"
        "ledger = EffectLedger(sys.argv[1], worker=sys.argv[2])\n"
        "for n in range(500): ledger.write('effect', name=str(n), hash='x' * 200)\n"
    )
    path = tmp_path / "ledger"
    known = child_environment()
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path), str(n)], env=known) for n in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    read = read_ledger(path)
    assert read.torn == 0
    assert {(line.worker, line.name) for line in read.lines} == {(str(w), str(n)) for w in range(3) for n in range(500)}


def test_several_ledgers_are_read_as_one_and_one_that_is_not_there_is_empty(tmp_path: Path):
    for name in ("a", "b"):
        ledger = EffectLedger(tmp_path / name)
        ledger.write("note", name=name)
        ledger.close()
    assert [line.name for line in read_ledger(tmp_path / "a", tmp_path / "b", tmp_path / "c").lines] == ["a", "b"]
