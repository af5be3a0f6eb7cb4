"""The demo, as a person in front of a terminal sees it, and what it does with text that means harm."""

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from everturn import Chat, Progress, tool
from everturn.demo import wait_for_late, watch_turn
from everturn.demo.view import DemoView
from everturn.terminal.lines.gate_prompt import GatePrompt
from everturn.terminal.text.screen import WIDTH, LineScreen
from everturn.testing import ScriptedModel, call, calls, say, think
from tests.helpers.pseudo_terminal import Terminal

PYTHON = [sys.executable, "-W", "error"]
PLAY = "import sys; from everturn.demo import DemoOptions, run_demo; sys.exit(run_demo(DemoOptions({})))"
PLAIN = {**os.environ, "COLUMNS": "80", "PYTHONUTF8": "1", "TERM": "xterm"}
for name in ("NO_COLOR", "EDITOR", "VISUAL"):
    PLAIN.pop(name, None)

CHOICES = "[?] help\n             > "
CHANGES = "Enter: back\n             > "


Start = Callable[..., Terminal]


@pytest.fixture
def start() -> Iterator[Start]:
    opened: list[Terminal] = []

    def start(*words: str, played: str = "", **environment: str) -> Terminal:
        program = ["-c", PLAY.format(played)] if played else ["-m", "everturn", "demo", *words]
        opened.append(Terminal([*PYTHON, *program], PLAIN | environment))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def labels(text: str) -> list[str]:
    """What stands in the gutter, from top to bottom."""
    return [line.split()[0] for line in text.splitlines() if line[:1] == " " and line[1:2] not in ("", " ")]


def flat(text: str) -> str:
    """Text without the breaks and spaces a screen puts in it."""
    return "".join(text.split())


# The story


