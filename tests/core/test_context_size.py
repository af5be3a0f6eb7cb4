"""Sizes of requests: what is counted, what is estimated, and how good the estimate is after some steps."""

from __future__ import annotations

import random
import re

import pytest

from everturn.core.context.context_size import ContextLimits, learn_weight, measure
from everturn.core.context.token_estimate import estimate_tokens
from everturn.core.messages import Message
from everturn.core.parts import ClearedPart, Output, StepPart, SummaryPart, TextPart, ToolPart, Usage

ENGLISH = "The quick brown fox jumps over the lazy dog while the engineers discuss release planning and risk. "
CODE = "def fold(events: Iterable[Event]) -> State:\n    for event in events:\n        state.apply(event)  # in order\n"
JSON = '{"id": 4711, "name": "engine", "tags": ["a", "b"], "price": 12.5, "nested": {"ok": true, "n": null}}\n'
CHINESE = "较早的消息已被总结。以便模型在有限的上下文窗口内继续工作。请检查结果。然后继续。"


def count(text: str) -> int:
    """A tokenizer: words in pieces of six letters, numbers in groups of three, every sign and CJK character alone."""
    return len(re.findall(r"[A-Za-z]{1,6}|\d{1,3}|[\u2e80-\uffef]|[^\sA-Za-z\d]|\n", text))


def answer(step: int, text: str, result: str, used: Usage, model: str = "") -> Message:
    call = ToolPart(f"c{step}", "look", "{}", "completed", Output(result))
    return Message(
        f"a{step}", None, "assistant", (TextPart(text), call, StepPart(step, "tool_calls", used, model)), by="m"
    )


def text_of(sample: str, dice: random.Random) -> str:
    """Some of a sample, in another order: no two are alike."""
    pieces = re.findall(r".{1,40}", sample, re.S)
    return "".join(dice.choice(pieces) for _ in range(dice.randint(5, 60)))


@pytest.mark.parametrize("sample", [ENGLISH, CODE, JSON, CHINESE], ids=["english", "code", "json", "chinese"])
def test_after_five_steps_the_size_is_within_ten_percent_of_what_is_counted(sample: str) -> None:
    errors: list[float] = []
    for seed in range(10):
        dice = random.Random(seed)
        system = 1_500  # tokens of instructions and tools, which no estimate sees
        path, total = list[Message](), system
        for step in range(1, 25):
            prompt, text, result = (text_of(sample, dice) for _ in range(3))
            path.append(Message(f"u{step}", None, "user", (TextPart(prompt),)))
            total += count(prompt) + 4
            if step > 5:
                used = measure(path).used(learn_weight(path, "m"))
                errors.append(abs(used - total) / total)
            path.append(answer(step, text, result, Usage(total, count(text) + 8)))
            total += count(text) + 8 + count(result) + 4
    errors.sort()
    assert errors[int(len(errors) * 0.95)] <= 0.10


def test_the_size_is_what_was_counted_last_and_what_is_new() -> None:
    path = [
        Message("u1", None, "user", (TextPart("x" * 400),)),
        answer(1, "y" * 40, "r" * 4_000, Usage(1_000, 50)),
        Message("u2", None, "user", (TextPart("z" * 400),)),
    ]
    assert measure(path).used() == 1_050 + 1_004 + 104


def test_a_failed_step_without_usage_is_estimated() -> None:
    path = [
        answer(1, "y" * 40, "r" * 40, Usage(1_000, 50)),
        Message("a2", None, "assistant", (TextPart("half" * 100), StepPart(2, "error"))),
    ]
    assert measure(path).used() == 1_050 + 14 + 100


def test_estimated_usage_is_not_counted_usage() -> None:
    path = [answer(1, "y" * 40, "r" * 40, Usage(9_999, 1, estimated=True))]
    assert not measure(path).is_known


@pytest.mark.parametrize("part", [SummaryPart("short", before=5_000, after=700), ClearedPart(("c1",), 5_000, 700)])
def test_usage_before_a_compaction_is_not_used_after_it(part: SummaryPart | ClearedPart) -> None:
    path = [
        answer(1, "y" * 40, "r" * 40, Usage(5_000, 50)),
        Message("n", None, "notice", (part,)),
        Message("u", None, "user", (TextPart("z" * 400),)),
    ]
    assert measure(path).used() == 700 + 104


def test_a_step_that_was_open_during_a_compaction_came_after_it() -> None:
    part = SummaryPart("short", before=5_000, after=700, during=1)
    path = [answer(1, "y" * 40, "r" * 40, Usage(800, 50)), Message("n", None, "notice", (part,))]
    assert measure(path).used() == 850 + 14


def test_the_weight_is_that_of_the_model_and_bounded() -> None:
    path = [answer(step, "y" * 400, "r" * 400, Usage(1_000 * step, 1_000), "greedy") for step in range(1, 30)]
    assert learn_weight(path, "m") == 1.0
    assert 1.5 < learn_weight(path, "greedy") <= 2.0


@pytest.mark.parametrize(
    ("window", "max_tokens", "limit"),
    [(200_000, 0, 180_000), (200_000, 8_000, 192_000), (8_000, 0, 6_000), (2_048, 4_096, 1_536)],
)
def test_the_limit_leaves_room_for_an_answer(window: int, max_tokens: int, limit: int) -> None:
    assert ContextLimits.of_window(window, max_tokens).limit == limit


@pytest.mark.parametrize("window", [1_000, 2_048, 8_000, 32_000, 200_000, 1_000_000])
def test_every_size_is_at_most_a_share_of_the_limit(window: int) -> None:
    limits = ContextLimits.of_window(window)
    assert limits.tail <= min(16_000, 0.25 * limits.limit)
    assert limits.quotes <= min(20_000, 0.15 * limits.limit)
    assert limits.artifacts <= min(2_000, 0.05 * limits.limit)
    assert limits.summary <= min(4_096, 0.2 * limits.limit)
    assert window >= 4_096 or limits.summary <= 256


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("中文", 2), ("中文ab", 3), ("é" * 4, 2)]
)
def test_a_token_is_four_bytes_or_one_wide_character(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens
