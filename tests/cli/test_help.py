"""The help of every command: it is there, has examples, fits the screen, and can be written in any encoding."""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.cli import COMMANDS, main
from everturn.cli.args.commands import FIRST_GROUPS, GROUPS, make_parser
from everturn.cli.args.parser import subcommands, wrap_help_text

ROOT = Path(__file__).parent.parent.parent


def all_of_them(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, below in subcommands(parser).items():
        yield from all_of_them(below, (*words, name))


EVERY = list(all_of_them(make_parser()))


def help_of(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*words, "--help"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_command_explains_itself(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "100")
    help_text = help_of(words, capsys)

    assert f"\n  {' '.join(('everturn', *words))}" in help_text.partition("\nexamples:")[2]
    assert [line for line in help_text.splitlines() if len(line) > 100] == []
    assert [line for line in help_text.splitlines() if line != line.rstrip()] == []
    help_text.encode("cp1252")  # a Windows console of old
    assert "\x1b" not in help_text
    assert "TODO" not in help_text


def test_every_command_is_listed_once_and_every_one_can_be_done():
    listed = [name for names in GROUPS.values() for name in names]

    assert sorted(listed) == sorted(subcommands(make_parser()))
    assert sorted({*COMMANDS, "doctor", "config", "mcp"}) == sorted(listed)


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_the_first_page_fits_and_groups_the_commands(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", columns)
    help_text = help_of((), capsys)

    heads = [line for line in help_text.splitlines() if line in GROUPS]
    assert heads == list(FIRST_GROUPS)
    above = help_text.partition("examples:")[0].partition("Daily use")[2]
    assert [line for line in above.splitlines() if len(line) > int(columns)] == []
    assert len(help_text.partition("examples:\n")[2].partition("\n\n")[0].splitlines()) >= 3


@pytest.mark.parametrize("words", [[], ["help"], ["--help"], ["-h"]])
def test_nothing_said_where_nobody_sits_is_the_help(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(words) == 0
    assert "Daily use" in capsys.readouterr().out


def test_words_of_servers_are_on_the_second_page_only(capsys: pytest.CaptureFixture[str]):
    first = help_of((), capsys)
    assert main(["help", "all"]) == 0
    every = capsys.readouterr().out

    assert re.findall(r"serve|server|worker|tenant|cluster|admin|HTTP", first) == []
    assert [line for line in every.splitlines() if line in GROUPS] == list(GROUPS)
    assert all(f"\n  {name} " in every for names in GROUPS.values() for name in names)


def test_help_may_be_asked_for_in_front(capsys: pytest.CaptureFixture[str]):
    assert main(["help", "keys", "add"]) == 0
    assert capsys.readouterr().out == help_of(("keys", "add"), capsys)


def test_prose_is_wrapped_and_examples_are_not():
    text = "One two three four five six seven.\nEight.\n\nthese:\n  an example which is\n  1    a code with words\n"

    assert wrap_help_text(text, 24).splitlines() == [
        "One two three four five",
        "six seven. Eight.",
        "",
        "these:",
        "  an example which is",
        "  1    a code with words",
    ]
    assert (
        wrap_help_text("codes:\n  1    a code with many words", 24) == "codes:\n  1    a code with many\n       words"
    )
    # A colon at the end of a line is a heading only before what it lists.
    assert (
        wrap_help_text("A folder with all of it:\nusers and files.", 60) == "A folder with all of it: users and files."
    )
    assert wrap_help_text("these:\n  an example with many words", 24) == "these:\n  an example with many\n      words"


def test_words_that_an_output_cannot_have_are_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    file = tmp_path / "everturn.toml"
    file.write_text(
        '[agents.cook]\nmodel = "offline:demo"\ndescription = "makes \u996d \u2192 soup"\n', encoding="utf-8"
    )
    for words in (["--help"], ["config", "show", str(file)]):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252"))
        assert main(words) == 0
        shown = written.getvalue()
        assert b"\x1b" not in shown
    assert rb"makes \u996d \u2192 soup" in shown  # a ? could hide a part of what is to be read


def test_the_reader_of_a_help_may_go_away():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "everturn", "--help"], stdout=write, stderr=subprocess.PIPE, check=False, cwd=ROOT
    )
    os.close(write)

    assert done.returncode in (0, 141)  # argparse minds less, where nothing is buffered
    assert done.stderr == b""


def test_the_exit_codes_that_are_told_are_numbers_with_a_meaning(capsys: pytest.CaptureFixture[str]):
    for words in (("run",), ("chat",), ("permissions",), ("mcp",)):
        exit_codes = help_of(words, capsys).partition("exit codes")[2]
        assert len(re.findall(r"^  \d+ +\w", exit_codes, re.MULTILINE)) >= 4
