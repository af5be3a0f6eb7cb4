"""The command line, as a shell sees it: what it prints, where, and its exit code."""

import os
import subprocess
import sys

import pytest

from everturn import __version__

PLAIN = {**os.environ, "COLUMNS": "80", "PYTHONUTF8": "1"}


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "everturn", *words],
        stdin=subprocess.DEVNULL,
        env=PLAIN | environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_help_names_the_commands(words: tuple[str, ...]):
    done = run(*words)

    assert done.returncode == 0
    assert "demo" in done.stdout
    assert done.stderr == ""


def test_help_is_light_and_imports_neither_pydantic_nor_the_demo():
    look = (
        "import sys\n"
        "from everturn.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name.partition('.')[0] == 'pydantic' or 'demo' in name))\n"
    )
    done = subprocess.run([sys.executable, "-c", look], env=PLAIN, capture_output=True, encoding="utf-8", check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_is_the_one_of_the_package():
    assert run("--version").stdout == f"everturn {__version__}\n"


@pytest.mark.parametrize("words", [("dmo",), ("demo", "--fats"), ("demo", "now")])
def test_a_wrong_word_is_answered_in_one_line_that_says_what_to_do_next(words: tuple[str, ...]):
    done = run(*words)

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert words[-1] in done.stderr
    assert "everturn --help" in done.stderr


def test_without_a_terminal_the_demo_says_how_to_run_it_and_does_not_hang():
    done = run("demo")

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "everturn demo --auto" in done.stderr


def test_output_that_cannot_have_every_character_is_no_reason_to_fail():
    done = run("demo", "--auto", "--fast", PYTHONUTF8="0", PYTHONIOENCODING="ascii")

    assert done.returncode == 0
    assert "-> weather " in done.stdout
    assert "+  weather " in done.stdout
    assert [line.split()[-1] for line in done.stdout.splitlines() if "?  " in line] == ["runs", "once"]


@pytest.mark.parametrize("columns", ["80", "60", "40"])
def test_no_line_ends_in_blanks(columns: str):
    done = run("demo", "--auto", "--fast", COLUMNS=columns)

    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_said_in_one_line():
    words = [sys.executable, "-W", "error", "-m", "everturn", "demo", "--auto", "--fast"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=PLAIN, encoding="utf-8", check=False)

    assert done.returncode == 1
    assert done.stderr == "everturn: the output cannot be written: No space left on device\n"


def test_a_reader_that_goes_away_ends_the_demo_quietly():
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "everturn", "demo", "--auto", "--fast"]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, env=PLAIN, encoding="utf-8", check=False)
    os.close(write)

    assert done.returncode != 0
    assert done.stderr == ""
