"""`everturn permissions`: what the rules mean, for a person and for a script."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.terminal import chat_tools

from everturn import Chat
from everturn.terminal.text.tool_loader import load_tools
from everturn.testing import ScriptedModel, call, calls, say

TOOLS = ("--tools", chat_tools.__file__)
RULES = """\
[[permissions]]
tool = "run_shell"
match = { command = "git log *" }
action = "allow"

[[permissions]]
tool = "run_shell"
match = { command = "rm *" }
action = "deny"

[[permissions]]
tool = "send_mail"
match = { to = "*@example.org" }
action = "allow"
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "rules.toml"
    path.write_text(RULES, encoding="utf-8")
    return str(path)


def permissions(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "everturn", "permissions", *words],
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["send_mail", "to=ada@example.org", "text=Hi"], 0, "rules.toml:11, config"),
        (["send_mail", '{"to": "ada@example.com", "text": "Hi"}'], 3, "no rule covers this call"),
        (["shout", "text=Hi"], 3, "its own `approval`, defaults"),
        (["inbox", "folder=new"], 0, "its own `approval`, defaults"),
    ],
)
def test_a_call_of_a_tool_is_explained_and_the_exit_code_is_the_decision(
    rules: str, words: list[str], code: int, expected: str
):
    done = permissions("explain", *words, *TOOLS, "--permissions", rules)

    assert (done.returncode, done.stderr) == (code, "")
    assert expected in done.stdout


def test_what_the_agent_can_never_use_is_a_warning_whatever_call_is_explained(tmp_path: Path):
    path = tmp_path / "deny.toml"
    path.write_text('[[permissions]]\ntool = "shout"\naction = "deny"\n', encoding="utf-8")
    done = permissions("explain", "inbox", "folder=new", *TOOLS, "--permissions", str(path))
    assert done.returncode == 0
    assert done.stdout.endswith("warning: not offered to the model, because rules deny every call: shout\n")
    path.write_text('[[permissions]]\ntool = "*"\naction = "deny"\n', encoding="utf-8")
    done = permissions("explain", "inbox", "folder=new", *TOOLS, "--permissions", str(path))
    assert done.returncode == 4
    assert done.stdout.endswith("warning: this agent can use no tools, though there are some\n")


@pytest.mark.parametrize(
    ("command", "code"), [("git log --oneline", 0), ("git log; rm -rf x", 4), ("git log | head", 3), ("rm x", 4)]
)
def test_every_command_of_a_line_is_judged_by_itself(rules: str, command: str, code: int):
    pytest.importorskip("tree_sitter_bash")
    words = ("run_shell", f"command={command}", "--subject", "command=command")
    done = permissions("explain", *words, "--permissions", rules)

    assert (done.returncode, done.stderr) == (code, "")
    assert "run_shell is not a tool of this configuration" in done.stdout
    if ";" in command:
        assert "case 1 of 2: command = git log: allow" in done.stdout
        assert "case 2 of 2: command = rm -rf x: deny" in done.stdout


def test_of_a_tool_that_is_not_given_nothing_is_guessed(rules: str):
    done = permissions("explain", "run_shell", "command=git log; rm -rf x", "--permissions", rules)

    assert "its arguments are read as plain text; --subject command=command reads one as a command" in done.stdout
    assert "case 1 of" not in done.stdout


def test_values_are_what_the_tool_takes_and_what_cannot_be_seen_is_written_out():
    done = permissions("explain", "send_mail", "to=5", "text=a\u202eb", "urgent=true", *TOOLS)

    assert done.returncode == 3
    assert r'arguments: {"text":"a\u202eb","to":"5","urgent":true}' in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["send_mail", "to"], "'to' is not an argument: write name=value"),
        (["send_mail", "{to}"], "these arguments are not a JSON object"),
        (["send_mail", '{"to": "ada"}'], "text: missing"),
        (["send_male", "to=ada", "--no-folder"], "there is no tool called 'send_male'; there are: send_mail"),
        (["send_mail", "to=a", "text=b", "--subject", "to=url"], "--subject is only for tools that are not loaded"),
        (["send_mail", "to=a", "text=b", "--session", "x"], "--session names a conversation in a --store"),
        (["send_mail", "to=a", "text=b", "--store", "nope.db", "--session", "x"], "there is no file nope.db"),
        (["send_mail", "to=a", "text=b", "--permissions", "nope.toml"], "nope.toml: the rules cannot be read"),
    ],
)
def test_what_cannot_be_explained_is_reported_in_one_line(words: list[str], expected: str):
    done = permissions("explain", *words, *TOOLS)

    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_unknown_kind_of_subject_is_reported_with_what_there_is():
    done = permissions("explain", "x", "--subject", "a=file")

    assert done.returncode == 2
    assert "a kind is one of text, path, url, command" in done.stderr


async def test_remembered_answers_of_a_conversation_count(tmp_path: Path):
    store = str(tmp_path / "talks.db")
    words = ("explain", "send_mail", "to=ada", "text=Hi", *TOOLS)
    script = (calls(call("send_mail", to="ada", text="Hi")), say("bye"))
    async with Chat(
        ScriptedModel(*script), tools=load_tools([chat_tools.__file__]), store=store, session="lunch"
    ) as chat:
        turn = await chat.send("Go")
        async for _ in turn:
            if gates := await chat.gates():
                await chat.answer(gates[0], allow="always")

    assert permissions(*words).returncode == 3
    done = permissions(*words, "--store", store, "--session", "lunch")
    assert (done.returncode, done.stderr) == (0, "")
    assert "grants)" in done.stdout
    assert "there is no conversation 'dinner'" in permissions(*words, "--store", store, "--session", "dinner").stderr


def test_check_lists_the_rules_with_their_lines(rules: str):
    done = permissions("check", "--permissions", rules)

    assert (done.returncode, done.stderr) == (0, "")
    assert f'{rules}:6  {{tool = "run_shell", match = {{command = "rm *"}}, action = "deny"}}\n' in done.stdout
    assert done.stdout.endswith("3 rules, all in order\n")


def test_check_finds_rules_that_can_never_decide(rules: str):
    with open(rules, "a", encoding="utf-8") as file:
        file.write('[[permissions]]\ntool = "send_mail"\naction = "deny"\n')
    done = permissions("check", "--permissions", rules)

    assert done.returncode == 1
    assert f"{rules}:11  can never decide, because of {rules}:15" in done.stdout


def test_check_says_where_a_file_is_wrong(rules: str):
    with open(rules, "a", encoding="utf-8") as file:
        file.write('[[permissions]]\ntool = "send_mail"\naction = "perhaps"\n')
    done = permissions("check", "--permissions", rules)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"{rules}:15: `action` must be allow, ask or deny" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["write_file", "path=notes.md"], 3, "content was not given: an empty text is assumed"),
        (["write_file", "path=notes.md", "--mode", "auto-edit"], 0, "auto-edit mode allows file edits"),
        (["write_file", "path=notes.md", "--mode", "plan"], 4, "to change it: another mode, ask or auto-edit"),
        (["read_file", "path=notes.md"], 0, "its own `approval`, defaults"),
        (["write_file", "path=notes.md", "--no-folder"], 3, "write_file is not a tool of this configuration"),
    ],
)
def test_in_a_repository_the_tools_of_its_folder_are_known(
    words: list[str], code: int, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("STATE", "DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    folder = tmp_path / "shop"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    monkeypatch.chdir(folder)

    done = permissions("explain", *words)

    assert done.returncode == code, done.stderr
    assert expected in done.stdout
