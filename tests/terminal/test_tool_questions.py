"""Tools that ask while they run, as a person in front of a terminal answers them; and what else a call goes through."""

import asyncio
import io
import sys
from pathlib import Path

import pytest
from tests.terminal.asking_tools import agree, browse, held
from tests.terminal.chat_process import Start, ask, one_line, pipe

from everturn import Chat
from everturn.terminal.lines.gate_prompt import GatePrompt
from everturn.terminal.lines.turn_view import TurnPrinter
from everturn.terminal.lines.turn_watch import TurnWatch
from everturn.terminal.text.screen import LineScreen
from everturn.testing import ScriptedModel, call, calls, say

TOOLS = ("--tools", str(Path(__file__).parent / "asking_tools.py"))
ASKED = "[?] help\n> "
NEXT = "\n> "
BACK = "Ctrl-D: back\n> "
PLAIN = {"EDITOR": "", "VISUAL": ""}


def test_a_form_is_filled_in_field_by_field_and_shown_whole_before_it_is_sent(start: Start):
    terminal = start(*TOOLS, **PLAIN)
    terminal.type("survey\n")
    terminal.until(ASKED)
    assert (
        "? survey runs, and asks you something\n"
        "  your answer goes to: survey\n"
        "    Who are you?\n"
        "[f] fill in   [j] as JSON   [n] no   [?] help\n"
    ) in terminal.text
    terminal.type("f\n")
    for line in ("A", "Ada", "2", "36"):
        terminal.until(BACK)
        terminal.type(line + "\n")
    terminal.until(BACK)
    assert "    name  │ Your name\n          │ As it is\n          │ in your passport\n" in terminal.text
    assert "· it has 1 characters; at least 2" in terminal.text
    assert "    1  red (Red!)\n    2  blue (Blue!)\n" in terminal.text
    assert "  4 of 8: a number, may be left out\n    height\n  Enter alone means:\n    1.5\n" in terminal.text
    terminal.type("\n")
    for line in ("n", "1,3", "", ""):
        terminal.until(BACK)
        terminal.type(line + "\n")
    terminal.until(ASKED)
    shown = terminal.text.rpartition("your answer, exactly this:")[2]
    assert '    │   "age": 36,\n    │   "colour": "blue",\n' in shown
    assert '"extra"' not in shown
    assert "✓ survey  True '" in ask(terminal, "y")
    assert '"height":1.5,"member":false,"name":"Ada","note":null}' in terminal.text.replace("\n          ", "")


def test_what_the_server_does_not_take_leads_back_to_the_question(start: Start):
    terminal = start(*TOOLS, **PLAIN)
    terminal.type("odd\n")
    terminal.until(ASKED)
    terminal.type("f\n")
    terminal.until("Enter: back\n> ")
    assert "this form cannot be asked for field by field" in terminal.text
    terminal.type('{"a": 2}\n')
    terminal.until(ASKED)
    terminal.type("y\n")
    terminal.until(ASKED)
    assert "the result does not match the schema: a: " in one_line(terminal.text)
    terminal.type("j\n")
    terminal.until("Enter: back\n> ")
    terminal.type('{"a": 1}\n')
    terminal.until(ASKED)

    assert "True '{\"a\":1}' ''" in ask(terminal, "y")


def test_a_form_is_written_as_json_in_the_editor_of_the_person(start: Start, tmp_path: Path):
    editor = tmp_path / "editor.py"
    editor.write_text("import sys\nopen(sys.argv[1], 'w').write('4\\n')\n", encoding="utf-8")
    terminal = start(*TOOLS, EDITOR=f"{sys.executable} {editor}", VISUAL="")
    terminal.type("held\n")
    terminal.until(ASKED)
    terminal.type("j\n")
    terminal.until(ASKED)
    assert "  your answer, exactly this:\n    4\n" in terminal.text

    assert "✓ held  True '4' ''" in ask(terminal, "y")


def test_a_form_that_is_refused_tells_the_tool_why_and_going_back_answers_nothing(start: Start):
    terminal = start(*TOOLS, **PLAIN)
    terminal.type("held\n")
    terminal.until(ASKED)
    for line in ("y", "f"):
        terminal.type(line + "\n")
        terminal.until(NEXT)
    assert "· f: answer field by field" in terminal.text  # y is no answer to it
    terminal.type("\x04")
    terminal.until(ASKED)
    terminal.type("n\n")
    terminal.until(NEXT)

    assert "✓ held  False None 'none of your business'" in ask(terminal, "none of your business")


def test_a_line_of_which_the_end_is_lost_is_no_answer_and_no_default_either(start: Start):
    terminal = start(*TOOLS, **PLAIN)
    terminal.type("hostile\n")
    terminal.until(ASKED)
    for key, shown in (("f", BACK), ("1", BACK), ("x" * 4200, BACK)):
        terminal.type(key + "\n")
        terminal.until(shown)
    assert "the end of this one is lost" in one_line(terminal.text)
    terminal.type("mine\n")
    terminal.until(BACK)
    terminal.type("\n")
    terminal.until(ASKED)

    assert '"mine"' in terminal.text.rpartition("exactly this:")[2]
    terminal.type("n\n")
    terminal.until(NEXT)


