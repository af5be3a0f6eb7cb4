"""Datasets, tasks and reports in the real pydantic-evals: `scripts/eval-bridges` installs it."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pydantic_evals = pytest.importorskip("pydantic_evals", reason="it is not installed here: run scripts/eval-bridges")

from pydantic_evals.evaluators import Contains, EqualsExpected  # noqa: E402
from pydantic_evals.reporting import EvaluationReportAdapter  # noqa: E402

from everturn import Agent, Rule  # noqa: E402
from everturn.errors import ConfigError  # noqa: E402
from everturn.evals import Case, Dataset, EvalChange, evaluate, make_check  # noqa: E402
from everturn.evals.bridges.pydantic_evals import (  # noqa: E402
    RUN,
    EverturnCheck,
    NotDivergent,
    agent_task,
    recorded_task,
    to_pydantic_evals,
    to_pydantic_report,
)
from everturn.testing import ScriptedModel, say  # noqa: E402
from tests.evals.shop import QUESTION, Shop, record_refund, refund_model  # noqa: E402

EXAMPLES = Path(__file__).parents[3] / "examples"
CHECKS = [
    make_check({"kind": "called", "tool": "refund", "arguments": {"amount": 40}}),
    make_check({"kind": "gate_asked", "tool": "refund"}),
]


async def shop_dataset(approval: str = "ask") -> Dataset:
    return Dataset("shop", [Case("refund", await record_refund(Shop(approval)), CHECKS)])


async def evaluated(dataset: Any, task: Any, **how: Any) -> Any:
    return await dataset.evaluate(task, progress=False, **how)


def values(case: Any) -> dict[str, bool]:
    return {name: result.value for name, result in case.assertions.items()}


async def test_a_dataset_runs_from_its_recordings() -> None:
    dataset = await shop_dataset()
    report = await evaluated(to_pydantic_evals(dataset), recorded_task(dataset))
    [case] = report.cases
    assert (report.failures, case.evaluator_failures) == ([], [])
    assert case.inputs == {"case": "refund", "message": QUESTION}
    assert (case.output, case.expected_output) == ("You get 40 back.", "You get 40 back.")
    assert values(case) == {"called refund": True, "gate_asked refund": True, "not_divergent": True}
    assert case.metrics == {"steps": 3, "tool_calls": 2, "tokens": 10}
    EvaluationReportAdapter.validate_json(EvaluationReportAdapter.dump_json(report))  # it can be kept


async def test_one_digit_more_is_not_served_and_the_reason_shows_both_calls() -> None:
    dataset, shop = await shop_dataset(), Shop()
    task = recorded_task(dataset, model=refund_model(amount=41), tools=shop.tools)
    [case] = (await evaluated(to_pydantic_evals(dataset), task)).cases
    assert values(case) == {"called refund": False, "gate_asked refund": True, "not_divergent": False}
    reason = case.assertions["not_divergent"].reason
    assert 'refund {"amount":41,"number":"4512"}' in reason
    assert 'recorded: refund {"amount":40,"number":"4512"}' in reason
    assert (shop.read, shop.refunded) == ([], [])


async def test_an_agent_is_a_task_and_its_tools_run() -> None:
    dataset, shop = await shop_dataset("auto"), Shop("auto")
    cases = to_pydantic_evals(dataset)
    cases.evaluators += [EqualsExpected(), Contains("40 back")]  # of pydantic-evals
    agent = Agent(refund_model(), name="desk", tools=shop.tools)
    report = await evaluated(cases, agent_task(agent), repeat=2)
    assert report.name == "desk"
    assert shop.refunded == [("4512", 40)] * 2
    for case in report.cases:
        assert case.source_case_name == "refund"
        assert values(case) == {
            **{"called refund": True, "gate_asked refund": False},
            **{"EqualsExpected": True, "Contains": True},
        }
        assert [call["tool"] for call in case.attributes[RUN]["calls"]] == ["get_order", "refund"]


async def test_an_agent_is_a_task_for_datasets_of_other_origin() -> None:
    cases = pydantic_evals.Dataset(
        name="capitals",
        cases=[pydantic_evals.Case(name="France", inputs="France?", expected_output="Paris")],
        evaluators=[EqualsExpected(), EverturnCheck({"kind": "max_calls", "max": 0})],
    )
    [case] = (await evaluated(cases, agent_task(Agent(ScriptedModel(say("Paris")))))).cases
    assert values(case) == {"EqualsExpected": True, "max_calls 0": True}


async def test_a_changed_rule_is_seen_at_depth_pure() -> None:
    dataset = await shop_dataset()
    task = recorded_task(dataset, depth="pure", change=EvalChange(rules=[Rule("refund", "deny")]))
    [case] = (await evaluated(to_pydantic_evals(dataset), task)).cases
    assert values(case)["called refund"] is False


async def test_a_file_has_all_of_a_dataset(tmp_path: Path) -> None:
    dataset = await shop_dataset()
    kinds: Any = [EverturnCheck, NotDivergent]
    file = tmp_path / "shop.yaml"
    to_pydantic_evals(dataset).to_file(file, custom_evaluator_types=kinds)
    kind = pydantic_evals.Dataset[dict[str, str], str, dict[str, str]]
    read = kind.from_file(file, custom_evaluator_types=kinds)
    [case] = (await evaluated(read, recorded_task(dataset))).cases
    assert values(case) == {"called refund": True, "gate_asked refund": True, "not_divergent": True}


@pytest.mark.parametrize("name", sorted(path.parents[1].name for path in EXAMPLES.glob("*/recorded/dataset.toml")))
async def test_every_example_passes(name: str) -> None:
    folder = EXAMPLES / name / "recorded"
    report = await evaluated(to_pydantic_evals(folder), recorded_task(folder))
    assert report.failures == []
    assert all(case.evaluator_failures == [] and all(values(case).values()) for case in report.cases)


async def test_python_checks_and_judges_are_evaluators(tmp_path: Path) -> None:
    def is_polite(run: Any, recorded: Any) -> str | bool:
        return "please" in run.text or "not polite"

    (tmp_path / "checks.py").write_text("def has_amount(run, recorded):\n    return '40' in run.text\n")
    judge = make_check({"kind": "judge", "rubric": "It is short."})
    checks = [is_polite, make_check({"kind": "python", "function": "checks.py:has_amount"}), judge]
    dataset = Dataset("shop", [Case("refund", await record_refund(), checks)], (), tmp_path)
    [case] = (await evaluated(to_pydantic_evals(dataset), recorded_task(dataset))).cases
    assert values(case) == {"is_polite": False, "python": True, "not_divergent": True}
    assert case.assertions["is_polite"].reason == "not polite"
    [failure] = case.evaluator_failures  # no judge was given: that is no verdict
    assert "needs a judge model" in failure.error_message


async def test_a_task_that_is_not_ours_is_no_verdict() -> None:
    async def other(inputs: dict[str, str]) -> str:
        return "You get 40 back."

    [case] = (await evaluated(to_pydantic_evals(await shop_dataset()), other)).cases
    assert case.assertions == {}
    assert {"agent_task" in failure.error_message for failure in case.evaluator_failures} == {True}


async def test_an_agent_that_waits_for_a_person_is_a_failure() -> None:
    agent = Agent(refund_model(), tools=Shop("ask").tools)
    report = await evaluated(to_pydantic_evals(await shop_dataset()), agent_task(agent))
    assert report.cases == []
    assert "waits for a person" in report.failures[0].error_message


async def test_results_are_a_report_that_can_be_a_baseline() -> None:
    dataset, shop = await shop_dataset(), Shop()
    results = await evaluate(dataset, depth="turn", model=refund_model(amount=41), tools=shop.tools, samples=2)
    report = to_pydantic_report(results, dataset)
    assert [case.name for case in report.cases] == ["refund [1/2]", "refund [2/2]"]
    assert values(report.cases[0]) == {"called refund": False, "gate_asked refund": True, "not_divergent": False}
    assert report.averages().assertions == pytest.approx(1 / 3)
    now = await evaluated(to_pydantic_evals(dataset), recorded_task(dataset))
    assert "refund" in now.render(baseline=report, include_reasons=True)
    bad = Case("bad", (await record_refund()).__class__(dataset.cases[0].recording.events[:-1], "bad"))
    broken = Dataset("broken", [bad])
    [failure] = to_pydantic_report(await evaluate(broken, depth="turn"), broken).failures
    assert "is not over" in failure.error_message
    with pytest.raises(ConfigError, match="has no case 'refund'"):
        to_pydantic_report(results, broken)


async def test_the_example_of_the_guide_prints_what_it_shows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    source = EXAMPLES.parent / "docs_src" / "guides" / "eval_bridges_pydantic.py"
    values: dict[str, Any] = {"__name__": "guide"}
    exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), values)
    await values["main"]()
    assert capsys.readouterr().out == source.with_suffix(".txt").read_text(encoding="utf-8")
