"""Text → chunks → lines, and a session → blocks."""
# ruff: noqa: RUF001 - Chinese has its own commas

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn import api
from everturn.core.events import (
    CallFinished,
    CallStarted,
    CallSuspended,
    PermissionDecided,
    Problem,
    RequestRetried,
    StepFinished,
    StepRestarted,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnFinishing,
    TurnSuspended,
    WaitStarted,
)
from everturn.core.parts import Citation, ContextPart, Output, ProviderToolPart, TextPart, ToolPart, Usage
from everturn.terminal.tui.folder import agent_label
from everturn.terminal.tui.render.blocks import Block, BlockList
from everturn.terminal.tui.render.canvas import Canvas
from everturn.terminal.tui.render.markdown import draw_markdown
from everturn.terminal.tui.render.markdown_split import MarkdownPiece, MarkdownSplitter, split_markdown
from everturn.terminal.tui.render.text import MEASURE, escape_text, line_text, runs_width, truncate, wrap, wrap_anywhere
from everturn.terminal.tui.status import describe_activity
from everturn.terminal.tui.texts.app import get_app_texts
from everturn.terminal.tui.texts.chat import EN, ZH, ChatTexts
from tests.helpers.scripted_server import texts
from tests.helpers.transcript_app import Writing, text_delta

MIXED = (
    f"{texts.TABLE}\n\n{texts.CODE}\n\n{texts.MATH}\n\n1. one\n\n   ```py\n   x\n\n   y\n   ```\n2. two\n\n> quote\n"
)
LINES = st.sampled_from(["", "a b", "```py", "```", "- x", "1. y", "  z", "> q", "|a|b|", "|-|-|", "# h", "中文，字"])


@given(st.lists(LINES, max_size=14), st.lists(st.integers(1, 9), min_size=1, max_size=9))
@settings(deadline=None, max_examples=60)
def test_wherever_a_text_is_cut_on_its_way_the_same_pieces_come_out(lines: list[str], sizes: list[int]) -> None:
    text = "\n".join(lines)
    chunks, at, rest = MarkdownSplitter(), 0, list[MarkdownPiece]()
    while at < len(text):
        at += sizes[at % len(sizes)]
        rest = chunks.feed(text[:at])
    assert [*chunks.finished, *rest] == split_markdown(text)


def test_a_long_line_is_cut_the_same_way_whole_and_in_pieces() -> None:
    text = "x" * 30_000 + "\nafter"
    chunks, rest = MarkdownSplitter(), list[MarkdownPiece]()
    for at in range(0, len(text) + 997, 997):
        rest = chunks.feed(text[:at])
    assert [*chunks.finished, *rest] == split_markdown(text)
    assert max(len(chunk.source) for chunk in split_markdown(text)) <= 8_001


@pytest.mark.parametrize("width", [20, 40, 97])
def test_lines_fit_and_nothing_is_lost(width: int) -> None:
    drawn = [line for chunk in split_markdown(MIXED) for line in draw_markdown(chunk, width)]
    assert all(runs_width(line) <= width for line in drawn)
    text = "".join(line_text(line) for line in drawn).replace(" ", "")
    assert "brass" in text
    assert r"\frac{\sqrt{\pi}}{2}" in text.replace("\n", ""), "a formula stays as it was written"


def test_prose_has_a_measure_and_code_and_tables_take_the_whole_width() -> None:
    prose, code, cell = "word " * 60, "x" * 140, "cell " * 26
    answer = f"# {prose}\n\n{prose}\n\n- {prose}\n\n```\n{code}\n```\n\n| a | b |\n|---|---|\n| {cell}| 1 |\n"
    drawn = [line_text(line) for chunk in split_markdown(answer) for line in draw_markdown(chunk, 160)]
    words = [line for line in drawn if "word" in line]
    assert 90 < max(map(len, words)) <= MEASURE + 2
    assert any(code in line for line in drawn)
    assert any(cell.strip() in line for line in drawn)


def test_wide_characters_are_wrapped_by_columns_and_what_closes_does_not_begin_a_line() -> None:
    lines = [line_text(line) for line in wrap([("中文没有空格，但是也要换行。" * 4, "")], 21)]
    assert all(runs_width([(line, "")]) <= 21 for line in lines)
    assert not any(line.startswith(("，", "。")) for line in lines)
    assert "".join(line_text(line) for line in wrap_anywhere([("a" * 50, "")], 20)) == "a" * 50
    assert truncate("字" * 30, 9) == "字字字字…"
    assert escape_text("a\x1b[31m\u202e") == r"a\x1b[31m\u202e"


