"""Forks inside an answer: which steps there are to fork after, and what a copy has of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from everturn.core.forks import fork_answer, forkable_steps
from everturn.core.history import render_history
from everturn.core.messages import ForkPoint, Message
from everturn.core.options import ToolHistory
from everturn.core.parts import (
    FileChange,
    FilesPart,
    NoticePart,
    Output,
    Part,
    ProviderToolPart,
    ReasoningPart,
    StepPart,
    TextPart,
    ToolPart,
    Usage,
)
from everturn.core.requests import RequestCall, RequestResult
from everturn.errors import CommandRefused

USAGE = Usage(input=10, output=5, cost=0.1)
DONE = Output("seen")
OUTER = ToolPart("c1", "plan", "{}", "completed", DONE)
STEPS: tuple[Part, ...] = (
    ReasoningPart("Hm."),
    TextPart("I look."),
    OUTER,
    StepPart(1, "tool_calls", USAGE),
    ToolPart("c1.a", "look", "{}", "completed", DONE, parent="c1"),
    ToolPart("c1.b", "look", "{}", "completed", DONE, parent="c1.a"),
    FilesPart(1, "t0", "t1", (FileChange("a.txt", "added", 1, 0),)),
    ToolPart("c2", "look", "{}", "failed", Output("gone")),
    StepPart(2, "tool_calls", USAGE, "fallback"),
    TextPart("It is a "),
    StepPart(3, "length", USAGE, continues=True),
    TextPart("turtle."),
    StepPart(4, "stop", USAGE),
)
ANSWER = Message("a", "q", "assistant", STEPS, by="m", turn="t")


def test_a_copy_ends_with_its_step_and_belongs_to_no_turn() -> None:
    copy = fork_answer(ANSWER, 1, "copy")
    assert (copy.id, copy.parent, copy.by, copy.turn) == ("copy", "q", "m", "")
    assert (copy.imported, copy.fork) == (True, ForkPoint("a", 1))
    assert copy.parts == (*STEPS[:3], StepPart(1, "tool_calls"), *STEPS[4:6])


def test_a_copy_has_neither_usage_nor_changes_of_files() -> None:
    copy = fork_answer(ANSWER, 4, "copy")
    assert [part.usage for part in copy.parts if isinstance(part, StepPart)] == [Usage()] * 4
    assert not [part for part in copy.parts if isinstance(part, FilesPart)]
    assert [part for part in copy.parts if isinstance(part, ToolPart)] == [
        part for part in STEPS if isinstance(part, ToolPart)
    ]


def test_a_text_that_was_cut_is_forked_after_its_last_step() -> None:
    assert forkable_steps(ANSWER) == [1, 2, 4]
    with pytest.raises(CommandRefused, match="after step 3; its finished steps are: 1, 2, 4"):
        fork_answer(ANSWER, 3, "copy")


@pytest.mark.parametrize(
    ("last", "steps"),
    [
        ((ToolPart("c3", "pay", "{}", "running"), StepPart(5, "tool_calls")), [1, 2, 4]),
        ((TextPart("As far as"), StepPart(5, "cancelled")), [1, 2, 4]),
        ((TextPart("As far as"), StepPart(5, "error")), [1, 2, 4]),
        ((TextPart("still streams"),), [1, 2, 4]),
        ((ProviderToolPart("web_search", "called"), StepPart(5, "paused")), [1, 2, 4, 5]),
        ((ToolPart("c3", "pay", "{}", "denied", Output("no")), StepPart(5, "tool_calls")), [1, 2, 4, 5]),
    ],
)
def test_a_step_is_finished_when_its_calls_have_results(last: tuple[Part, ...], steps: list[int]) -> None:
    assert forkable_steps(replace(ANSWER, parts=(*STEPS, *last))) == steps


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Message("q", None, "user", (TextPart("Hi."),)), "'q' is not an answer"),
        (Message("n", None, "notice", (NoticePart("x", "y"),)), "'n' is not an answer"),
        (Message("a", "q", "assistant", (), by="m"), "'a' has no finished step"),
        (replace(ANSWER, hidden=True), "'a' has no finished step"),
        (replace(ANSWER, refused=True), "'a' has no finished step"),
    ],
)
def test_what_cannot_be_forked_says_why(message: Message, why: str) -> None:
    with pytest.raises(CommandRefused, match=why):
        fork_answer(message, 1, "copy")


@pytest.mark.parametrize("step", [1, 2, 4])
def test_every_call_of_a_copy_has_one_result(step: int) -> None:
    rendered = render_history([Message("q", None, "user", (TextPart("Hi."),)), fork_answer(ANSWER, step, "copy")])
    made = [part.call for message in rendered for part in message.parts if isinstance(part, RequestCall)]
    results = [part.call for message in rendered for part in message.parts if isinstance(part, RequestResult)]
    assert made == results == ["c1", "c2"][:step]


@pytest.mark.parametrize("policy", ["full", "results", "digest", "none"])
def test_the_answer_that_a_turn_continues_is_rendered_in_full_whatever_becomes_of_earlier_ones(
    policy: ToolHistory,
) -> None:
    question = Message("q", None, "user", (TextPart("Hi."),))
    branch = [question, fork_answer(ANSWER, 2, "copy")]
    full = render_history(branch, "full")
    assert render_history(branch, policy, continues=True) == full
    assert (render_history(branch, policy) == full) == (policy == "full")
    assert render_history([question, ANSWER], policy, continues=True) == render_history([question, ANSWER], policy)
