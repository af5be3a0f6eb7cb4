"""Rows of an answer that no scripted model can bring about: a call whose outcome nobody knows, and a late result."""

import io

import pytest

from everturn.core.events import (
    CallResumed,
    CallSuspended,
    FilesChanged,
    PermissionDecided,
    Problem,
    RequestRetried,
    StepStarted,
    SubagentStarted,
    TurnFinishing,
    WaitFinished,
    WaitStarted,
)
from everturn.core.messages import Message
from everturn.core.parts import Citation, FileChange, Output, TextPart, ToolPart
from everturn.events import (
    AnswerStarted,
    CallFinished,
    CallProgress,
    CallStarted,
    LateResultReceived,
    StepFinished,
    TurnStarted,
)
from everturn.terminal.lines.turn_view import MAX_PROGRESS_ROWS, TurnPrinter
from everturn.terminal.text.file_changes import summarize_changes
from everturn.terminal.text.screen import LineScreen


def begun(is_bare: bool = False) -> tuple[TurnPrinter, io.StringIO, list[str]]:
    """An answer in which a call runs."""
    out, lines = io.StringIO(), list[str]()
    answer = TurnPrinter(LineScreen(out, gutter=0), "t", lines.append, is_bare)
    call = ToolPart("c", "pay", "{}")
    for event in (
        TurnStarted(turn="t", at=0.0),
        AnswerStarted(turn="t", at=0.0, message=Message("m", None, "assistant", by="ada", turn="t")),
        StepStarted(turn="t", at=0.0, step=1),
        StepFinished(turn="t", at=0.0, step=1, parts=(call,), finish="tool_calls"),
        PermissionDecided(turn="t", at=0.0, call="c", tool="pay", identity="", hash="h", allowed=True, why=""),
        CallStarted(turn="t", at=0.0, call="c", tool="pay", arguments="{}", hash="h", key="k"),
    ):
        answer.show(event)
    return answer, out, lines


@pytest.mark.parametrize("is_bare", [False, True])
def test_a_call_whose_outcome_nobody_knows_is_told_wherever_the_answer_goes(is_bare: bool):
    answer, _, lines = begun(is_bare)
    answer.show(CallFinished(turn="t", at=0.0, call="c", state="outcome_unknown", output=Output("It was cut off.")))

    assert lines == ["pay: it was started, and whether it took effect is not known: It was cut off."]


@pytest.mark.parametrize("is_bare", [False, True])
def test_retries_and_another_model_are_told_wherever_the_answer_goes(is_bare: bool):
    answer, _, lines = begun(is_bare)
    answer.show(CallFinished(turn="t", at=0.0, call="c", state="completed", output=Output("paid")))
    answer.show(StepStarted(turn="t", at=0.0, step=2))
    busy = Problem("rate", "too many requests")
    for seconds, model in ((12.4, ""), (0.2, ""), (0.0, "bob")):
        event = RequestRetried(
            turn="t", at=0.0, step=2, attempt=2, attempts=5, seconds=seconds, problem=busy, model=model
        )
        answer.show(event)
    answer.show(StepFinished(turn="t", at=0.0, step=2, parts=(), finish="stop", model="bob"))

    assert lines == [
        "retrying in 12 s (attempt 2 of 5): too many requests",
        "retrying (attempt 2 of 5): too many requests",
        "asking bob instead: too many requests",
        "written by bob",
    ]


def test_waiting_going_on_a_turn_below_and_a_late_result_are_rows_of_the_call():
    answer, out, _ = begun()
    for event in (
        SubagentStarted(turn="t", at=0.0, call="c", session="s2", child="t2"),
        CallSuspended(turn="t", at=0.0, call="c", child="t2"),
        CallResumed(turn="t", at=0.0, call="c"),
        TurnFinishing(turn="t", at=0.0, outcome="cancelled"),
        CallFinished(turn="t", at=0.0, call="c", state="cancelled", output=Output("Cancelled."), still_running=True),
        LateResultReceived(turn="t", at=0.0, call="c", output=Output("paid\x1b[2J")),
    ):
        answer.show(event)

    assert out.getvalue().splitlines()[1:] == [
        "→ pay  {}",
        "→ pay  a sub-agent: s2",
        "… pay  waits for a sub-agent",
        "→ pay  goes on",
        "× pay  cancelled: Cancelled.",
        "+ pay  late: paid\\x1b[2J",
    ]


