"""What small screens show: an approval below the card that it asks about, and no text that is cut without a sign."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everturn import api
from everturn.core.rules.policy import Rule
from everturn.terminal.text.screen import display_width
from everturn.terminal.tui.chat import ChatScreen
from everturn.terminal.tui.compare import mark_differences
from everturn.terminal.tui.gates.diff import diff_rows
from everturn.terminal.tui.gates.form import FormPanel
from everturn.terminal.tui.inbox import column_widths, summarize_arguments
from everturn.terminal.tui.permissions import rule_rows
from everturn.terminal.tui.render.markdown import draw_markdown
from everturn.terminal.tui.render.markdown_split import MarkdownPiece
from everturn.terminal.tui.render.text import line_text
from everturn.terminal.tui.revert import FilesScreen
from everturn.terminal.tui.sidebar import SIDE_WIDTH, Sidebar, session_line
from everturn.terminal.tui.status import mode_label
from everturn.terminal.tui.texts.permissions import get_permissions_texts
from tests.helpers.scripted_server.server import Rig
from tests.tui.screen_user import Person, person

pytestmark = pytest.mark.timeout(300)
LONG_FILE = "".join(f"line {number}\n" for number in range(200))
MANY_MAILS = " ".join(
    f"call send_mail {json.dumps({'to': f'a{at}@example.org', 'subject': 'Rain'})}" for at in range(30)
)


def rows_above_the_dialog(user: Person) -> list[str]:
    """The rows of the screen that the dialog does not cover."""
    top = user.app.screen.query_one("#dialog").region.y
    return user.screen.split("\n")[:top]


@pytest.mark.live
@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
@pytest.mark.parametrize(
    ("message", "tool"),
    [
        ("story pace 0", "send_mail"),  # the conversation is longer than what is left of the screen
        (f"call write_file {json.dumps({'path': 'long.txt', 'content': LONG_FILE})}", "write_file"),
        (MANY_MAILS, "send_mail"),  # the card is far above the end
    ],
    ids=["long conversation", "long diff", "many calls"],
)
async def test_the_card_that_led_to_an_approval_stays_above_it(
    rig: Rig, size: tuple[int, int], message: str, tool: str
) -> None:
    session = rig.say(message)["session"]
    async with person(rig, session, size=size) as user:
        screen = await user.gate(tool)

        def is_visible() -> bool:
            above = rows_above_the_dialog(user)
            at = next((at for at, row in enumerate(above) if row.strip().startswith(f"? {tool}")), len(above))
            return "Needs an answer: see the question below." in "".join(above[at + 1 : at + 2])

        await user.until(is_visible, "the card")
        for _ in range(3):  # measuring again changes nothing: the margin once depended on itself
            screen._fit()
            await user.pilot.pause()
            await user.until(is_visible, "the card, after it was measured again")
        if len(rig.gates(session)) > 1:
            return  # the next one opens
        await user.press("escape")
        await user.closed()
        await user.until(lambda: user.app.chat_screen.transcript.styles.margin.bottom == 0, "the whole screen")
        transcript = user.app.chat_screen.transcript
        await user.until(lambda: transcript.scroll_offset.y >= transcript.max_scroll_y, "the end")


@pytest.mark.live
async def test_an_approval_of_a_subagent_is_counted_and_a_form_is_a_question(rig: Rig) -> None:
    async with person(rig, rig.say("trip pace 0")["session"], size=(80, 24)) as user:
        await user.gate("send_mail")
        await user.sees("1 approval pending")
    async with person(rig, rig.say("form pace 0")["session"], size=(80, 24)) as user:
        await user.gate("inquire")
        await user.sees("1 question pending")
        await user.press("f")
        await user.until(lambda: user.app.screen.query(FormPanel), "the form")
        await user.until(lambda: user.app.screen.query_one("#dialog").region.y > 0, "no more lines than it needs")


@pytest.mark.live
async def test_a_queued_message_has_one_line_and_the_placeholder_is_not_cut(rig: Rig) -> None:
    async with person(rig, size=(60, 20)) as user:
        await user.reads("Ask anything. Enter sends, / lists commands.")
        await user.pilot.resize_terminal(44, 20)
        await user.reads("Ask anything. Enter sends.")
        await user.pilot.resize_terminal(60, 20)
        await user.say("slow 20")
        await user.reads("Write a message. Enter sends.")
        user.app.chat_screen.composer.write("and then this, which is longer than a line of the screen " * 3)
        await user.press("enter")
        await user.reads("(Ctrl+T takes it back)")
        row = next(row for row in user.screen.split("\n") if "(Ctrl+T takes it back)" in row)
        assert row.strip().startswith("queued: and then this")
        assert "…" in row
        assert user.app.chat_screen.query_one("#queue").size.height == 1
        await user.app.action_files()
        await user.until(lambda: isinstance(user.app.screen, FilesScreen), "the files")
        await user.reads("Esc closes")
        assert "revert" not in user.screen  # there is nothing to revert


@pytest.mark.live
async def test_the_bar_of_the_context_window_is_one_line_beside_the_scroll_bar(rig: Rig) -> None:
    async with person(rig, rig.say("table pace 0")["session"], size=(60, 20)) as user:
        await user.idle()
        await user.app.run_action("app.context")
        await user.until(lambda: "│" in user.screen and user.app.screen.query("#bar"), "the context window")
        await user.until(lambda: user.app.screen.query_one("#bar").size.height == 2, "the bar, and the marks below it")


@pytest.mark.live
async def test_a_timer_that_fires_while_the_app_closes_draws_nothing(rig: Rig) -> None:
    async with person(rig) as user:
        screen = user.app.chat_screen
        assert isinstance(screen, ChatScreen)
        await screen.query_one(Sidebar).remove()
        user.app._running = False  # as while it closes: a list of sessions that comes now is not drawn
        user.app.draw()
        user.app._running = True
        await screen.remove_children()
        screen.draw()


def test_columns_of_a_table_are_aligned_as_its_author_wrote() -> None:
    text = "| thing | price | stock |\n|:--|--:|:-:|\n| lamp | 1.50 | 3 |\n| a ferry | 1,900.00 | 12345 |\n"
    head, _, lamp, ferry = [line_text(line) for line in draw_markdown(MarkdownPiece("markdown", text), 60)]
    assert head == "thing   │    price │ stock"
    assert lamp == "lamp    │     1.50 │   3  "
    assert ferry == "a ferry │ 1,900.00 │ 12345"


def test_wrapped_lines_of_a_comparison_are_indented_like_the_first() -> None:
    left, right = mark_differences(["one two three four", "same"], ["other", "same"], width=12)
    assert left.plain == "− one two\n  three four\n  same"
    assert right.plain == "+ other\n  same"


def test_a_new_file_is_not_drawn_beside_an_empty_column() -> None:
    rows = list(diff_rows([("@", "@@ -0,0 +1 @@"), ("+", "a line")], 150, is_wide=True))
    assert "".join(text for text, _ in rows[1]).strip() == "+ a line"
    changed = list(diff_rows([("-", "old"), ("+", "new")], 150, is_wide=True))
    assert "│" in "".join(text for text, _ in changed[0])


def test_a_blank_at_the_end_of_a_line_is_not_drawn_as_code() -> None:
    [row] = diff_rows([("+", "a ")], 80, is_wide=False)
    assert ("\\x20", "mark") in row


@pytest.mark.parametrize(("action", "style"), [("allow", "good"), ("deny", "bad")])
def test_the_sign_of_a_rule_has_the_colour_of_its_action(action: Any, style: str) -> None:
    rule = Rule("send_mail", action=action)
    view = api.RulesView(agent="", tools=[], rules=[api.RuleView(rule=rule, text="send_mail")])
    first = rule_rows(view, get_permissions_texts("en"), 80)[-2]
    assert {used for text, used in first if text.strip()} == {style}


def test_the_columns_of_the_inbox_never_need_more_than_the_screen() -> None:
    for titles in (["a"], ["a", "b" * 90], ["语" * 40], []):
        title_width, question_width = column_widths(titles, 76)
        widest = max((min(display_width(title), title_width) for title in titles), default=0)
        assert widest + question_width <= 76
    assert column_widths(["Rain"], 76)[1] == 72  # short titles leave the room to the questions


@pytest.mark.parametrize("when", ["2 min", "35 分钟"])
def test_the_time_of_a_session_is_not_cut_in_the_sidebar(when: str) -> None:
    line = session_line("a title that is longer than the sidebar is wide", when)
    assert line.plain.endswith(when)
    assert line.cell_length == SIDE_WIDTH - 4


def test_the_inbox_shows_arguments_by_name_the_shortest_first() -> None:
    text = json.dumps({"body": "Take\na coat.", "copies": [], "subject": "Rain", "urgent": True, "to": "a\u202eb"})
    assert summarize_arguments(text) == "to: a\\u202eb · subject: Rain · urgent: true · body: Take a coat."
    assert summarize_arguments("not JSON") == "not JSON"


def test_the_mode_of_the_running_turn_stays_in_sight_until_it_ends() -> None:
    assert mode_label("auto_edit", "en").plain == "[auto-edit]"
    assert mode_label("auto_edit", "en", "auto_edit").plain == "[auto-edit]"
    assert mode_label("auto_edit", "en", "ask").plain == "[ask] → [auto-edit]"
    assert mode_label("plan", "zh", "ask").plain == "[询问] → [计划]"
