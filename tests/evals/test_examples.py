"""The examples of this repository, evaluated as CI would: what they must do holds, and a regression is caught.

Each `examples/*/recorded` is a dataset. The recordings are of the running examples (`docs/get-started/examples.md`
says how they were made); `dataset.toml` beside them says what must stay.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everturn.cli import main
from everturn.evals import Dataset, EvalReport
from everturn.evals.report_formats import from_json
from everturn.testing.provider import Call, Item, Provider, Say
from tests.evals.offline_eval import CAUGHT

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.parents[1].name for path in EXAMPLES.glob("*/recorded/dataset.toml"))
DENY = '[[permissions]]\ntool = "{tool}"\naction = "deny"\n'
SUPPORT = EXAMPLES / "support-bot"
SHORTER = "You answer customers of a shop. Be brief."


def unreachable(self: socket.socket, address: object) -> None:
    raise AssertionError(f"this evaluation is offline, and wanted to reach {address}")


def run_eval(name: str, folder: Path, *words: object) -> tuple[int, EvalReport]:
    """Run `everturn eval` on the dataset of an example; return the exit code and the report."""
    report = folder / "report.json"
    code = main(["eval", str(EXAMPLES / name / "recorded"), "--report", str(report), "-q", *map(str, words)])
    return code, from_json(report.read_bytes())


def test_every_example_is_a_dataset_with_checks_for_every_recording() -> None:
    assert NAMES == sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
    for name in NAMES:
        dataset = Dataset.read(EXAMPLES / name / "recorded")
        recorded = {path.name for path in (EXAMPLES / name / "recorded").glob("*.jsonl")}
        assert {Path(case.file).name for case in dataset.cases} == recorded
        assert all([*dataset.checks, *case.checks] for case in dataset.cases)


@pytest.mark.parametrize("depth", ["pure", "turn"])
@pytest.mark.parametrize("name", NAMES)
def test_without_a_change_it_passes_offline_and_byte_equal(
    name: str, depth: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket.socket, "connect", unreachable)
    code, report = run_eval(name, tmp_path, "--depth", depth)
    assert code == 0
    assert all(sample.is_reproduced and sample.requests == 0 for case in report.cases for sample in case.samples)


def test_nothing_is_looked_up_connected_to_or_started() -> None:
    command = [sys.executable, "-m", "tests.evals.offline_eval"]
    done = subprocess.run(
        [*command, "-", str(EXAMPLES), "--depth", "turn"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 cases at depth turn: 7 passed" in done.stdout
    probe = subprocess.run([*command, "connect", str(EXAMPLES)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert probe.returncode == CAUGHT, probe.stderr


@pytest.mark.parametrize(
    ("name", "file"),
    [("approval-inbox", "payments.py"), ("slack-approvals", "payments.py"), ("support-bot", "shop.py")],
)
def test_it_passes_with_the_tools_of_the_example(name: str, file: str, tmp_path: Path) -> None:
    code, report = run_eval(name, tmp_path, "--depth", "turn", "--tools", EXAMPLES / name / file)
    assert (code, report.counts["passed"]) == (0, 1)


# Regressions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("approval-inbox", "pay_invoice"),
        ("browser-notebook", "browser_js_eval"),
        ("local-json", "get_weather"),
        ("slack-approvals", "pay_invoice"),
        ("support-bot", "refund"),
        ("terminal-assistant", "edit_file"),
    ],
)
def test_a_rule_that_denies_what_it_needs_is_caught(name: str, tool: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(DENY.format(tool=tool))
    code, pure = run_eval(name, tmp_path, "--permissions", rules)
    assert (code, pure.counts["failed"]) == (1, len(pure.cases))
    assert any(tool in line and "would be denied" in line for line in pure.cases[0].samples[0].decisions)
    code, turn = run_eval(name, tmp_path, "--permissions", rules, "--depth", "turn")
    assert (code, turn.counts["divergent"]) == (2, len(turn.cases))


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "exit_code", "reason"),
    [
        # A payment that asks nobody.
        ("approval-inbox", "payments.py", 'approval="always"', 'approval="auto"', 1, "gate_asked pay_invoice"),
        ("slack-approvals", "payments.py", 'approval="always"', 'approval="auto"', 1, "gate_asked pay_invoice"),
        ("support-bot", "shop.py", 'approval="ask"', 'approval="auto"', 1, "gate_asked refund"),
        # A tool that a model would read differently.
        ("approval-inbox", "payments.py", "Pay an invoice.", "Show an invoice.", 2, "another schema, description"),
        ("support-bot", "shop.py", "amount: int", "amount: float", 2, "another schema, description"),
    ],
)
def test_a_changed_tool_is_caught(
    name: str, file: str, old: str, new: str, exit_code: int, reason: str, tmp_path: Path
) -> None:
    source = (EXAMPLES / name / file).read_text(encoding="utf-8")
    assert old in source
    (tmp_path / file).write_text(source.replace(old, new), encoding="utf-8")
    code, report = run_eval(name, tmp_path, "--depth", "turn", "--tools", tmp_path / file)
    assert code == exit_code
    assert any(reason in line for line in report.cases[0].samples[0].reasons)


def look_or_guess(body: dict[str, Any]) -> list[Item]:
    """A model that looks the order up only if its instructions say so, and otherwise guesses the amount."""
    system = next(str(message["content"]) for message in body["messages"] if message["role"] == "system")
    last = body["messages"][-1]
    if last["role"] == "tool" and (price := re.search(r"a lamp for (\d+)", str(last["content"]))):
        return [Call("refund", json.dumps({"number": "1001", "amount": int(price[1])}))]
    if last["role"] == "tool":
        return [Say("You have your money back.")]
    if "Look the order up" in system:
        return [Call("find_order", json.dumps({"number": "1001"}))]
    return [Call("refund", json.dumps({"number": "1001", "amount": 400}))]


async def test_a_shorter_instruction_that_would_refund_too_much_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration of the example, with a model that reads its instructions."""
    monkeypatch.setenv("SHOP_LEDGER", str(tmp_path / "bank.db"))
    words = ["--depth", "turn", "--config", SUPPORT / "everturn.toml", "--agent", "support", "--model", "offline"]
    async with Provider() as provider:
        provider.script("support", [look_or_guess] * 6)
        monkeypatch.setenv("EVERTURN_MODELS__OFFLINE__BASE_URL", f"{provider.url}/v1")
        code, report = await asyncio.to_thread(run_eval, "support-bot", tmp_path, *words)
        assert (code, report.requests) == (0, 3)
        code, report = await asyncio.to_thread(run_eval, "support-bot", tmp_path, *words, "--system", SHORTER)
    assert code == 2
    divergence = report.cases[0].samples[0].divergence
    assert divergence is not None
    assert divergence.call == 'refund {"amount":400,"number":"1001"}'
    assert divergence.recorded == 'refund {"amount":40,"number":"1001"}'
    assert not (tmp_path / "bank.db").exists()  # no tool ran
