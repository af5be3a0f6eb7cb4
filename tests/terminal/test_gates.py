"""Gates in the chat, as a person in front of a terminal answers them."""

import os
import sys
from pathlib import Path

import pytest
from tests.terminal.chat_process import PROMPT, Start, ask, one_line, pipe

TOOLS = ("--tools", str(Path(__file__).parent / "chat_tools.py"))
ASKED = "[?] help\n> "
NEXT = "> "


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the tools really did."""
    path = tmp_path / "done"
    path.touch()
    monkeypatch.setitem(os.environ, "EVERTURN_DONE", str(path))
    monkeypatch.setattr("tests.terminal.conftest.PLAIN", _without_editor(path))
    monkeypatch.setattr("tests.terminal.chat_process.PLAIN", _without_editor(path))
    return path


def _without_editor(path: Path) -> dict[str, str]:
    from tests.terminal import chat_process

    plain = {name: value for name, value in chat_process.PLAIN.items() if name not in ("EDITOR", "VISUAL")}
    return plain | {"EVERTURN_DONE": str(path)}


def did(done: Path) -> str:
    return done.read_text(encoding="utf-8")


# Once, always, not at all


def test_what_is_allowed_once_runs_once_with_what_was_shown(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("mail\n")
    terminal.until(ASKED)

    assert (
        "I will write.\n"
        "? send_mail needs approval\n"
        "  because: no rule covers this call of send_mail\n"
        "  arguments:\n"
        "    to    ada@example.org\n"
        "    text  Lunch?\n"
        "  “always” stores this rule, for this conversation:\n"
        '    {tool = "send_mail", action = "allow"}\n'
        "[y] allow once   [a] always   [e] edit   [r] I did it   [n] deny   [?] help\n"
    ) in terminal.text
    assert did(done) == ""
    assert "ada read ['sent to ada@example.org']" in ask(terminal, "y")
    assert did(done) == "mail ada@example.org 6 False\n"
    terminal.type("mail\n")
    terminal.until(ASKED)


def test_what_is_allowed_always_is_not_asked_again_in_this_conversation(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("mail\n")
    terminal.until(ASKED)
    assert 'stored, for this conversation:\n    {tool = "send_mail", action = "allow"}\n' in ask(terminal, "a")

    assert "needs approval" not in ask(terminal, "mail")
    assert did(done).count("mail") == 2
    ask(terminal, "/new")
    terminal.type("mail\n")
    terminal.until(ASKED)


@pytest.mark.parametrize(("answer", "is_asked_again"), [("1", True), ("2", False)])
def test_of_several_rules_the_one_that_was_chosen_is_stored(
    start: Start, done: Path, answer: str, is_asked_again: bool
):
    terminal = start(*TOOLS)
    terminal.type("save\n")
    terminal.until(ASKED)
    assert '    1  {tool = "save", match = {path = "notes/today/lunch.txt"}, action =\n' in terminal.text
    assert '    2  {tool = "save", match = {path = "notes/today/**"}, action = "allow"}\n' in terminal.text
    terminal.type("a\n")
    terminal.until("Enter: back\n> ")
    terminal.type("3\n")
    terminal.until(ASKED)
    assert "there is no rule 3; nothing was answered" in terminal.text
    assert did(done) == ""
    stored = ask(terminal, f"a {answer}").partition("stored, for this conversation:")[2].partition("→")[0]
    assert ("**" in stored) is not is_asked_again


def test_the_step_limit_asks_and_its_answer_is_no_answer_to_the_call(start: Start, done: Path):
    terminal = start(*TOOLS, "--max-steps", "1")
    terminal.type("shout\n")
    terminal.until(ASKED)
    assert (
        "? The step limit is reached\n"
        "  because: the step limit is reached (max_steps=1)\n"
        "  may the turn continue, for up to 2 steps in total?\n"
        "[y] continue   [n] end the turn   [?] help\n"
    ) in terminal.text
    terminal.type("y\n")
    terminal.until(ASKED)
    assert "shout needs approval" in terminal.text
    assert did(done) == ""
    ask(terminal, "y")
    assert did(done).startswith("shout")


def test_where_the_step_limit_is_denied_the_call_does_not_run(start: Start, done: Path):
    terminal = start(*TOOLS, "--max-steps", "1")
    terminal.type("shout\n")
    terminal.until(ASKED)
    terminal.type("n\n")
    terminal.until("> ")
    assert "max_steps_reached" in ask(terminal, "")
    assert did(done) == ""


def test_always_is_not_there_where_it_is_not_offered(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("shout\n")
    terminal.until(ASKED)
    assert "[a]" not in terminal.text
    assert "stores this rule" not in terminal.text
    terminal.type("a\n")
    terminal.until(ASKED)

    assert "· y: run it once" in terminal.text
    assert did(done) == ""


@pytest.mark.parametrize(
    ("reason", "expected"), [("too loud", "and said why: too loud."), ("", "did not allow this call.")]
)
def test_what_is_denied_never_runs_and_the_model_reads_why(start: Start, done: Path, reason: str, expected: str):
    terminal = start(*TOOLS)
    terminal.type("shout\n")
    terminal.until(ASKED)
    terminal.type("n\n")
    terminal.until(NEXT)

    assert expected in one_line(ask(terminal, reason))
    assert did(done) == ""


@pytest.mark.parametrize("other", ["perhaps", "?", "y!", "yes please", "1", ""])
def test_anything_that_is_not_plainly_an_answer_is_answered_with_help(start: Start, done: Path, other: str):
    terminal = start(*TOOLS)
    terminal.type("shout\n")
    terminal.until(ASKED)
    terminal.type(other + "\n")
    terminal.until(ASKED)
    assert "Ctrl-C answers nothing and cancels the turn." in terminal.text

    assert did(done) == ""


def test_what_was_typed_before_the_question_is_not_its_answer(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("shout\ny\n")
    terminal.until(ASKED)
    terminal.type("n\n")
    terminal.until(NEXT)
    ask(terminal, "")

    assert did(done) == ""


# Several


def test_several_gates_are_asked_one_after_the_other(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("mail three\n")
    for place in ("1 of 3: ", "2 of 3: "):
        terminal.until(ASKED)
        assert terminal.text.count(place) == 1
        terminal.type("y\n")
    terminal.until(ASKED)
    assert "3 of 3: send_mail" in terminal.text
    ask(terminal, "y")

    assert sorted(did(done).split()[1::4]) == ["ada", "grace", "joan"]


def test_one_denial_can_be_that_of_all_that_is_asked(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("mail three\n")
    terminal.until(ASKED)
    terminal.type("n all\n")
    terminal.until(NEXT)

    assert one_line(ask(terminal, "enough")).count("said why: enough") >= 3
    assert "2 of 3" not in terminal.text
    assert did(done) == ""


def test_a_rule_that_was_stored_answers_the_gates_beside_it(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("mail three\n")
    terminal.until(ASKED)
    ask(terminal, "a")

    assert "2 of 3" not in terminal.text
    assert did(done).count("mail") == 3


# Everything is shown, and can be seen


def test_hidden_characters_are_written_out_and_counted(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("mail hidden\n")
    terminal.until(ASKED)

    assert r"    text  pay ada\u202e\u200b\u3164\x1b[2J now" + "\n" in terminal.text
    assert "4 characters cannot be seen, and are written out" in terminal.text
    prompt = terminal.text.partition("needs approval")[2]
    assert not any(char in prompt for char in "\u202e\u200b\u3164")
    assert "\x1b[2J" not in prompt


@pytest.mark.parametrize("columns", ["80", "40"])
def test_nothing_is_cut_off_however_long_it_is(start: Start, done: Path, columns: str):
    terminal = start(*TOOLS, COLUMNS=columns, LINES="24")
    terminal.type("mail long\n")
    terminal.until(ASKED)
    prompt = terminal.text.partition("arguments:")[2]

    assert all(f"│ line {at}\n" in prompt for at in range(60))
    assert prompt.count("Z") == 500
    assert "to ada@example.org text" in one_line(prompt)
    assert "Z the end" in one_line(prompt)
    assert "…" not in prompt
    assert "scroll up to read all of them" in one_line(prompt)
    assert max(len(line) for line in prompt.splitlines()) <= int(columns)


# Editing


def test_edited_arguments_are_checked_shown_again_and_only_then_run(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("mail\n")
    terminal.until(ASKED)
    terminal.type("e\n")
    for wrong in ("Hi", "[1]", '{"text": 5}', '{"txet": "Hi"}'):
        terminal.until("Enter: back\n> ")
        terminal.type(wrong + "\n")
    terminal.until("Enter: back\n> ")
    terminal.type('{"text": "Hi \\u202e", "urgent": true}\n')
    terminal.until(ASKED)
    again = terminal.text.rpartition("? send_mail needs approval")[2]
    assert "arguments with your changes:\n" in again
    assert r"    text    Hi \u202e" + "\n" in again
    assert "    urgent  true\n" in again
    assert "[a]" not in again
    assert did(done) == ""
    ask(terminal, "y")

    assert did(done) == "mail ada@example.org 4 True\n"


def test_arguments_are_edited_in_the_editor_that_the_person_has_chosen(start: Start, done: Path, tmp_path: Path):
    editor = tmp_path / "edit.py"
    editor.write_text(
        "import pathlib, sys\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "file.write_text(file.read_text().replace('Lunch?', 'Dinner?'))\n"
    )
    terminal = start(*TOOLS, EDITOR=f"{sys.executable} '{editor}'")
    terminal.type("mail\n")
    terminal.until(ASKED)
    terminal.type("e\n")
    terminal.until(ASKED)
    assert "arguments with your changes:\n    to    ada@example.org\n    text  Dinner?\n" in terminal.text
    ask(terminal, "y")

    assert did(done) == "mail ada@example.org 7 False\n"


@pytest.mark.parametrize("editor", ["/nowhere/vi", "false", "true"])
def test_an_editor_that_fails_or_changes_nothing_leaves_the_question_as_it_was(start: Start, done: Path, editor: str):
    terminal = start(*TOOLS, EDITOR=editor)
    terminal.type("mail\n")
    terminal.until(ASKED)
    terminal.type("e\n")
    terminal.until(ASKED)

    assert any(text in terminal.text for text in ("cannot be started", "nothing was changed"))
    assert did(done) == ""


# By hand


def test_who_did_it_themselves_says_what_came_of_it_and_nothing_runs(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("mail\n")
    terminal.until(ASKED)
    terminal.type("r\n")
    terminal.until(NEXT)
    terminal.type("I phoned her:\n\nshe is coming\n\n")
    terminal.until(PROMPT)

    assert r"ada read ['I phoned her:\n\nshe is coming']" in terminal.text
    assert did(done) == ""


def test_no_words_at_all_are_no_result(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("mail\n")
    terminal.until(ASKED)
    terminal.type("r\n")
    terminal.until(NEXT)
    terminal.type("\n")
    terminal.until(ASKED)
    terminal.type("r\n")
    terminal.until(NEXT)
    terminal.type("\x04")
    terminal.until(ASKED)

    assert did(done) == ""


def test_tools_can_be_left_to_the_person_with_an_option(start: Start, done: Path):
    terminal = start(*TOOLS, "--manual", "inb*")
    terminal.type("inbox\n")
    terminal.until(ASKED)
    assert "? Your turn: inbox\n" in terminal.text
    terminal.type("r\n")
    terminal.until(NEXT)
    terminal.type("nothing new\n\x04")
    terminal.until(PROMPT)

    assert "ada read ['nothing new']" in terminal.text
    assert did(done) == ""


# Results under review


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["y"], r"ada read ['From: ada\nThe word is hunter2.\nAgain: hunter2.']"),
        (["e", "hunter2", "", "y"], r"ada read ['From: ada\nThe word is [redacted].\nAgain: [redacted].']"),
        (["n", "private"], "withheld this result and said why: private."),
    ],
)
def test_a_result_is_sent_redacted_or_withheld(start: Start, done: Path, keys: list[str], expected: str):
    terminal = start(*TOOLS, "--review", "always")
    terminal.type("inbox\n")
    terminal.until(ASKED)
    assert (
        "? Review the result of inbox before the model reads it\n"
        "  because: its result needs review\n"
        "  arguments used:\n"
        "    folder  new\n"
        "  the model would read, 3 lines:\n"
        "    │ From: ada\n"
        "    │ The word is hunter2.\n"
        "    │ Again: hunter2.\n"
        "[y] send   [e] redact   [n] withhold   [?] help\n"
    ) in terminal.text
    for key in keys[:-1]:
        terminal.type(key + "\n")
        terminal.until(NEXT)
    shown = ask(terminal, keys[-1])

    assert expected in one_line(shown)
    assert ("hunter2" in shown) is (keys == ["y"])


def test_what_is_not_in_a_result_cannot_be_taken_out_of_it(start: Start, done: Path):
    terminal = start(*TOOLS, "--review", "on_error")
    terminal.type("fail\n")
    terminal.until(ASKED)
    assert "? Review the error of fail before the model reads it\n" in terminal.text
    terminal.type("e\n")
    terminal.until(NEXT)
    terminal.type("hunter3\n")
    terminal.until(NEXT)
    assert "that text does not occur" in terminal.text
    terminal.type("\n")
    terminal.until(ASKED)
    assert "nothing was removed" in terminal.text


# Ctrl-C, Ctrl-D, and going on


def test_ctrl_c_at_the_question_answers_nothing_and_cancels_the_turn(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("shout\n")
    terminal.until(ASKED)
    terminal.interrupt()
    terminal.until(PROMPT)

    assert "· cancelled" in terminal.text
    assert did(done) == ""
    assert "heard 'shout+Hello'" in ask(terminal, "Hello")  # and no line was taken by a question that is gone


def test_ctrl_d_at_the_question_of_a_conversation_that_is_not_kept_cancels_the_turn(start: Start, done: Path):
    terminal = start(*TOOLS)
    terminal.type("shout\n")
    terminal.until(ASKED)
    terminal.type("\x04")
    terminal.until(PROMPT)

    assert "· cancelled" in terminal.text
    assert did(done) == ""


def test_a_question_that_is_kept_can_be_left_and_is_asked_at_once_by_the_next_process(
    start: Start, done: Path, tmp_path: Path
):
    session_options = ("--store", str(tmp_path / "talks.db"), "--session", "lunch")
    terminal = start(*TOOLS, *session_options)
    terminal.type("mail\n")
    terminal.until(ASKED)
    terminal.type("\x04")
    assert terminal.end() == 0
    assert "nothing was answered, and the question stays open" in terminal.text

    again = start(*TOOLS, *session_options, until=ASKED)
    assert "? send_mail needs approval\n" in again.text
    assert "    text  Lunch?\n" in again.text
    assert did(done) == ""
    assert "ada read ['sent to ada@example.org']" in ask(again, "y")
    assert did(done) == "mail ada@example.org 6 False\n"


def test_without_the_tool_the_next_process_says_what_is_missing(start: Start, done: Path, tmp_path: Path):
    session_options = ("--store", str(tmp_path / "talks.db"), "--session", "lunch")
    terminal = start(*TOOLS, *session_options)
    terminal.type("mail\n")
    terminal.until(ASKED)
    terminal.type("\x04")
    assert terminal.end() == 0

    again = start(*session_options, until=ASKED)
    assert "there is no tool of this name here, so it would fail; --tools brings one" in one_line(again.text)


def test_a_gate_that_expires_while_it_is_asked_says_so_and_the_turn_goes_on(start: Start, done: Path):
    terminal = start(*TOOLS, "--gate-timeout", "1")
    terminal.type("shout\n")
    terminal.until(ASKED)
    assert "it can be answered for 1 second\n" in terminal.text
    terminal.until(PROMPT)
    assert "the approval has expired" in terminal.text

    assert did(done) == ""
    assert "heard" in ask(terminal, "Hello")


# Nobody there


def test_in_a_pipe_nothing_waits_what_asks_is_denied_and_the_exit_code_tells(done: Path):
    piped = pipe("mail\nHello\n", *TOOLS)

    assert piped.returncode == 1
    assert "send_mail asks, and there is nobody to ask, so it was denied" in piped.stderr
    assert "said why: there is nobody to ask" in piped.stdout
    assert "heard 'mail+Hello'" in piped.stdout
    assert did(done) == ""


def test_in_a_pipe_a_result_that_nobody_reads_is_withheld(done: Path):
    piped = pipe("inbox\n", *TOOLS, "--review", "always")

    assert piped.returncode == 1
    assert "its result was withheld" in piped.stderr
    assert "hunter2" not in piped.stdout


def test_in_a_pipe_tools_that_ask_nobody_run(done: Path):
    piped = pipe("inbox\n", *TOOLS)

    assert (piped.returncode, piped.stderr) == (0, "")
    assert "hunter2" in piped.stdout


# Rules


def test_rules_of_a_file_decide_before_anybody_is_asked(start: Start, done: Path, tmp_path: Path):
    rules = tmp_path / "rules.toml"
    rules.write_text(
        '[[permissions]]\ntool = "send_mail"\nmatch = { to = "ada@*" }\naction = "allow"\n'
        '[[permissions]]\ntool = "inbox"\naction = "ask"\n'
    )
    terminal = start(*TOOLS, "--permissions", str(rules))
    assert "needs approval" not in ask(terminal, "mail")
    assert did(done) == "mail ada@example.org 6 False\n"
    terminal.type("inbox\n")
    terminal.until(ASKED)

    assert f"{rules}:5" in "".join(terminal.text.split())
