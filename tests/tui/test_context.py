"""The context window in a terminal: the gauge, what fills the window, the warning, a compaction and its undo."""

from __future__ import annotations

import os
import re
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.context.context_report import ContextReport, build_report
from everturn.core.context.context_size import ContextLimits
from everturn.core.parts import SummaryPart
from everturn.terminal.text.context import divide_bar, find_warning, format_gauge
from everturn.terminal.tui.context import ContextScreen, draw_bar, draw_facts, draw_legend, warning_text
from everturn.terminal.tui.texts import context as texts
from tests.helpers.scripted_server.server import Rig
from tests.tui.screen_user import Person, person

WORDS = "The weather in Lisbon is mild and in Oslo it is not. "


def report(used: int, window: int = 128_000, policy: str = "auto", paused: bool = False) -> ContextReport:
    limits = ContextLimits.of_window(window) if window else ContextLimits(0, 0)
    return build_report(
        model="model",
        limits=limits,
        used=used,
        estimated=False,
        policy=policy,
        estimates={"instructions": 100, "tools": 900, "person": 3_000, "results": 8_000},
        paused=paused,
    )


@pytest.mark.parametrize(
    ("used", "window", "gauge"),
    [
        (12_400, 128_000, "12k / 108k · 11 %"),
        (12_400, 0, "12k tokens"),
        (107_999, 128_000, "108k / 108k · 99 %"),
        (120_000, 128_000, "120k / 108k · 111 %"),
    ],
)
def test_the_gauge_has_a_percentage_only_if_the_limit_is_known(used: int, window: int, gauge: str) -> None:
    assert format_gauge(report(used, window)) == gauge


def test_a_warning_comes_before_a_summary_and_says_at_what_size() -> None:
    assert find_warning(report(90_000)) == ""
    assert warning_text(report(93_000), texts.EN) == (
        "The context window is 86 % full; Everturn will summarise older messages at 90 % (/context)."
    )
    assert "before the next request" in warning_text(report(98_000), texts.EN)
    assert "/compact" in warning_text(report(98_000, policy="off"), texts.EN)
    assert warning_text(report(98_000, policy="last_turns(3)"), texts.EN) == ""
    assert "failed" in warning_text(report(98_000, paused=True), texts.EN)
    assert warning_text(report(10**6, 0), texts.EN) == ""
    assert "86 %" in warning_text(report(93_000), texts.ZH)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=12), st.integers(0, 10**6), st.integers(0, 200))
def test_a_bar_is_never_wider_than_its_room(sizes: list[int], more: int, width: int) -> None:
    columns = divide_bar(sizes, sum(sizes) + more, width)
    assert sum(columns) <= width
    assert all(column >= 0 for column in columns)
    assert all(not column for column, size in zip(columns, sizes, strict=True) if not size)
    if width >= len(sizes):
        assert all(column for column, size in zip(columns, sizes, strict=True) if size)


@given(st.integers(0, 300_000), st.sampled_from([0, 2_048, 128_000]), st.integers(20, 120))
def test_what_is_drawn_adds_up(used: int, window: int, width: int) -> None:
    shown = report(used, window)
    bar, *marks = draw_bar(shown, width).plain.split("\n")
    assert len(bar) <= width
    assert all(len(line) <= width for line in marks)
    assert len(bar) == width or not used or not window
    legend = draw_legend(shown, texts.EN).plain
    sizes = [int(size.replace(",", "")) for size in re.findall(r"  ([\d,]+)(?: +[\d.]+ %)?$", legend, re.MULTILINE)]
    assert ("%" in legend) == bool(window)
    assert sum(sizes[: len(shown.parts)]) == used
    if window:
        assert sum(sizes) == max(window, used + window - shown.limit)
    assert "%" not in draw_facts(shown, texts.EN).plain


def shoot(user: Person, name: str) -> None:
    if folder := os.environ.get("EVERTURN_SHOTS"):
        user.app.save_screenshot(f"{name}.svg", folder)


@pytest.mark.live
@pytest.mark.timeout(240)
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_story_of_a_full_window(rig: Rig, language: Literal["en", "zh"], size: tuple[int, int]) -> None:
    zh, name = language == "zh", f"{language}-{size[0]}"
    async with person(rig, language=language, size=size) as user:
        await user.type("/context")
        await user.press("enter")
        await user.reads(texts.ZH.nothing_yet if zh else texts.EN.nothing_yet)
        await user.say("parallel")
        await user.idle()
        for _ in range(5):
            await user.say("Please keep this in mind.\n" + WORDS * 300)
            await user.idle()
        await user.reads(" / 24k · 8")
        used = user.app.follower.state.context  # pyright: ignore[reportOptionalMemberAccess]
        assert used is not None
        assert 0.8 < (used.share or 0) < 0.9
        await user.say("And this.\n" + WORDS * 80)
        await user.idle()
        await user.reads("90 %")  # the warning
        shoot(user, f"warning-{name}")
        await user.type("/context")
        await user.press("enter")
        await user.until(lambda: isinstance(user.app.screen, ContextScreen), "the screen")
        await user.reads("您的消息" if zh else "Your messages")
        await user.reads("▲")
        shoot(user, f"context-{name}")
        await user.press("escape")
        user.app.chat_screen.composer.write("/compact the dates, pace 60")
        await user.press("enter")
        await user.reads("正在总结" if zh else "summarising")
        shoot(user, f"progress-{name}")
        await user.press("escape")
        await user.idle()
        assert not [part for message in user.branch() for part in message.parts if isinstance(part, SummaryPart)]
        user.app.chat_screen.composer.write("/compact the dates")
        await user.press("enter")
        await user.sees("已压缩" if zh else "Compacted: ")
        await user.idle()
        card = user.branch()[-1].parts[0]
        assert isinstance(card, SummaryPart)
        assert card.focus == "the dates"
        await user.until(lambda: "90 %" not in user.screen, "the end of the warning")
        await user.press("f6")
        await user.press("end", "up", "down", "enter")
        await user.sees("look at the garden")
        shoot(user, f"card-{name}")
        await user.press("u")
        await user.confirm()
        await user.until(lambda: not isinstance(user.branch()[-1].parts[0], SummaryPart), "the undo")
        await user.reads("90 %")  # the warning is there again


@pytest.mark.live
@pytest.mark.timeout(240)
async def test_a_compaction_that_was_talked_about_is_left_in_its_branch(rig: Rig) -> None:
    async with person(rig) as user:
        for _ in range(4):
            await user.say("Please keep this in mind.\n" + WORDS * 200)
            await user.idle()
        user.app.chat_screen.composer.write("/compact")
        await user.press("enter")
        await user.sees("Compacted: ")
        await user.idle()
        notice = user.branch()[-1]
        await user.say("hello")
        await user.idle()
        user.app.chat_screen.transcript.move_cursor_to(f"{notice.id}.0")
        user.app.chat_screen.transcript.action_undo()
        await user.reads("stay on their own")
        await user.confirm()
        await user.until(lambda: user.branch()[-1].id == notice.parent, "the branch above it")
        assert user.app.follower is not None
        assert notice.id in user.app.follower.state.tree.messages
        assert notice.id not in user.app.follower.state.tree.deleted


@pytest.mark.live
@pytest.mark.timeout(240)
async def test_too_little_to_compact_is_said(rig: Rig) -> None:
    async with person(rig) as user:
        await user.say("hello")
        await user.idle()
        user.app.chat_screen.composer.write("/compact")
        await user.press("enter")
        await user.reads(texts.EN.nothing)