@pytest.mark.parametrize(
    ("answer", "result"), [("y", "True None ''"), ("n", "False None 'later'"), ("t", "True 'later' ''")]
)
def test_a_question_without_a_form_is_answered_with_yes_no_or_words(start: Start, answer: str, result: str):
    terminal = start(*TOOLS, **PLAIN)
    terminal.type("agree\n")
    terminal.until(ASKED)
    assert "    Shall I?\n[y] yes   [t] answer in words   [n] no   [?] help\n" in terminal.text
    if answer != "y":
        terminal.type(answer + "\n")
        terminal.until(NEXT)
        terminal.type("later\n")
    shown = ask(terminal, "y" if answer == "y" else "")

    assert f"… agree  waits for an answer\n→ agree  goes on\n✓ agree  {result}\n" in shown


def test_what_is_for_a_client_can_only_be_denied(start: Start):
    terminal = start(*TOOLS, **PLAIN)
    terminal.type("browse\n")
    terminal.until(ASKED)
    assert "? browse waits for a client\n" in terminal.text
    assert "    Show a page\n  arguments:\n    page  home\n[n] deny   [?] help\n" in terminal.text
    for line in ("y", "r", "n all"):
        terminal.type(line + "\n")
        terminal.until(ASKED)
    terminal.type("n\n")
    terminal.until(NEXT)

    assert "✓ browse  False None 'no page'" in ask(terminal, "no page")


def test_hostile_words_of_a_form_stay_words_and_cannot_look_like_ours(start: Start):
    terminal = start(*TOOLS, COLUMNS="40", **PLAIN)
    terminal.type("hostile\n")
    terminal.until(ASKED.replace("   ", " "))
    terminal.type("f\n")
    terminal.until(BACK)
    assert '    1  one\\x1b[2J\\u202e\\u3164evil\n    2  "two\\nlines"\n' in terminal.text
    for line in ("1", ""):
        terminal.type(line + "\n")
        terminal.until(BACK)
    terminal.type("\n")
    terminal.until(ASKED)
    shown = terminal.text.partition("hostile runs")[2]

    assert not any(char in shown for char in "\u202e\u3164")
    assert "\x1b[2J" not in shown
    assert "characters cannot be seen" in shown
    # What the form says begins further to the right than any question of ours does.
    assert not any(line.startswith(("? bank", "? shell", "[y] send this\\")) for line in shown.splitlines())
    terminal.type("n\n")
    terminal.until(NEXT)


def test_a_call_that_a_tool_makes_stands_under_it(start: Start):
    terminal = start(*TOOLS, **PLAIN)
    terminal.type("nest\n")
    terminal.until(ASKED)

    assert '→ nest  {}\n  → leaf  {"number": 21}\n  ✓ leaf  42\n? nest runs' in terminal.text
    assert "\n✓ nest  42 True None ''" in ask(terminal, "y")


def test_what_a_call_would_do_is_shown_whole_with_nothing_hidden_and_in_colours(start: Start):
    terminal = start(*TOOLS, "--color", **PLAIN)
    terminal.type("patch\n")
    terminal.until("help\x1b[0m\n")
    prompt = terminal.text.partition("approval")[2]

    assert prompt.count("+more") == 60
    assert "scroll" in prompt
    assert "\x1b[31m-old\x1b[0m \x1b[31m\\x1b[2J\\u202e\\u3164evil\x1b[0m" in prompt
    assert "\x1b[32m+new\x1b[0m" in prompt
    assert "\x1b[1m+++\x1b[0m" in prompt
    assert not any(char in prompt for char in "\u202e\u3164")
    terminal.type("e\n")
    terminal.until("back")
    terminal.type('{"to": "old"}\n')
    terminal.until("help\x1b[0m\n")
    again = terminal.text.rpartition("approval")[2]
    assert "+more" not in again  # that was for other arguments


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("survey", "survey asks, and there is nobody to ask, so it was denied: Who are you?"),
        ("browse", "browse waits for a client, and there is nobody to ask, so it was denied: Show a page"),
        ("hostile", r"so it was denied: Hello\x0a? bank needs approval\x0a\x1b[2J\u202e\u3164evil"),
    ],
)
def test_where_nobody_is_a_tool_that_asks_is_denied_and_the_answer_comes(line: str, expected: str):
    done = pipe(line + "\n", *TOOLS)

    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout.startswith('ada read ["False None')
    assert done.returncode == 1


async def test_where_everything_is_allowed_by_itself_a_form_is_refused_and_nothing_hangs():
    out = io.StringIO()
    screen = LineScreen(out, gutter=0)
    steps = [calls(call("held")), calls(call("agree")), calls(call("browse", page="x")), say("bye")]
    async with Chat(ScriptedModel(*steps), tools=[held, agree, browse]) as chat:
        turn = await chat.send("go")
        answer = TurnPrinter(screen, turn.id, lambda text: None)
        watch = TurnWatch(chat, turn, answer, GatePrompt(screen, chat, auto=True))
        assert await watch.until_over(asyncio.Event(), lambda: None)

    for row in ("held  False None", "agree  True None", "browse  False None"):
        assert f"✓ {row}" in out.getvalue()
