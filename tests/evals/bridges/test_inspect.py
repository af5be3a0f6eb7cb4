"""Tasks, solvers, scorers and logs in the real Inspect: `scripts/eval-bridges` installs it."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

inspect_ai = pytest.importorskip("inspect_ai", reason="it is not installed here: run scripts/eval-bridges")

from inspect_ai import Epochs  # noqa: E402
from inspect_ai.log import bundle_log_dir, read_eval_log  # noqa: E402
from inspect_ai.scorer import Score, pass_at, pass_k  # noqa: E402

from everturn import Agent  # noqa: E402
from everturn.cli import main  # noqa: E402
from everturn.evals import Case, Dataset, evaluate, make_check, pass_at_k, pass_hat_k  # noqa: E402
from everturn.evals.bridges.inspect_ai import (  # noqa: E402
    RUN,
    SCORER,
    check_scorer,
    to_inspect,
    write_inspect_log,
)
from everturn.evals.bridges.inspect_messages import DIVERGENT  # noqa: E402
from everturn.replay import Recording  # noqa: E402
from tests.evals.shop import QUESTION, Shop, record_refund, refund_model  # noqa: E402
from tests.evals.test_depths import InTurn  # noqa: E402

# Inspect leaves streams of anyio open when it ends; ours has none.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
CALLED = make_check({"kind": "called", "tool": "refund", "arguments": {"amount": 40}})


def shop_dataset(approval: str = "ask") -> Dataset:
    recording = asyncio.run(record_refund(Shop(approval), system="Look it up."))
    return Dataset("shop", [Case("refund", recording, [CALLED])])


def run_task(task: Any, folder: Path, **how: Any) -> Any:
    """Run a task with Inspect, and read the log that it wrote."""
    [log] = inspect_ai.eval(task, model="none", log_dir=str(folder), display="none", **how)
    assert log.status == "success", log.error
    return read_eval_log(log.location)


def figures(log: Any) -> dict[str | None, float]:
    """Accuracy by reducer."""
    return {score.reducer: score.metrics["accuracy"].value for score in log.results.scores}


# Statistics ---------------------------------------------------------------------------------------------------------


def test_pass_at_k_and_pass_hat_k_are_those_of_inspect_on_1000_vectors() -> None:
    chance = random.Random(26)
    seen: set[tuple[bool, bool]] = set()
    for _ in range(1000):
        vector = [chance.random() < chance.random() for _ in range(chance.randint(1, 40))]
        k = chance.randint(1, len(vector))
        scores = [Score(value="C" if passed else "I") for passed in vector]
        theirs = [reducer(k)(scores).as_float() for reducer in (pass_at, pass_k)]
        ours = [pass_at_k(len(vector), sum(vector), k), pass_hat_k(len(vector), sum(vector), k)]
        assert ours == pytest.approx(theirs, abs=1e-12)
        seen.add((0 < ours[0] < 1, 0 < ours[1] < 1))
    assert seen == {(False, False), (False, True), (True, False), (True, True)}  # not only zeros and ones


# Tasks --------------------------------------------------------------------------------------------------------------


def test_a_dataset_is_a_task_and_its_log_has_the_conversation(tmp_path: Path) -> None:
    log = run_task(to_inspect(shop_dataset()), tmp_path)
    assert figures(log) == {None: 1.0}
    [sample] = log.samples
    assert (sample.id, sample.input, sample.target) == ("refund", QUESTION, "You get 40 back.")
    assert [message.role for message in sample.messages] == [
        *("system", "user", "assistant", "tool", "assistant", "tool", "assistant"),
    ]
    assert sample.messages[4].tool_calls[0].arguments == {"amount": 40, "number": "4512"}
    assert sample.output.completion == "You get 40 back."
    assert sample.scores[SCORER].metadata["checks"] == {"called refund": True}
    assert Recording.load(sample.store[RUN]["recording"].encode()).turns  # the log of ours is in it


def test_epochs_are_samples_and_reducers_count_them(tmp_path: Path) -> None:
    shop, model = Shop(), InTurn([refund_model(), refund_model(amount=41)])
    task = to_inspect(shop_dataset(), model=model, tools=shop.tools)
    log = run_task(task, tmp_path, epochs=Epochs(4, ["mean", "pass_at_2", "pass_k_2"]), max_samples=1)
    assert figures(log) == pytest.approx(
        {"mean": 0.5, "pass_at_2": pass_at_k(4, 2, 2), "pass_k_2": pass_hat_k(4, 2, 2)}
    )
    wrong = next(sample for sample in log.samples if sample.scores[SCORER].value == "I")
    assert wrong.scores[SCORER].explanation.startswith("divergent: the recording has no call with these arguments")
    assert wrong.messages[-1].error.message == DIVERGENT
    assert (shop.read, shop.refunded) == ([], [])


def test_an_agent_is_a_solver_and_its_tools_run(tmp_path: Path) -> None:
    shop = Shop("auto")
    agent = Agent(refund_model(), name="desk", instructions="Be kind.", tools=shop.tools)
    log = run_task(to_inspect(shop_dataset("auto"), agent=agent), tmp_path)
    assert figures(log) == {None: 1.0}
    assert log.samples[0].messages[0].text == "Be kind."
    assert shop.refunded == [("4512", 40)]


def test_a_kept_log_is_scored_again(tmp_path: Path) -> None:
    dataset = shop_dataset()
    log = run_task(to_inspect(dataset), tmp_path)
    stricter = Dataset(
        "shop", [Case("refund", dataset.cases[0].recording, [make_check({"kind": "max_steps", "max": 2})])]
    )
    again = inspect_ai.score(log, check_scorer(stricter), action="overwrite", display="none")
    assert figures(again) == {None: 0.0}
    assert "3 steps" in again.samples[0].scores[SCORER].explanation


def test_a_case_that_cannot_run_is_an_error_of_its_sample(tmp_path: Path) -> None:
    whole = shop_dataset().cases[0].recording
    dataset = Dataset("shop", [Case("bad", Recording(whole.events[:-1], "bad")), Case("good", whole)])
    log = run_task(to_inspect(dataset), tmp_path, fail_on_error=False)
    errors = {sample.id: sample.error for sample in log.samples}
    assert "is not over" in errors["bad"].message
    assert errors["good"] is None


def test_the_command_of_inspect_runs_the_task_of_the_guide_on_every_example(tmp_path: Path) -> None:
    guide = (ROOT / "docs_src" / "guides" / "eval_bridges_inspect.py").read_text(encoding="utf-8")
    assert '"examples/support-bot/recorded"' in guide
    (tmp_path / "tasks.py").write_text(guide.replace('"examples/support-bot/recorded"', repr(str(EXAMPLES))))
    command = [str(Path(sys.executable).parent / "inspect"), "eval", "tasks.py", "--model", "none", "--log-dir", "logs"]
    done = subprocess.run([*command, "--display", "plain"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [file] = (tmp_path / "logs").glob("*.eval")
    log = read_eval_log(str(file))
    assert (log.results.total_samples, figures(log)) == (7, {None: 1.0})


# Logs ---------------------------------------------------------------------------------------------------------------


def test_results_are_a_log_with_the_figures_of_the_report(tmp_path: Path) -> None:
    dataset, model = shop_dataset(), InTurn([refund_model(), refund_model(amount=41)])
    report = asyncio.run(
        evaluate(dataset, depth="turn", model=model, tools=Shop().tools, samples=4, folder=tmp_path / "run", parallel=1)
    )
    write_inspect_log(report, dataset, tmp_path / "shop.eval", tmp_path / "run")
    log = read_eval_log(str(tmp_path / "shop.eval"))
    assert figures(log) == {"mean": 0.5, "pass_at_4": 1.0, "pass_k_4": 0.0}
    assert [sample.scores[SCORER].value for sample in log.samples] == ["C", "I", "C", "I"]
    assert [len(sample.messages) for sample in log.samples] == [7, 6, 7, 6]
    assert log.samples[1].messages[-1].error.message == DIVERGENT
    theirs = [reducer(4)([sample.scores[SCORER] for sample in log.samples]).as_float() for reducer in (pass_at, pass_k)]
    assert theirs == [report.pass_at(4), report.pass_hat(4)]


def test_the_command_writes_a_log_that_inspect_reads(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "examples.eval"
    assert main(["eval", str(EXAMPLES), "--depth", "turn", "-q", "--report", str(file)]) == 0
    log = read_eval_log(str(file))
    assert (log.status, figures(log)) == ("success", {None: 1.0})
    assert all(len(sample.messages) >= 4 for sample in log.samples)
    bundle_log_dir(str(file.parent), str(tmp_path / "site"))  # what `inspect view` serves
    assert (tmp_path / "site" / "index.html").is_file()
    assert list((tmp_path / "site").rglob("examples.eval"))
