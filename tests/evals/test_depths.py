"""Depths pure, step and live."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from everturn.core.chunks import Chunk
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError
from everturn.evals import Case, Dataset, EvalChange, SampleResult, evaluate, make_check
from everturn.replay import Recording
from everturn.testing import ScriptedModel, call, calls, say
from tests.evals.shop import Shop, record_refund, refund_model


class InTurn:
    """The first model answers the first conversation, the second the second."""

    name = "in turn"

    def __init__(self, models: list[Model]) -> None:
        self._models = models

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        if len(request.messages) == 1:
            self._models.append(self._models.pop(0))
        return self._models[-1].stream(request)


async def sample_of(recording: Recording, depth: str, **how: object) -> SampleResult:
    report = await evaluate(Dataset("shop", [Case("one", recording)]), depth=depth, **how)  # pyright: ignore[reportArgumentType]
    return report.cases[0].samples[0]


async def test_pure_reproduces_a_recording() -> None:
    sample = await sample_of(await record_refund(), "pure")
    assert (sample.status, sample.is_reproduced, sample.requests) == ("passed", True, 0)
    assert sample.seconds > 0


async def test_pure_shows_the_prompt_that_differs() -> None:
    recording = await record_refund(system="Look the order up first.")
    report = await evaluate(Dataset("s", [Case("one", recording)]), change=EvalChange(system="Be brief."))
    assert "-Look the order up first." in report.cases[0].prompt_diff
    assert "+Be brief." in report.cases[0].prompt_diff


async def test_a_step_is_asked_with_the_recorded_history_whatever_was_answered_before() -> None:
    model = ScriptedModel(say("I do not need to look."), calls(call("refund", number="4512", amount=40)), say("Done."))
    shop = Shop()
    sample = await sample_of(await record_refund(), "step", model=model, tools=shop.tools)
    assert sample.agreement == pytest.approx(2 / 3)
    assert [len(request.messages) for request in model.requests] == [1, 3, 5]
    assert (sample.requests, shop.refunded, shop.read) == (3, [], [])
    assert sample.status == "passed"  # the refund was proposed with the same arguments


async def test_a_step_that_proposes_another_amount_fails() -> None:
    sample = await sample_of(await record_refund(), "step", model=refund_model(amount=41), tools=Shop().tools)
    assert sample.status == "failed"
    assert sample.actions == ('refund {"amount":41,"number":"4512"}',)


async def test_live_denies_what_may_run_only_once_unless_it_is_named() -> None:
    recording, shop = await record_refund(Shop("auto")), Shop("auto")
    denied = await sample_of(recording, "live", model=refund_model(), tools=shop.tools)
    assert (denied.status, shop.refunded, shop.read) == ("failed", [], ["4512"])
    allowed = await sample_of(recording, "live", model=refund_model(), tools=shop.tools, allow_tools=["refund"])
    assert (allowed.status, shop.refunded) == ("passed", [("4512", 40)])


async def test_a_python_function_is_a_check() -> None:
    def is_polite(run: object, recorded: object) -> str:
        return "not polite"

    data = Dataset("shop", [Case("one", await record_refund(), [is_polite, make_check({"kind": "same_calls"})])])
    report = await evaluate(data)
    assert [(check.name, check.passed, check.reason) for check in report.cases[0].samples[0].checks] == [
        ("is_polite", False, "not polite"),
        ("same_calls", True, ""),
    ]
    assert report.exit_code == 1


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"depth": "live"}, "needs a model"),
        ({"depth": "pure", "model": ScriptedModel()}, "uses no model"),
        ({"depth": "turn", "samples": 2}, "several samples need a model"),
        ({"depth": "turn", "model": ScriptedModel()}, "pass the tools \\(get_order, refund\\)"),
    ],
)
async def test_what_does_not_fit_together_is_an_error(how: dict[str, object], text: str) -> None:
    data = Dataset("shop", [Case("one", await record_refund())])
    with pytest.raises(ConfigError, match=text):
        await evaluate(data, **how)  # pyright: ignore[reportArgumentType]


async def test_a_recording_that_cannot_be_run_again_is_an_error_of_its_case_alone() -> None:
    good = await record_refund()
    bad = Recording(good.events[:-1], good.name)
    report = await evaluate(Dataset("shop", [Case("bad", bad), Case("good", good)]), depth="turn")
    assert [case.status for case in report.cases] == ["error", "passed"]
    assert "is not over" in report.cases[0].samples[0].error
    assert all(case.samples[0].seconds > 0 for case in report.cases)
    assert report.exit_code == 3


async def test_samples_are_counted_and_differ_from_case_to_case() -> None:
    recording = await record_refund()
    model = InTurn([refund_model(), refund_model(amount=41)])
    data = Dataset("shop", [Case("one", recording)])
    report = await evaluate(data, depth="turn", model=model, tools=Shop().tools, samples=2, parallel=1)
    assert [sample.status for sample in report.cases[0].samples] == ["passed", "divergent"]
    assert (report.pass_at(1), report.pass_at(2), report.pass_hat(2)) == (0.5, 1.0, 0.0)
    assert (report.divergent_share, report.exit_code) == (0.5, 2)
