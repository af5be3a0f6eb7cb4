"""The rules of the shell in a folder: what runs without a question, and what asks."""

from __future__ import annotations

from typing import Literal

import pytest

from everturn.config.folder.agent import shell_rules
from everturn.core.rules.policy import Policy, Rule
from everturn.permissions.shell.command_line import UnreadableCommand, read_command

pytest.importorskip("tree_sitter_bash")


def decide(line: str, *more: Rule, asks_for_git: bool = True) -> str:
    policy = Policy([*shell_rules("run_shell", asks_for_git=asks_for_git), *more])
    try:
        cases = [{"command": subject} for subject in read_command(line)]
    except UnreadableCommand:
        return "unreadable"
    return str(policy.decide("run_shell", cases).action)


@pytest.mark.parametrize(
    "line",
    [
        "ls",
        "ls -la src",
        "cat README.md | head -5",
        "grep -rn needle src | wc -l",
        "git status",
        "git status --short",
        "git diff --stat HEAD~1",
        "git log --oneline -5 | tail -2",
        "git show HEAD:setup.py",
        "git blame -L 1,5 a.py",
        "git ls-files; pwd",
        "ls && git rev-parse HEAD",
    ],
)
def test_commands_that_only_print_do_not_ask(line: str) -> None:
    assert decide(line) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "ls > out.txt",
        "cat a >> b",
        "echo x > .git/config",
        "echo x | tee f",
        "cat $(rm x)",
        "cat `rm x`",
        "cat <(rm x)",
        "ls; rm -rf src",
        "ls & rm x",
        "ls || make",
        "cat a | sh",
        "cat a | xargs rm",
        "PATH=. ls",
        "LD_PRELOAD=./x.so ls",
        "GIT_EXTERNAL_DIFF=./x git diff",
        "GIT_PAGER=./x git log",
        "export PATH=.; ls",
        "alias ls=rm; ls x",
        "ls() { rm x; }; ls",
        "./ls",
        "bin/git status",
        "env ls",
        "sudo ls",
        "nohup cat a",
        "git diff --output=src/a.py",
        "git diff --ext-diff",
        "git log --output src/a.py",
        "git show --output=x HEAD",
        "git -c core.pager=./x log",
        "git -C /etc status",
        "git --exec-path=. status",
        "git --git-dir=/x/.git log",
        "git -p log",
        "git config core.pager ./x",
        "git push",
        "git fetch",
        "git grep -O./x a",
        "git commit -m x",
        "git checkout .",
        "git stash",
        "git reset --hard",
        "git branch -D main",
        "git log; git commit -am x",
        "find . -delete",
        "sed -i s/a/b/ f",
        "awk 'BEGIN{system(\"rm x\")}'",
        "sort -o f f",
        "python3 -m pytest",
        "$X a",
        "ls\nrm x",
    ],
)
def test_everything_else_asks_or_is_refused_because_it_cannot_be_read(line: str) -> None:
    assert decide(line) in ("ask", "unreadable")


@pytest.mark.parametrize("action", ["ask", "deny"])
def test_a_rule_of_the_person_is_stronger(action: Literal["ask", "deny"]) -> None:
    rule = Rule("run_shell", action, {"command": "git log *"})
    assert decide("git log -p", rule) == action
    assert decide("git status", rule) == "allow"


def test_git_may_commit_without_a_question_only_if_the_setting_says_so() -> None:
    allowed = Rule("run_shell", "allow", {"command": "git commit *"})
    assert decide("git commit -m x", allowed) == "ask"
    assert decide("git commit -m x", allowed, asks_for_git=False) == "allow"
