"""Depth turn: the model answers freely, and tools are answered from the recording or not at all."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat, Rule
from everturn.errors import ConfigError
from everturn.evals import Case, Dataset, EvalChange, SampleResult, evaluate
from everturn.replay import Recording
from everturn.testing import ScriptedModel, call, calls, say
from tests.evals.shop import Shop, record_refund, record_with, refund_model, refund_script

EXAMPLES = Path(__file__).parents[2] / "examples"
RECORDED = sorted(EXAMPLES.glob("*/recorded/*.jsonl"))


def unreachable(self: socket.socket, address: object) -> None:
    raise AssertionError(f"this evaluation is offline, and wanted to reach {address}")


def dataset(*recordings: Recording) -> Dataset:
    return Dataset("shop", [Case(f"case-{number}", item) for number, item in enumerate(recordings, 1)])


async def sample_of(recording: Recording, **how: object) -> SampleResult:
    report = await evaluate(dataset(recording), depth="turn", **how)  # pyright: ignore[reportArgumentType]
    return report.cases[0].samples[0]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_without_a_change_every_example_is_reproduced_offline(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket.socket, "connect", unreachable)
    sample = await sample_of(Recording.read(path))
    assert (sample.status, sample.is_reproduced, sample.requests, sample.tokens) == ("passed", True, 0, 0)


async def test_a_reproduction_is_not_claimed_of_another_log() -> None:
    sample = await sample_of(await record_refund(), model=refund_model(text="Done."), tools=Shop().tools)
    assert (sample.status, sample.is_reproduced) == ("passed", False)


async def test_recorded_results_are_served_and_no_tool_runs() -> None:
    recording, shop = await record_refund(), Shop()
    sample = await sample_of(recording, model=refund_model(), tools=shop.tools)
    assert sample.status == "passed"
    assert sample.actions == ('refund {"amount":40,"number":"4512"}',)
    assert (shop.read, shop.refunded) == ([], [])


@pytest.mark.parametrize("approval", ["ask", "auto"])
async def test_one_digit_more_is_divergent_and_the_tool_does_not_run(approval: str) -> None:
    recording, shop = await record_refund(Shop(approval)), Shop(approval)
    model = ScriptedModel(*refund_script(amount=41), say("never asked for"))
    sample = await sample_of(recording, model=model, tools=shop.tools)
    assert sample.status == "divergent"
    assert shop.refunded == []
    assert sample.divergence is not None
    assert sample.divergence.call == 'refund {"amount":41,"number":"4512"}'
    assert sample.divergence.recorded == 'refund {"amount":40,"number":"4512"}'
    assert len(model.requests) == 2  # nothing is requested after it


async def test_an_idempotent_tool_that_is_not_recorded_does_not_run_either() -> None:
    recording, shop = await record_with(Shop(), calls(call("get_order", number="1")), say("Yes.")), Shop("auto")
    sample = await sample_of(recording, model=ScriptedModel(*refund_script("1")), tools=shop.tools)
    assert (sample.status, shop.refunded) == ("divergent", [])
    assert sample.divergence is not None
    assert sample.divergence.reason == "the recording has no call of this tool"


async def test_an_answer_about_one_order_is_not_served_for_another() -> None:
    recording, shop = await record_refund(), Shop()
    sample = await sample_of(recording, model=refund_model("999"), tools=shop.tools)
    assert (sample.status, shop.read) == ("divergent", [])


async def test_a_read_that_is_not_recorded_runs_if_that_is_chosen() -> None:
    recording, shop = await record_refund(), Shop()
    model = ScriptedModel(calls(call("get_order", number="999")), *refund_script())
    sample = await sample_of(recording, model=model, tools=shop.tools, on_miss="run")
    assert (sample.status, shop.read, shop.refunded) == ("passed", ["999"], [])


async def test_what_acts_does_not_run_even_if_reads_may() -> None:
    recording, shop = await record_refund(), Shop("auto")
    model = ScriptedModel(*refund_script(amount=41))
    sample = await sample_of(recording, model=model, tools=shop.tools, on_miss="run", match="name")
    assert (sample.status, shop.refunded) == ("divergent", [])


async def test_results_are_served_in_the_order_of_their_calls() -> None:
    pages = [calls(call("next_page")), calls(call("next_page")), say("Two pages.")]
    recording, shop = await record_with(Shop(), *pages), Shop()
    model = ScriptedModel(*pages)
    sample = await sample_of(recording, model=model, tools=shop.tools)
    assert sample.status == "passed"
    results = [getattr(part, "text", "") for part in model.requests[-1].messages[-1].parts]
    assert results[-1] == "page 2"
    one_more = await sample_of(recording, model=ScriptedModel(*pages[:2], *pages), tools=shop.tools)
    assert one_more.status == "divergent"
    assert one_more.divergence is not None
    assert one_more.divergence.reason == "the recording has fewer calls with these arguments"
    assert shop.pages == 0


async def test_a_person_who_denied_denies_again() -> None:
    script = [*refund_script()[:2], say("It was not allowed.")]
    recording, shop = await record_with(Shop(), *script, allow=False), Shop()
    sample = await sample_of(recording, model=ScriptedModel(*script), tools=shop.tools)
    assert (sample.status, sample.actions, shop.refunded) == ("passed", (), [])


async def test_a_question_that_is_new_is_reported_and_the_recorded_result_served() -> None:
    recording = await record_refund(Shop("auto"))
    sample = await sample_of(recording, change=EvalChange(rules=[Rule("refund", "ask")]))
    assert sample.status == "passed"
    assert [line.split(": ")[-1] for line in sample.decisions] == ["was allow; is ask"]


async def test_a_rule_that_denies_names_the_same_calls_at_both_depths() -> None:
    recording = await record_refund(Shop("auto"))
    change = EvalChange(rules=[Rule("refund", "deny", source="toml:3")])
    named: list[set[str]] = []
    for depth in ("pure", "turn"):
        report = await evaluate(dataset(recording), depth=depth, change=change)
        [sample] = report.cases[0].samples
        assert sample.status in ("failed", "divergent")
        assert not sample.actions
        named.append({line.partition(" ")[0] for line in sample.decisions})
    assert len(named[0]) == 1
    assert named[0] == named[1]


async def test_a_tool_with_another_description_is_another_tool_unless_names_are_enough() -> None:
    recording, shop = await record_refund(), Shop(description="Give money back, quickly.")
    sample = await sample_of(recording, model=refund_model(), tools=shop.tools)
    assert sample.divergence is not None
    assert sample.divergence.reason == "the tool has another schema, description or origin than the recorded one"
    by_name = await sample_of(recording, model=refund_model(), tools=shop.tools, match="name")
    assert (by_name.status, shop.refunded) == ("passed", [])


async def test_the_instructions_are_those_of_the_change() -> None:
    recording = await record_refund(system="Look the order up first.")
    model = ScriptedModel(*refund_script())
    await sample_of(recording, model=model, tools=Shop().tools, change=EvalChange(system="Be brief."))
    assert [request.system for request in model.requests] == ["Be brief."] * 3


async def test_earlier_turns_are_history_and_each_turn_is_run_with_the_recorded_one() -> None:
    shop = Shop("auto")
    first = await record_refund(shop)
    sample = await sample_of(first)
    assert sample.is_reproduced
    async with Chat(ScriptedModel(*refund_script(), say("Lamps are bright."), name="old"), tools=shop.tools) as chat:
        await (await chat.send("Refund 4512"))
        await (await chat.send("And lamps?"))
        both = await Recording.from_session(chat.app.store, chat.session)
    again = await sample_of(both)
    assert (again.status, again.is_reproduced, again.steps) == ("passed", True, 4)


# Forks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fork_at", "script", "status"),
    [
        (1, refund_script(), "passed"),
        (1, refund_script("999"), "divergent"),  # the order that was looked up is the recorded one
        (2, refund_script("999"), "passed"),
    ],
)
async def test_a_fork_keeps_the_recorded_steps_and_the_model_answers_after_them(
    fork_at: int, script: tuple[Any, ...], status: str
) -> None:
    recording, shop = await record_refund(), Shop()
    model = ScriptedModel(*script)
    change = EvalChange(system="Be brief.")
    sample = await sample_of(recording, model=model, tools=shop.tools, fork_at=fork_at, change=change)
    assert (sample.status, sample.requests) == (status, len(model.requests))
    assert [len(request.messages) for request in model.requests] == [1 + 2 * step for step in range(fork_at, 3)][
        : len(model.requests)
    ]
    assert model.requests[0].system == "Be brief."
    assert "a lamp for 40" in str(model.requests[0].messages[2])  # the recorded result
    assert (shop.read, shop.refunded) == ([], [])


async def test_a_fork_is_of_the_last_turn_and_those_before_it_stay() -> None:
    shop = Shop("auto")
    async with Chat(ScriptedModel(*refund_script(), *refund_script("7"), name="old"), tools=shop.tools) as chat:
        await (await chat.send("Refund 4512"))
        await (await chat.send("And 7"))
        both = await Recording.from_session(chat.app.store, chat.session)
    whole = await sample_of(both, model=ScriptedModel(*refund_script(), *refund_script("7")), tools=Shop("auto").tools)
    fork = await sample_of(both, model=ScriptedModel(*refund_script("7") * 2), tools=Shop("auto").tools, fork_at=1)
    assert (fork.status, fork.requests, fork.steps) == ("passed", 2, whole.steps)
    assert 0 < fork.tokens < whole.tokens  # those of the requests that were sent


async def test_a_fork_needs_a_step_after_it_and_a_model() -> None:
    recording, shop = await record_refund(), Shop()
    sample = await sample_of(recording, model=refund_model(), tools=shop.tools, fork_at=3)
    assert sample.error == "ConfigError: there is nothing to answer after step 3: the last turn has 3 steps"
    with pytest.raises(ConfigError, match="a model answers from there"):
        await sample_of(recording, fork_at=1)
