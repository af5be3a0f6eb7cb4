"""Samples as branches: each is another answer to the recorded message."""

from __future__ import annotations

from pathlib import Path

from everturn.core.events import AnswerStarted, TurnStarted
from everturn.evals import Case, Dataset, evaluate
from everturn.evals.branches import write_branches
from everturn.stores.import_check import check_log
from everturn.stores.memory import MemoryStore
from tests.evals.shop import Shop, record_refund, refund_model


async def test_samples_are_sibling_answers_beside_the_recorded_one(tmp_path: Path) -> None:
    recording, store = await record_refund(), MemoryStore()
    data = Dataset("shop", [Case("refund", recording)])
    await evaluate(
        data,
        depth="turn",
        model=refund_model(text="40 are yours."),
        tools=Shop().tools,
        samples=2,
        folder=tmp_path / "run",
    )
    assert await write_branches(store, data, tmp_path / "run") == ["eval-refund"]
    log = [entry.event for entry in await store.events("eval-refund")]
    check_log(log)
    [message] = [event.input.id for event in log if isinstance(event, TurnStarted) and event.input is not None]
    answers = [event.message for event in log if isinstance(event, AnswerStarted)]
    assert len({answer.id for answer in answers}) == 3
    assert {answer.parent for answer in answers} == {message}
    texts = [(await store.path("eval-refund", answer.id))[-1].text for answer in answers]
    assert texts == ["You get 40 back.", "40 are yours.", "40 are yours."]


async def test_a_divergent_sample_is_a_branch_too(tmp_path: Path) -> None:
    recording, store = await record_refund(), MemoryStore()
    data = Dataset("shop", [Case("refund", recording)])
    how = {"model": refund_model(amount=41), "tools": Shop().tools}
    await evaluate(data, depth="turn", folder=tmp_path / "run", **how)  # pyright: ignore[reportArgumentType]
    await write_branches(store, data, tmp_path / "run")
    check_log([entry.event for entry in await store.events("eval-refund")])