def test_by_itself_it_shows_the_phases_in_order_and_ends_well():
    done = subprocess.run(
        [*PYTHON, "-m", "everturn", "demo", "--auto", "--fast"],
        input="",
        env=PLAIN,
        capture_output=True,
        encoding="utf-8",
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert " ".join(labels(done.stdout)) == (
        "you preparing streaming tool_call streaming tool_call waiting tool_call streaming finalizing completed "
        "summary next"
    )
    assert "calls   3: 3 completed" in done.stdout
    assert "Done: sent to ada@example.org and grace@example.org" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= WIDTH
    assert "\x1b" not in done.stdout


def test_both_tools_start_before_either_of_them_ends():
    done = subprocess.run(
        [*PYTHON, "-m", "everturn", "demo", "--auto", "--fast"],
        input="",
        env=PLAIN,
        capture_output=True,
        encoding="utf-8",
    )

    first_end = done.stdout.index("✓")
    assert done.stdout.index("→ weather") < done.stdout.index("→ calendar") < first_end
    assert done.stdout.index("· weather") < done.stdout.index("· calendar") < first_end


@pytest.mark.parametrize("yes", ["y", "Yes", "YES"])
def test_an_allowed_call_runs_with_the_arguments_that_were_shown(start: Start, yes: str):
    terminal = start("--fast", "--no-color")
    terminal.until(CHOICES)
    assert "                 time   12:30\n" in terminal.text
    terminal.type(yes + "\n")

    assert terminal.end() == 0
    assert "send_invitation  allowed once\n" in terminal.text
    assert "run it again: answer e or n" in terminal.text
    assert "Done: sent to ada@example.org and grace@example.org: Friday at 12:30," in " ".join(terminal.text.split())


def test_edited_arguments_are_what_runs_and_the_model_hears_of_it(start: Start):
    terminal = start("--fast", "--no-color")
    terminal.until(CHOICES)
    terminal.type("Edit\n")
    terminal.until("> ")
    terminal.type('{"time": "13:00"}\n')
    terminal.until(CHOICES)
    assert "arguments with your changes:" in terminal.text
    terminal.type("y\n")

    assert terminal.end() == 0
    assert "allowed once, with changes" in terminal.text
    assert "run it again: answer y or n" in terminal.text
    assert "Done, with your changes: sent to ada@example.org and grace@example.org: Friday at 13:00" in " ".join(
        terminal.text.split()
    )


@pytest.mark.parametrize("wrong", ["half past twelve", "n", '{"tiem": "13:00"}'])
def test_changes_that_do_not_fit_are_asked_for_again(start: Start, wrong: str):
    terminal = start("--fast", "--no-color")
    terminal.until(CHOICES)
    terminal.type("e\n")
    terminal.until(CHANGES)
    terminal.type(wrong + "\n")
    terminal.until(CHANGES)
    terminal.type('{"time": "13:00"}\n')
    terminal.until(CHOICES)
    terminal.type("y\n")

    assert terminal.end() == 0
    assert "Friday at 13:00" in " ".join(terminal.text.split())


def test_an_empty_line_instead_of_changes_goes_back_to_the_choices(start: Start):
    terminal = start("--fast", "--no-color")
    terminal.until(CHOICES)
    terminal.type("e\n")
    terminal.until(CHANGES)
    terminal.type("\n")
    terminal.until(CHOICES)
    terminal.type("y\n")

    assert terminal.end() == 0
    assert "Friday at 12:30" in " ".join(terminal.text.split())


def test_a_denied_call_never_starts_and_the_model_reads_why(start: Start):
    terminal = start("--fast", "--no-color")
    terminal.until(CHOICES)
    terminal.type("No\n")
    terminal.until("> ")
    terminal.type("Grace is on holiday\n")

    assert terminal.end() == 0
    assert "→ send_invitation" not in terminal.text
    assert "Nothing was sent. You said: Grace is on holiday." in terminal.text
    assert "calls   3: 2 completed, 1 denied" in terminal.text
    assert "finalizing  no call is open" in terminal.text
    assert "run it again: answer y or e" in terminal.text


def test_what_was_typed_before_the_question_is_not_its_answer(start: Start):
    terminal = start("--fast", "--no-color")
    terminal.type("y\n")
    terminal.until(CHOICES)
    terminal.type("n\n")
    terminal.until("> ")
    terminal.type("\n")

    assert terminal.end() == 0
    assert "Nothing was sent. Tell me" in terminal.text


def test_another_word_than_the_choices_is_explained(start: Start):
    terminal = start("--fast", "--no-color")
    terminal.until(CHOICES)
    terminal.type("perhaps\n")
    terminal.until(CHOICES)
    terminal.type("y\n")

    assert terminal.end() == 0
    assert "Type a letter, then Enter." in terminal.text


def test_who_did_it_themselves_says_what_came_of_it(start: Start):
    terminal = start("--fast", "--no-color")
    terminal.until(CHOICES)
    terminal.type("r\n")
    terminal.until("> ")
    terminal.type("I phoned both\n\n")

    assert terminal.end() == 0
    assert "? send_invitation  done by hand\n" in terminal.text
    assert "→ send_invitation" not in terminal.text
    assert "✓ send_invitation  I phoned both\n" in terminal.text


# Ctrl-C


def test_ctrl_c_ends_the_turn_while_its_tools_go_on(start: Start):
    terminal = start(played="word=0, moment=3600, max_wait=0")
    terminal.until("reading Ada's Friday")
    terminal.interrupt()

    assert terminal.end() == 130
    over = terminal.text.index("cancelled   after")
    assert terminal.text.index("× weather   cancelled") < terminal.text.index("× calendar  cancelled") < over
    assert over < terminal.text.index("left behind: weather, calendar")
    assert "calls   2: 2 cancelled" in terminal.text
    assert "finalizing  every call gets its one result" in terminal.text
    assert "or press Ctrl-C while the model speaks" in " ".join(terminal.text.split())


async def test_what_a_tool_brings_after_its_turn_was_cancelled_is_shown_as_late():
    interrupted, release = asyncio.Event(), asyncio.Event()

    @tool(read_only=True)
    async def dig() -> str:
        """Dig until it is told to stop."""
        interrupted.set()
        await release.wait()
        return "gold"

    out = io.StringIO()
    screen = LineScreen(out)
    async with Chat(ScriptedModel(calls(call("dig"))), tools=[dig]) as chat:
        turn = await chat.send("Dig")
        view = DemoView(screen, turn.id)
        await watch_turn(chat, turn, view, interrupted, GatePrompt(screen, chat, auto=True))
        assert "× dig  cancelled" in out.getvalue()
        release.set()
        await wait_for_late(chat, view, max_wait=60)

    assert "+ dig  late result: gold" in out.getvalue()


def test_a_second_ctrl_c_leaves_at_once(start: Start):
    terminal = start(played="word=0, moment=3600, max_wait=3600")
    terminal.until("reading Ada's Friday")
    terminal.interrupt()
    terminal.until("Ctrl-C again leaves them\n")
    terminal.interrupt()

    assert terminal.end() == 130
    assert "summary" not in terminal.text
    assert terminal.text.endswith("\n\n")


def test_ctrl_c_while_the_model_speaks_ends_its_sentence(start: Start):
    terminal = start(played="word=1")
    terminal.until("Two")
    terminal.interrupt()

    assert terminal.end() == 130
    assert "…" in terminal.text
    assert "calls   0" in terminal.text
    assert "tool_call" not in terminal.text
    assert "or press Ctrl-C while a tool runs" in " ".join(terminal.text.split())


def test_ctrl_c_at_the_question_cancels_the_turn(start: Start):
    terminal = start("--fast", "--no-color")
    terminal.until(CHOICES)
    terminal.interrupt()

    assert terminal.end() == 130
    assert "it had no effect" in terminal.text
    assert "calls   3: 2 completed, 1 cancelled" in terminal.text


def test_the_end_of_the_input_cancels_the_turn_for_nobody_can_answer(start: Start):
    terminal = start("--fast", "--no-color")
    terminal.until(CHOICES)
    terminal.type("\x04")

    assert terminal.end() == 130
    assert "1 cancelled" in terminal.text


# The screen


@pytest.mark.parametrize(
    ("words", "environment", "is_colored"),
    [((), {}, True), (("--no-color",), {}, False), ((), {"NO_COLOR": "1"}, False), ((), {"TERM": "dumb"}, False)],
)
def test_color_is_for_terminals_that_want_it(
    start: Start, words: tuple[str, ...], environment: dict[str, str], is_colored: bool
):
    terminal = start("--auto", "--fast", *words, **environment)

    assert terminal.end() == 0
    assert ("\x1b[" in terminal.text) is is_colored


@pytest.mark.parametrize("columns", [80, 60, 50, 40])
def test_at_any_width_choices_stay_whole_and_so_do_the_arguments_that_run(start: Start, columns: int):
    terminal = start("--fast", "--no-color", COLUMNS=str(columns))
    terminal.until(CHOICES)
    terminal.type("e\n")
    terminal.until(CHANGES)
    terminal.type('{"place": "' + " ".join(f"stop{at}" for at in range(40)) + '"}\n')
    terminal.until(CHOICES)
    terminal.type("y\n")

    assert terminal.end() == 0
    for choice in ("[y] allow once", "[e] edit", "[r] I did it", "[n] deny", "[?] help", "[y] run this, once"):
        assert choice in terminal.text
    runs = terminal.text[terminal.text.index("→ send_invitation") : terminal.text.index("· send_invitation")]
    assert "…" not in runs
    assert runs.count("stop") == 40
    assert runs.rstrip().endswith("}")


def test_where_it_is_narrow_what_a_call_does_stands_below_its_name(start: Start):
    terminal = start("--auto", "--fast", "--no-color", COLUMNS="40")

    assert terminal.end() == 0
    assert "· calendar\n               reading Ada's Friday\n" in terminal.text
    assert max(map(len, terminal.text.splitlines())) <= 40


HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202e\x9b31m\r"
HARMLESS = r"\x1b[2J\x1b]0;owned\x07\u202e\x9b31m\r"


def test_escapes_a_person_pastes_come_back_harmless_from_model_and_tool(start: Start):
    terminal = start("--fast", "--no-color")
    terminal.until(CHOICES)
    terminal.type("e\n")
    terminal.until("> ")
    terminal.type(r'{"place": "\u001b[2J\u001b]0;owned\u0007"}' + "\n")
    terminal.until(CHOICES)
    terminal.type("y\n")

    assert terminal.end() == 0
    assert "\x1b" not in terminal.text
    assert "\x07" not in terminal.text
    assert flat(terminal.text).count(r"\x1b[2J\x1b]0;owned\x07") >= 2


async def test_hostile_text_of_models_and_tools_is_shown_and_never_obeyed():
    @tool(read_only=True, approval="always")
    async def look(at: str) -> AsyncIterator[Progress | str]:
        yield Progress(f"progress {HOSTILE}")
        yield f"output of {at}"

    script = (
        [think(f"thought {HOSTILE}"), say(f"said {HOSTILE}"), calls(call("look", at=HOSTILE))],
        calls(call(HOSTILE)),
        say("bye"),
    )
    out = io.StringIO()
    screen = LineScreen(out)
    async with Chat(ScriptedModel(*script), tools=[look]) as chat:
        turn = await chat.send("Hello")
        await watch_turn(chat, turn, DemoView(screen, turn.id), asyncio.Event(), GatePrompt(screen, chat, auto=True))

    shown = out.getvalue()
    assert shown.replace("\n", "").isprintable()
    for place in ("thought", "said", "progress", "output of"):
        assert flat(place + HARMLESS) in flat(shown)
