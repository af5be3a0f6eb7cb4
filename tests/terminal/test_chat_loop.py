"""The chat, as a person in front of a terminal sees it, and as a pipe does."""

import subprocess

import pytest
from tests.terminal.chat_process import CHAT, PLAIN, PROMPT, Start, ask, pipe

# A person


def test_a_line_is_answered_and_the_prompt_comes_back(start: Start):
    terminal = start("--system", "Be brief.")
    assert "ada. /help says what there is" in terminal.text

    shown = ask(terminal, "Hello")
    assert "ada>\nada heard 'Hello', answered 0" in shown
    assert "Be brief." in shown
    assert "heard 'Hello+Bye', answered 1" in ask(terminal, "Bye")


def test_an_answer_is_shown_while_it_comes_and_ctrl_c_cancels_it(start: Start):
    terminal = start()
    terminal.type("hang\n")
    terminal.until("One two")
    terminal.interrupt()
    terminal.until(PROMPT)

    assert "One two …\n· cancelled; the text so far stays" in terminal.text.replace("  ", " ")
    assert "heard 'hang+Go on', answered 1" in ask(terminal, "Go on")


@pytest.mark.parametrize("leave", ["\x04", "/quit\n"])
def test_who_leaves_at_the_prompt_leaves_well(start: Start, leave: str):
    terminal = start()
    ask(terminal, "Hello")
    terminal.type(leave)

    assert terminal.end() == 0
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize("typed", ["", "half a line"])
def test_ctrl_c_at_the_prompt_leaves_well(start: Start, typed: str):
    terminal = start()
    ask(terminal, "Hello")
    terminal.type(typed)
    terminal.until(typed)

    assert terminal.interrupt_until_it_ends() == 0
    assert "Traceback" not in terminal.text


def test_thoughts_have_a_line_at_their_side_and_the_end_says_what_it_took(start: Start):
    assert ask(start(), "think").partition("ada>\n")[2].partition(PROMPT)[0].replace("\x1b[?2004h", "") == (
        "│ Hard.\n│\n│ Very hard.\nEasy.\n· 212 tokens in (100 cached), 61 out (40 reasoning), $0.0012\n\n"
    )


def test_an_empty_line_sends_nothing(start: Start):
    terminal = start()
    assert "ada>" not in ask(terminal, "") + ask(terminal, "   ")
    assert "heard 'Hello', answered 0" in ask(terminal, "Hello")


def test_an_older_line_comes_back_and_can_be_changed(start: Start):
    terminal = start()
    ask(terminal, "Hello")

    assert "heard 'Hello+Hello!'" in ask(terminal, "\x1b[A!")


def test_pasted_lines_are_one_message(start: Start):
    terminal = start()

    assert r"heard 'one\ntwo', answered 0" in ask(terminal, "\x1b[200~one\ntwo\x1b[201~")


@pytest.mark.parametrize(("words", "is_colored"), [(["--color"], True), ([], False)])
def test_color_is_shown_to_those_who_want_it(start: Start, words: list[str], is_colored: bool):
    assert ("\x1b[2m" in ask(start(*words), "think")) is is_colored


# Commands


def test_help_names_every_command(start: Start):
    shown = ask(start(), "/help")

    assert all(f"· {name}" in shown for name in ("/help", "/attach PATH", "/save PATH", "/model NAME", "/quit"))


def test_an_unknown_command_is_answered_with_those_there_are(start: Start):
    shown = ask(start(), "/hlep me")

    assert "× there is no command /hlep; there are: /help, /attach, " in shown
    assert "/new, /quit\n" in " ".join(shown.split("\n  "))


def test_a_line_that_begins_with_a_blank_is_sent_whatever_it_looks_like(start: Start):
    assert "heard '/new', answered 0" in ask(start(), " /new")


def test_another_model_goes_on_where_the_first_one_was(start: Start):
    terminal = start()
    ask(terminal, "Hello")

    assert "· from here on bob\n" in ask(terminal, "/model bob")
    assert "bob>\nbob heard 'Hello+Bye', answered 1" in ask(terminal, "Bye")
    assert "bob>\nbob heard 'Hello+Bye', answered 1" in ask(terminal, "/again")
    ask(terminal, "/new")
    assert "bob>\nbob heard 'Hello', answered 0" in ask(terminal, "Hello")
    assert "· the model is bob\n" in ask(terminal, "/model")


def test_a_model_that_is_not_there_changes_nothing(start: Start):
    terminal = start()

    assert "× there is no model 'nobody'; there are: any but those\n" in ask(terminal, "/model nobody")
    assert "ada heard 'Hello'" in ask(terminal, "Hello")