def call(state: str = "completed") -> Writing:
    writing = Writing()
    writing.said("t", "Do it.")
    writing.answered("t", [TextPart("Well."), ToolPart("t-1", "look", '{"place": "hall"}')], "tool_calls")
    writing.event(
        PermissionDecided(turn="t", call="t-1", tool="look", identity="", hash="", allowed=True, why="a rule")
    )
    writing.event(
        CallStarted(turn="t", call="t-1", tool="look", arguments="{}", hash="", read_only=True, key="k", at=1.0)
    )
    if state != "running":
        writing.event(CallFinished(turn="t", call="t-1", state=state, output=Output("It is dark."), at=2.5))  # pyright: ignore[reportArgumentType]
    return writing


def lines(block: Block, **paper: object) -> str:
    return "\n".join(line_text(line) for line in block.draw(Canvas(80, **paper)))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("state", "sign"),
    [("completed", "✓"), ("failed", "✗"), ("denied", "⊘"), ("outcome_unknown", "‽"), ("running", "●")],
)
def test_the_state_of_a_call_is_a_sign_and_a_word(state: str, sign: str) -> None:
    card = next(block for block in BlockList().blocks(call(state).state) if block.kind == "call")
    assert f" {sign} look" in lines(card)
    assert getattr(EN, state) in lines(card)
    assert getattr(ZH, state) in lines(card, texts=ZH)
    assert ("1.5 s" in lines(card)) is (state != "running")
    assert "place: hall" not in lines(card)
    assert "Arguments" in lines(card, is_open=True)


def test_on_a_wide_screen_the_state_of_a_call_stays_near_its_name() -> None:
    (block,) = [block for block in BlockList().blocks(call("failed").state) if block.kind == "call"]
    head = line_text(block.draw(Canvas(160))[0])
    assert head.index(EN.failed) < MEASURE


def test_what_has_not_changed_is_the_same_block() -> None:
    writing, book = Writing(), BlockList()
    writing.said("t", "Go on.")
    text = "One.\n\nTwo.\n\nThr"
    writing.delta(text_delta("t", 0, text))
    before = book.blocks(writing.state)
    writing.delta(text_delta("t", len(text), "ee"))
    book.touch({"t"})
    after = book.blocks(writing.state)
    assert [old is new for old, new in zip(before, after, strict=True)][:4] == [True, True, True, True]
    assert [block.source for block in after if block.kind == "text"] == ["One.", "Two.", "Three"]
    writing.answered("t", [TextPart(text + "ee")])
    book.touch({"t"})
    done = [block for block in book.blocks(writing.state) if block.kind == "text"]
    assert [(old.id, old.key) for old in after if old.kind == "text"] == [(new.id, new.key) for new in done]


def test_a_step_that_begins_again_is_read_anew() -> None:
    writing, book = Writing(), BlockList()
    writing.said("t", "Go on.")
    writing.delta(text_delta("t", 0, "One.\n\nTwo.\n\n"))
    book.blocks(writing.state)
    writing.event(StepRestarted(turn="t", step=1))
    writing.delta(text_delta("t", 0, "Another, and longer than before.\n\nEnd"))
    book.touch({"t"})
    found = [block.source for block in book.blocks(writing.state) if block.kind == "text"]
    assert found == ["Another, and longer than before.", "End"]


def rows_of(writing: Writing, kind: str, now: float = 0.0) -> list[str]:
    canvas = Canvas(width=80, texts=EN, now=now)
    blocks = BlockList().blocks(writing.state)
    return [line_text(line) for block in blocks if block.kind == kind for line in block.draw(canvas)]


@pytest.mark.parametrize(
    ("now", "text"), [(8.0, "Retrying in 12 s (attempt 2 of 5): too many"), (20.0, "Attempt 2 of 5: too many")]
)
def test_a_request_that_is_retried_says_when_and_why(now: float, text: str) -> None:
    writing = Writing()
    writing.said("t", "Go on.")
    problem = Problem("rate", "too many")
    writing.event(RequestRetried(turn="t", at=8.0, step=1, attempt=2, attempts=5, seconds=12.0, problem=problem))
    assert text in "\n".join(rows_of(writing, "foot", now))
    writing.delta(text_delta("t", 0, "Here"))
    assert "too many" not in "\n".join(rows_of(writing, "foot", now))


def test_an_answer_of_another_model_bears_its_name() -> None:
    writing = Writing()
    writing.said("t", "Go on.")
    other = "second\x1b[2J"
    problem = Problem("rate", "too many")
    writing.event(RequestRetried(turn="t", at=1.0, step=1, attempt=2, attempts=2, problem=problem, model=other))
    assert "Asking second" in "\n".join(rows_of(writing, "foot", 2.0))
    writing.event(StepFinished(turn="t", step=1, parts=(TextPart("Here."),), finish="stop", at=3.0, model=other))
    assert "\x1b" not in "".join(rows_of(writing, "badge") + rows_of(writing, "step"))
    assert "second" in rows_of(writing, "badge")[0]
    assert "scripted" not in rows_of(writing, "badge")[0]
    assert "The request was retried after an error." in rows_of(writing, "step")[0]
    assert "written by second" in rows_of(writing, "step")[1]