def test_what_a_tool_says_on_the_way_is_shown_and_cannot_flood_the_screen():
    answer, out, _ = begun()
    for number in range(1000):
        answer.show(CallProgress("t", "c", f"{number} done\x1b[2J"))
    answer.show(CallProgress("t", "of another turn", "lost"))

    rows = out.getvalue().splitlines()
    assert rows[2] == "· pay  0 done\\x1b[2J"
    assert len(rows) == 2 + MAX_PROGRESS_ROWS


def test_files_that_a_session_keeps_are_one_row_for_a_step_however_many_calls_changed_them():
    answer, out, _ = begun()
    for path in ("a", "b"):
        change = FileChange(path, "added", added=1)
        answer.show(FilesChanged(turn="t", at=0.0, step=1, before="", after=path, changes=(change,), call="c"))
    answer.show(CallFinished(turn="t", at=0.0, call="c", state="completed", output=Output("done")))
    answer.show(StepStarted(turn="t", at=0.0, step=2))

    assert out.getvalue().splitlines()[-2:] == ["✓ pay  done", "± 2 files: a new +1, b new +1"]


def test_of_many_files_the_first_are_named_and_the_others_counted():
    many = [FileChange(f"{number}.py", "modified", 3, 1) for number in range(11)]

    assert summarize_changes(many[:1]) == "1 file: 0.py +3 −1"
    assert summarize_changes(many).endswith("7.py +3 −1, and 3 more")
    assert summarize_changes([FileChange("gone.py", "deleted", 0, 9)]) == "1 file: gone.py gone"


@pytest.mark.parametrize("is_bare", [False, True])
def test_sources_are_rows_under_the_text_each_once(is_bare: bool):
    answer, out, _ = begun(is_bare)
    answer.show(CallFinished(turn="t", at=0.0, call="c", state="completed", output=Output("done")))
    a, b = "https://example.com/a", "https://example.com/b\x1b[31m"
    texts = (
        TextPart("Long lives.", citations=(Citation(0, 4, a, "Turtles"), Citation(5, 10, a, "Turtles"))),
        TextPart(" So.", citations=(Citation(0, 3, b),)),
    )
    answer.show(StepStarted(turn="t", at=0.0, step=2))
    answer.show(StepFinished(turn="t", at=0.0, step=2, parts=texts, finish="stop"))

    rows = [line.strip(" ·") for line in out.getvalue().splitlines() if "example.com" in line]
    assert rows == ([] if is_bare else [f"Turtles {a}", "https://example.com/b\\x1b[31m"])


def test_a_call_that_polls_is_one_row_that_says_what_it_waits_for():
    answer, out, _ = begun()
    for number in range(1, 4):
        wait = f"c.wait.{number}"
        answer.show(
            WaitStarted(turn="t", at=0.0, call="c", wait=wait, kind="external", label="MCP task (\x1b[2Jbuild)")
        )
        answer.show(CallSuspended(turn="t", at=0.0, call="c", waits=(wait,)))
        answer.show(WaitFinished(turn="t", at=0.0, call="c", wait=wait, timed_out=True))
        answer.show(CallResumed(turn="t", at=0.0, call="c"))
    answer.show(CallFinished(turn="t", at=0.0, call="c", state="completed", output=Output("Built.")))

    assert "\x1b[2J" not in out.getvalue()
    waiting, ended = out.getvalue().splitlines()[2:]
    assert waiting.startswith("… pay  waits for MCP task (")
    assert ended == "✓ pay  Built."
