"""Command lines, read so that rules hold against them."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.helpers.shell_corpus import ASKED, BENIGN, HOSTILE
from tests.permissions import fuzz_shell
from tests.permissions.fuzz_shell import World

from everturn.errors import ConfigError, ToolError
from everturn.permissions.shell import parser
from everturn.permissions.shell.command_line import UnreadableCommand, read_command

needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")


def items(text: str) -> list[tuple[str, ...]]:
    return [item.words for item in read_command(text)]


def is_allowed(text: str) -> bool:
    """Judge by two rules: `git log *` is allowed, all else is denied."""
    try:
        return all(words[:2] == ("git", "log") for words in items(text))
    except UnreadableCommand:
        return False


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("shell"))


# ------------------------------------------------------------------------------------------------------ the corpus


def test_no_line_that_does_more_than_git_log_is_allowed_by_git_log() -> None:
    assert len(set(HOSTILE)) >= 320
    assert [line for line in HOSTILE if is_allowed(line)] == []


def test_every_line_that_is_nothing_but_git_log_is_allowed() -> None:
    assert len(set(BENIGN)) >= 40
    assert [line for line in BENIGN if not is_allowed(line)] == ASKED


@pytest.mark.parametrize("line", ASKED)
def test_where_only_the_shell_knows_the_words_of_git_log_somebody_is_asked(line: str) -> None:
    assert line in BENIGN
    assert {words[:1] for words in items(line)} == {("git",), ("!git",)}


def is_readable(text: str) -> bool:
    try:
        read_command(text)
    except UnreadableCommand:
        return False
    return True


@needs_bash
def test_what_bash_cannot_parse_is_not_read_either() -> None:
    def is_parsed(line: str) -> bool:
        return subprocess.run(["bash", "-n", "-c", "--", line], capture_output=True, check=False).returncode == 0

    assert not is_parsed("git log ;;")
    assert [line for line in HOSTILE + BENIGN if is_readable(line) and not is_parsed(line)] == []


# ------------------------------------------------------------------------------------------- what bash really runs


@needs_bash
def test_every_program_that_bash_starts_was_read_in_its_line(world: World) -> None:
    lines = fuzz_shell.harmless(HOSTILE + BENIGN)
    found = {line: fuzz_shell.unread(world, line) for line in lines}
    assert len(lines) >= 200
    assert {line: calls for line, calls in found.items() if calls} == {}
    assert sum(calls is None for calls in found.values()) <= len(lines) / 2


@needs_bash
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_every_program_that_bash_starts_was_read_in_a_line_made_up(world: World, seed: int) -> None:
    line = fuzz_shell.made_up(random.Random(seed))
    if not fuzz_shell.UNSAFE.search(line):
        assert not fuzz_shell.unread(world, line), line


@needs_bash
def test_a_program_that_was_overlooked_would_be_noticed(world: World) -> None:
    calls = world.run("git log 'a b' | one & zap \"$(two)\"; wait")
    assert sorted(calls or []) == [("git", "log", "a b"), ("one",), ("two",), ("zap", "")]
    assert not fuzz_shell.is_read(("zap", "x"), read_command("git log; zap y"))
    assert not fuzz_shell.is_read(("zap", "x"), read_command("one $X"))
    assert fuzz_shell.is_read(("zap", "x", "y"), read_command("zap x $X"))
    # Behind a word that is expanded not just anything may follow: only what it could become, and the words behind it.
    assert fuzz_shell.is_read(("zap", "a", "b", "x"), read_command("zap $X x"))
    assert not fuzz_shell.is_read(("zap", "a", "y"), read_command("zap $X x"))
    assert not fuzz_shell.is_read(("zap", "a", "b", "x"), read_command('zap "$X" x'))
    assert not fuzz_shell.is_read(("zap", "b.c"), read_command("zap a*.c"))
    assert not fuzz_shell.is_read(("zap", "$X"), read_command("zap x$X"))


# ---------------------------------------------------------------------------------------------- what an item says


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("  # nothing", []),
        ("g\"i\"t 'log' \\-n", [("git", "log", "-n")]),
        ("git \\\n  log", [("git", "log")]),
        ("/usr/bin/git log", [("/usr/bin/git", "log")]),
        ("a $X \"$Y z\" *.c ~/x", [("a", "⟪$X⟫", '⟪"$Y z"⟫', "⟪*.c⟫", "⟪~/x⟫")]),
        ("$'\\x67it' $'l\\157g'", [("git", "log")]),
        ("a 2>&1 >&- 2> x &>> y <z", [("a",), (">", "x"), (">>", "y"), ("<", "z")]),
        ("echo >&2 this", [("echo", "this")]),
        ("a > $X", [("a",), (">", "⟪$X⟫")]),
        ("a <<< 'b c'", [("<<<", "b c"), ("a",)]),
        ("python - x <<'E'\n$(rm)\nE", [("python", "-", "x"), ("!python", "-", "x"), ("<<", "E")]),
        ("python - <<'E'\n$(rm)\nE", [("python", "-"), ("!python", "-"), ("<<", "E")]),
        ("a <<E\n$(rm x)\nE", [("a",), ("<<", "E"), ("rm", "x")]),
        ("A=1 B='2 3' c", [("A=1",), ("B=2 3",), ("c",)]),
        ("A+=b", [("A=⟪${A}b⟫",)]),
        ("export A=b", [("export", "A=b"), ("A=b",)]),
        ("for PATH in /evil; do a; done", [("PATH=/evil",), ("a",)]),
        ("read -r A", [("read", "-r", "A"), ("A=⟪$REPLY⟫",)]),
        ("echo ${A:=b}", [("A=b",), ("echo", "⟪${A:=b}⟫")]),
        ("echo $((1+1)) $((x+1))", [("let", "x+1"), ("echo", "⟪$((1+1))⟫", "⟪$((x+1))⟫")]),
        ("git() { rm x; }", [("function", "git"), ("rm", "x")]),
        ("bash -c 'a; eval \"b c\"'", [("bash", "-c", 'a; eval "b c"'), ("a",), ("eval", "b c"), ("b", "c")]),
        ("trap 'rm x' EXIT", [("trap", "rm x", "EXIT"), ("rm", "x")]),
        ("sudo -u me -- rm x", [("sudo", "-u", "me", "--", "rm", "x"), ("rm", "x")]),
        ("env -S 'rm x'", [("env", "-S", "rm x"), ("env", "rm", "x"), ("rm", "x")]),
        ("timeout -k 1 5 nice -n 3 rm", [("timeout", "-k", "1", "5", "nice", "-n", "3", "rm"), ("nice", "-n", "3", "rm"), ("rm",)]),
        ("strace -o x rm", [("strace", "-o", "x", "rm"), ("!strace", "-o", "x", "rm"), ("x", "rm"), ("rm",)]),
        ("sudo --new x rm", [("sudo", "--new", "x", "rm"), ("!sudo", "--new", "x", "rm"), ("x", "rm"), ("rm",)]),
        ("find . -exec rm {} +", [("find", ".", "-exec", "rm", "{}", "+"), ("rm", "⟪{}⟫")]),
        ("xargs -n1 rm", [("xargs", "-n1", "rm"), ("rm", "⟪{}⟫")]),
        ("ssh -p 22 h 'rm x; a'", [("ssh", "-p", "22", "h", "rm x; a"), ("rm", "x"), ("a",)]),
    ],
)  # fmt: skip
def test_a_line_is_read_into_all_that_it_does(line: str, expected: list[tuple[str, ...]]) -> None:
    assert items(line) == expected


def test_an_item_has_a_text_that_reads_as_it_is_written() -> None:
    subjects = read_command("A='b c' git 'l g' > 'o p'")
    assert [(each.kind, each.text) for each in subjects] == [
        ("command", "A=b c"),
        ("command", "git 'l g'"),
        ("command", "> o p"),
    ]


# ---------------------------------------------------------------------------------------------- what is not read


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("$X log", "'$X' is known only when it runs; name the command itself"),
        ("git\u200b log", "the command line contains the character U+200B; remove it"),
        ("curl x | sh", "what sh would read from its input is not known; give it a file, or a script with -c"),
        ("a; " * 65, "this command line does more than 64 things; split it"),
        ("a " + "b" * 20_000, "this command line is too long to check (20002 bytes, at most 8192)"),
        ("eval " * 12 + "a", "these commands are nested too deeply to check; run the inner ones by themselves"),
        ("nice " * 12 + "a", "these commands are nested too deeply to check; run the inner ones by themselves"),
        ("a `b \\`c\\``", "backticks around backslashes, comments or backticks cannot be read; write $(…)"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_word_on_what_to_do(line: str, message: str) -> None:
    with pytest.raises(UnreadableCommand) as refused:
        read_command(line)
    assert str(refused.value) == message
    assert isinstance(refused.value, ToolError)
    assert refused.value.code == "denied"


@given(st.text(max_size=60) | st.text(alphabet="git logrm;&|<>(){}[]'\"`$\\#!=*\n\t -E", max_size=60))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        found = read_command(text)
    except UnreadableCommand:
        return
    assert all(item.kind == "command" and item.words and item.text for item in found)


def test_without_the_parser_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    parser._language.cache_clear()
    with pytest.raises(ConfigError, match=r"install everturn\[shell\]"):
        read_command("git log")
    parser._language.cache_clear()


def test_only_the_path_of_the_test_is_searched(world: World) -> None:
    assert {path.name for path in Path(world.programs).iterdir()} <= {*fuzz_shell.STUBS, *fuzz_shell.REAL}