def test_a_turn_that_was_stopped_says_that_its_tool_still_runs() -> None:
    writing = call("running")
    writing.event(TurnFinishing(turn="t", outcome="cancelled"))
    writing.event(CallFinished(turn="t", call="t-1", state="cancelled", output=Output("stopped"), still_running=True))
    writing.event(TurnCancelled(turn="t"))
    foot = BlockList().blocks(writing.state)[-1]
    assert foot.kind == "foot"
    assert EN.stopped in lines(foot)
    assert "1 tool is still running." in lines(foot)


@pytest.mark.parametrize(
    ("kind", "says", "not_said"),
    [
        pytest.param("context", EN.next_context, EN.try_again, id="context"),
        pytest.param("key", EN.next_model, EN.try_again, id="key"),
        pytest.param("server", EN.try_again, "Ctrl+L", id="server"),
    ],
)
def test_a_request_that_was_refused_is_not_told_as_a_stream_that_broke(kind: str, says: str, not_said: str) -> None:
    writing = Writing()
    writing.said("t", "Go on.")
    writing.answered("t", [], "error")
    writing.event(TurnFinishing(turn="t", outcome="error"))
    writing.event(TurnFailed(turn="t", problem=Problem(kind, "It does not fit")))
    assert rows_of(writing, "step") == [], "a refused request took nothing"
    drawn = "\n".join(lines(block) for block in BlockList().blocks(writing.state))
    assert EN.error not in drawn
    text = " ".join(drawn.split())
    assert says in text
    assert not_said not in text


def test_a_stream_that_broke_off_is_reported_as_one() -> None:
    writing = Writing()
    writing.said("t", "Go on.")
    writing.answered("t", [TextPart("Once upon")], "error")
    assert any(EN.error in lines(block) for block in BlockList().blocks(writing.state))


@pytest.mark.parametrize("texts", [EN, ZH])
def test_a_tool_of_the_provider_is_one_line_with_its_state_and_its_result_when_unfolded(texts: ChatTexts) -> None:
    writing = Writing()
    writing.said("t", "Turtles?")
    found = "Tu\x1b[31mrtles https://example.com/a\n" * 3
    called = ProviderToolPart("web_search", "called", "s1", "tur\u202etles")
    writing.answered("t", [called, ProviderToolPart("web_search", "completed", "s1", "", found), TextPart("So.")])
    (block,) = [block for block in BlockList().blocks(writing.state) if block.kind == "notice"]
    (folded,) = [line_text(line) for line in block.draw(Canvas(60, texts=texts))]
    assert "web_search tur" in folded
    assert texts.provider_completed in folded
    assert "\u202e" not in folded
    unfolded = "\n".join(line_text(line) for line in block.draw(Canvas(60, texts=texts, is_open=True)))
    assert unfolded.count("https://example.com/a") == 3
    assert "\x1b" not in unfolded
    assert all(runs_width(line) <= 30 for line in block.draw(Canvas(30, texts=texts)))


def test_sources_of_a_text_are_footnotes_and_texts_side_by_side_are_one() -> None:
    writing = Writing()
    writing.said("t", "Turtles?")
    source = Citation(0, 6, "https://example.com/a", "All about turtles")
    writing.answered("t", [TextPart("In short: "), TextPart("long lives.", citations=(source,)), TextPart(" So.")])
    drawn = "\n".join(lines(block) for block in BlockList().blocks(writing.state) if block.kind == "text")
    assert "In short: long l[1]ives. So." in drawn
    assert "[1] All about turtles https://example.com/a" in drawn


@pytest.mark.parametrize(("texts", "kind"), [(EN, "page"), (ZH, "页面")])
def test_attached_context_is_a_line_under_the_message_and_its_text_when_unfolded(texts: ChatTexts, kind: str) -> None:
    writing = Writing()
    page = ContextPart("page", "Locks are\x1b[31m old.\n" * 3, title="Lo\u202ecks", source="https://example.com")
    writing.said("t", "Sum it up.", None, page, ContextPart("ticket", "x", title="T-1"))
    block = next(block for block in BlockList().blocks(writing.state) if block.kind == "said")
    folded = [line_text(line) for line in block.draw(Canvas(60, texts=texts))]
    assert len(folded) == 3
    assert folded[0].endswith("Sum it up.")
    assert f"{kind} Lo" in folded[1]
    assert "\u202e" not in folded[1]
    assert "ticket T-1" in folded[2]
    assert block.folds
    unfolded = "\n".join(line_text(line) for line in block.draw(Canvas(60, texts=texts, is_open=True)))
    assert unfolded.count("Locks are") == 3
    assert "\x1b" not in unfolded
    assert all(runs_width(line) <= 24 for line in block.draw(Canvas(24, texts=texts)))