def test_again_is_another_answer_in_the_place_of_the_last_one(start: Start):
    terminal = start()
    assert "× there is nothing to answer again yet" in ask(terminal, "/again")
    ask(terminal, "Hello")

    assert "heard 'Hello', answered 0" in ask(terminal, "/again")
    assert "heard 'Hello+Bye', answered 1" in ask(terminal, "Bye")


def test_a_new_conversation_knows_nothing_of_the_one_before(start: Start):
    terminal = start("--system", "Be brief.")
    ask(terminal, "Hello")
    ask(terminal, "/new")
    assert "× there is nothing to answer again yet" in ask(terminal, "/again")

    shown = ask(terminal, "Bye")
    assert "heard 'Bye', answered 0" in shown
    assert "Be brief." in shown


# What goes wrong


def test_a_turn_that_fails_is_one_line_with_the_next_thing_to_do_and_the_prompt_comes_back(start: Start):
    terminal = start()

    assert "Half a …\n× network: it broke off. /again tries again\n" in ask(terminal, "break")
    assert "Half a …\n× network: it broke off. /again tries again\n" in ask(terminal, "/again")
    assert "heard 'break+Hello'" in ask(terminal, "Hello")


def test_a_bug_is_one_line_too(start: Start):
    shown = ask(start(), "bug")

    assert "× internal: RuntimeError: a bug. Please report this" in shown
    assert "Traceback" not in shown


def test_an_answer_that_is_empty_or_cut_off_is_called_so(start: Start):
    terminal = start()

    assert "· the model said nothing\n" in ask(terminal, "nothing")
    assert "Once upon\n· the answer is cut off" in ask(terminal, "long")


def test_hostile_text_of_a_model_or_its_provider_is_shown_and_never_obeyed(start: Start):
    terminal = start("--model", "\x1b]0;ada\x07")
    shown = "".join(ask(terminal, line) for line in ("evil", "refuse", "/model \x16\x1b[2Jbob", "/\x16\x1b[2J"))

    harmless = r"\x1b[2J\x1b]0;owned\x07\u202e\x9b31m"
    for place in (r"\x1b]0;ada\x07>", f"│ {harmless}", f"said {harmless}", f"key: no {harmless}", r"on \x1b[2Jbob"):
        assert place in shown
    assert not set("\u202e\x9b") & set(terminal.text)
    assert "\x1b[2J" not in terminal.text
    assert "\x1b]" not in terminal.text


# A pipe


def test_each_line_of_a_pipe_is_answered_without_a_prompt():
    done = pipe("think\n\nBye")

    assert (done.returncode, done.stderr) == (0, "")
    first, between, second = done.stdout.splitlines()
    assert (first, between) == ("Easy.", "")
    assert second.startswith("ada heard 'think+Bye', answered 1")


def test_an_empty_pipe_is_answered_with_nothing():
    done = pipe("")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_pipe_is_told_of_failures_beside_its_answers():
    done = pipe("break\n/nwe\nHello\nlong")

    assert done.returncode == 1
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == [
        "Half a",
        "",
        "ada heard 'break+Hello'",
        "",
        "Once upon" * 3,  # cut off three times; a continuation is the same text
    ]
    assert done.stderr.splitlines() == [
        "everturn: network: it broke off",
        "everturn: there is no command /nwe; there are: /help, /attach, /detach, /send, /save, /tools, /memory, /files, /revert, "
        "/unrevert, /model, /again, /context, /compact, /new, /quit",
        "everturn: the answer is cut off at the output limit of the model; ask it to continue",
    ]


def test_bytes_that_are_no_text_are_no_reason_to_fail():
    done = subprocess.run(CHAT, input=b"caf\xe9\n", env=PLAIN, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
    assert "heard 'caf\ufffd'" in done.stdout.decode()


def test_ctrl_c_ends_a_chat_that_nobody_types():
    program = subprocess.Popen(CHAT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=PLAIN)
    with program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(b"hang\nHello\n")
        program.stdin.flush()
        assert program.stdout.read(3) == b"One"
        program.send_signal(2)
        output, _ = program.communicate()

    assert program.returncode == 130
    assert b"Hello" not in output


# The context window


def test_the_context_window_is_shown_and_compacted(start: Start):
    terminal = start()
    assert "there is nothing to compact yet" in ask(terminal, "/compact")
    ask(terminal, "Hello")
    assert "there is too little to compact yet" in ask(terminal, "/compact")
    for _ in range(3):
        ask(terminal, "Long " + "words " * 150)
    shown = ask(terminal, "/context")
    assert "ada: " in shown
    assert "your messages" in shown
    assert "%" not in shown  # the window is not known
    compacted = ask(terminal, "/compact the dates")
    assert "earlier messages are being summarised" in compacted
    assert "tokens" in compacted
    assert "the model said nothing" not in compacted
