"""Judges: a rubric, a model of their own, swapped orders, and requests that are recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everturn.core.canonical_json import encode_canonical
from everturn.errors import ConfigError
from everturn.evals import Case, Dataset, EvalReport, evaluate, make_check
from everturn.replay import Recording
from everturn.testing import ScriptedModel, say
from tests.evals.shop import Shop, record_refund, refund_model

RUBRIC = "The answer names the amount."


def opinion(passed: bool) -> Any:
    return say(encode_canonical({"reason": "it names 40", "passed": passed}))


async def report_of(
    judge: ScriptedModel, compare: bool = False, recording: Recording | None = None, **how: Any
) -> EvalReport:
    check = make_check({"kind": "judge", "rubric": RUBRIC, **({"compare": True} if compare else {})})
    data = Dataset("shop", [Case("one", recording or await record_refund(), [check])])
    how = {"model": refund_model(text="40 are yours."), "tools": Shop().tools, **how}
    return await evaluate(data, depth="turn", judge=judge, **how)


@pytest.mark.parametrize("passed", [True, False])
async def test_a_judge_decides_by_the_rubric(passed: bool) -> None:
    judge = ScriptedModel(opinion(passed), name="judge")
    report = await report_of(judge)
    [result] = report.cases[0].samples[0].checks
    assert (result.passed, result.reason) == (passed, "" if passed else "it names 40")
    [request] = judge.requests
    question = request.messages[0].text
    assert RUBRIC in question
    assert "40 are yours." in question
    assert 'refund {"amount":40,"number":"4512"}' in question


@pytest.mark.parametrize(
    ("first", "second", "passed"),
    [("first", "second", False), ("first", "first", True), ("second", "second", True), ("equal", "second", True)],
)
async def test_the_recorded_answer_must_be_better_in_both_orders(first: str, second: str, passed: bool) -> None:
    prompts: list[str] = []

    class Judge:
        name = "judge"

        async def stream(self, request: Any) -> Any:
            prompts.append(request.messages[0].text)
            better = first if len(prompts) == 1 else second
            async for chunks in ScriptedModel(say(encode_canonical({"reason": "r", "better": better}))).stream(request):
                yield chunks

    report = await report_of(Judge(), compare=True)  # pyright: ignore[reportArgumentType]
    assert report.cases[0].samples[0].checks[0].passed is passed
    # The recorded answer is the first of the first question, and the second of the second.
    assert [text.index("You get 40 back.") < text.index("40 are yours.") for text in prompts] == [True, False]


async def test_the_requests_of_a_judge_are_recorded_and_not_repeated(tmp_path: Path) -> None:
    judge = ScriptedModel(opinion(False), name="judge")
    recording = await record_refund()
    first = await report_of(judge, recording=recording, folder=tmp_path / "run")
    again = ScriptedModel(opinion(True), name="judge")
    second = await report_of(again, recording=recording, folder=tmp_path / "run")
    assert (len(judge.requests), len(again.requests)) == (1, 0)
    assert first.cases[0].samples[0].checks == second.cases[0].samples[0].checks
    [file] = (tmp_path / "run").rglob("*judge*.jsonl")
    assert RUBRIC in str(Recording.read(file).events)


async def test_the_model_under_test_is_no_judge() -> None:
    with pytest.raises(ConfigError, match="both new"):
        await report_of(ScriptedModel(name="new"))


async def test_without_a_judge_model_a_judge_is_an_error() -> None:
    with pytest.raises(ConfigError, match="needs a judge model"):
        await report_of(None)  # pyright: ignore[reportArgumentType]