def test_the_steps_of_an_answer_are_one_line_below_it() -> None:
    writing = Writing()
    writing.said("t", "Go on.")
    for step, usage in ((1, Usage(input=1_000, output=20, cached=600)), (2, Usage(input=1_100, output=30))):
        if step == 2:
            writing.event(StepStarted(turn="t", step=2, at=20.0))
        parts = (ToolPart("t-1", "look", "{}"),) if step == 1 else (TextPart("Done."),)
        finish = "tool_calls" if step == 1 else "stop"
        writing.event(StepFinished(turn="t", step=step, parts=parts, finish=finish, usage=usage, at=10.0 * step + 2))
        if step == 1:
            writing.event(CallFinished(turn="t", call="t-1", state="completed", output=Output("Dark.")))
        assert rows_of(writing, "step") == []  # the turn goes on
    writing.event(TurnFinishing(turn="t", outcome="completed"))
    writing.event(TurnCompleted(turn="t"))
    [line] = rows_of(writing, "step")
    assert "2 steps · 2,100 in (600 cached) · 50 out · 21 s" in line


@pytest.mark.parametrize(("origin", "is_shown"), [("files:shop", False), ("mcp:files", True), ("function", True)])
def test_what_a_tool_of_the_folder_has_read_is_shown_only_on_request(origin: str, is_shown: bool) -> None:
    writing = call("running")
    output = Output("It is dark.", origin=origin)
    writing.event(CallFinished(turn="t", call="t-1", state="completed", output=output, at=2.5))
    card = next(block for block in BlockList().blocks(writing.state) if block.kind == "call")
    assert ("It is dark." in lines(card)) is is_shown
    assert (EN.completed in lines(card)) is is_shown
    assert "It is dark." in lines(card, is_open=True)


@pytest.mark.parametrize(("status", "sign", "word"), [(0, "✓", ""), (1, "!", "exit 1"), (-9, "!", "exit -9")])
def test_a_command_that_failed_does_not_look_like_one_that_succeeded(status: int, sign: str, word: str) -> None:
    writing = call("running")
    output = Output("2 failed", origin="code:shell", metadata={"exit": status})
    writing.event(CallFinished(turn="t", call="t-1", state="completed", output=output, at=2.5))
    head = lines(next(block for block in BlockList().blocks(writing.state) if block.kind == "call")).splitlines()[0]
    assert head.strip().startswith(sign)
    assert word in head
    assert ("exit" in head) is bool(status)


def test_the_agent_of_a_folder_is_called_by_the_folder() -> None:
    view = api.AgentView(name="shop-bac038", description="", model="m", folder="/home/ann/shop")
    agents = api.AgentList(agents=[view, api.AgentView(name="team-c0ffee", description="", model="m")], models=[])
    assert agent_label(agents, "shop-bac038") == "shop"
    assert agent_label(agents, "team-c0ffee") == "team-c0ffee"
    assert agent_label(agents, "blog-0a1b2c") == "blog"  # of a folder that nobody has open


def test_only_the_newest_to_do_list_is_drawn_in_full() -> None:
    def todos(status: str) -> str:
        return f'{{"todos": [{{"content": "Read the tests", "status": "{status}"}}]}}'

    writing = Writing()
    writing.said("t", "Go on.")
    calls = [ToolPart(f"t-{n}", "write_todos", todos(s)) for n, s in enumerate(("in_progress", "completed"), 1)]
    writing.answered("t", calls, "tool_calls")
    for part in calls:
        writing.event(
            CallFinished(turn="t", call=part.call, state="completed", output=Output("1 to-do", origin="builtin"))
        )
    rows = "\n".join(rows_of(writing, "call"))
    assert rows.count("Read the tests") == 1
    assert "✓ Read the tests" in rows


def test_a_suspended_call_says_what_it_waits_for() -> None:
    writing = call("running")
    writing.event(WaitStarted(turn="t", call="t-1", wait="w", kind="external", label="MCP task (\x1b[2Jbuild)"))
    writing.event(CallSuspended(turn="t", call="t-1", waits=("w",)))
    writing.event(TurnSuspended(turn="t", step=1))
    assert describe_activity(writing.state, get_app_texts("en"), 5.0) == "waiting for a result", "no person is asked"
    card = next(block for block in BlockList().blocks(writing.state) if block.kind == "call")
    assert "\x1b" not in lines(card)
    assert "Waits for: MCP task (" in lines(card)
    assert "正在等待：MCP task (" in lines(card, texts=ZH)
