"""The command line, as a shell sees it: what it prints, where, and its exit code."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn import __version__
from tests.helpers.pseudo_terminal import Terminal

PLAIN = {**os.environ, "COLUMNS": "80", "PYTHONUTF8": "1", "TERM": "xterm"}
for name in ("EVERTURN_MODEL", "EVERTURN_API_KEY", "OPENAI_API_KEY"):
    PLAIN.pop(name, None)


def run(*words: str, typed: str = "", cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "everturn", *words],
        input=typed,
        env=PLAIN | environment,
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_help_names_the_commands(words: tuple[str, ...]):
    done = run(*words)

    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "chat" in done.stdout
    assert done.stderr == ""


def test_help_is_light_and_imports_nothing_that_only_a_command_needs():
    look = (
        "import sys\n"
        "from everturn.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = ('pydantic', 'aiohttp', 'everturn.demo', 'everturn.terminal', 'everturn.models.registry', 'mcp')\n"
        "heavy += ('everturn.cli.commands.mcp', 'everturn.cli.commands.doctor', 'everturn.mcp', 'everturn.sandbox', 'everturn.tools.files')\n"
        "heavy += ('everturn.config', 'everturn.cli.commands.serve', 'everturn.server', 'everturn.access', 'starlette', 'uvicorn')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", look], env=PLAIN, capture_output=True, encoding="utf-8", check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_is_the_one_of_the_package():
    assert run("--version").stdout == f"everturn {__version__}\n"


@pytest.mark.parametrize("words", [("dmo",), ("demo", "--fats"), ("demo", "now"), ("chat", "--modle")])
def test_a_wrong_word_is_answered_in_one_line_that_says_what_to_do_next(words: tuple[str, ...]):
    done = run(*words)

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert words[-1] in done.stderr
    assert "--help`" in done.stderr


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


@pytest.mark.parametrize("closed", ["0", "1"])
def test_a_closed_input_or_output_is_said_in_one_line(closed: str):
    shell = f'exec "$0" -m everturn chat --model m --base-url http://127.0.0.1:1/v1 {closed}>&-'
    done = subprocess.run(
        ["sh", "-c", shell, sys.executable], env=PLAIN, capture_output=True, encoding="utf-8", check=False
    )

    assert done.returncode in (1, 2)
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.endswith("put is closed\n")


# Chat, through the front door: a name, a server


def test_without_a_model_the_chat_says_how_to_name_one():
    done = run("chat")

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "--model openai:gpt-5.2 with OPENAI_API_KEY" in done.stderr
    assert "--model llama3 --base-url http://127.0.0.1:11434/v1" in done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--model", "openai:gpt-5.2"), "OPENAI_API_KEY"),
        (("--model", "opnai:gpt-5.2"), "did you mean openai:gpt-5.2?"),
        (("--model", "m", "--base-url", "nowhere"), "'nowhere' is not a base URL"),
        (("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--attach", "nope"), "there is no file nope;"),
        (("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--save", "/dev/null"), "it is not a folder;"),
        (("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--tools", "nope.py"), "there is no such file"),
        (("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--permissions", "no.toml"), "cannot be read"),
        (("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--budget", "money=1"), "there are: steps, calls"),
        (("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--manual", "x"), "--tools brings some"),
        (("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--session", "x"), "such as --store talks.db"),
        (("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--files", "nope:ro"), "there is no such folder"),
        (("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--files", ".", "--virtual-files"), "use one of them"),
        (("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--mcp", "nope.json"), "there is no file nope.json"),
    ],
)
def test_a_model_or_a_file_that_cannot_be_had_is_one_line_that_says_what_to_do(words: tuple[str, ...], expected: str):
    done = run("chat", *words, typed="Hello\n")

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert expected in done.stderr


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The base URL of a provider."""
    words = [sys.executable, "-m", "everturn.testing.provider", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=PLAIN, encoding="utf-8") as provider:
        assert provider.stdout is not None
        yield provider.stdout.readline().split()[1] + "/v1"
        provider.terminate()


FOX = "the quick brown fox jumped right over a"


def test_lines_of_a_pipe_are_answered_by_a_server(server: str):
    done = run(
        "chat", "--base-url", server, typed="Hello\nBye\n", EVERTURN_MODEL="plain-n2-p1", EVERTURN_API_KEY="sk-test"
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{FOX}\n\n{FOX}\n"


def test_words_that_are_no_text_are_no_reason_to_fail(server: str):
    done = run(
        *("chat", "--model", "plain-n2-p1", "--base-url", server, "--system", "caf\udce9"),
        typed="Hello\n",
        EVERTURN_API_KEY="sk-test",
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_a_server_that_does_not_know_the_model_is_a_failed_line(server: str):
    done = run("chat", "--model", "nosuch", "--base-url", server, typed="Hello\n", EVERTURN_API_KEY="sk-test")

    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("everturn: unknown_model: ")


def test_a_picture_a_voice_and_a_transcript_are_had_from_a_server(server: str, tmp_path: Path):
    def ask(*words: str, typed: str = "") -> tuple[int, str, str]:
        done = run("chat", "--base-url", server, *words, typed=typed, cwd=tmp_path, EVERTURN_API_KEY="sk-test")
        return done.returncode, done.stdout, done.stderr

    drawn = ask("--model", "compatible:picture@image-gen", "--save", ".", typed="a red cat\n")
    assert drawn == (0, "", "everturn: saved image.png\n")
    edited = ask("--model", "picture@image-edit", "--attach", "image.png", "--save", ".", typed="make it blue\n")
    assert edited == (0, "", "everturn: saved image-2.png\n")
    spoken = ask("--model", "voice@audio-tts", "--save", "sound", typed="Hello\n")
    assert spoken == (0, "", "everturn: saved sound/speech.mp3\n")
    size = (tmp_path / "sound" / "speech.mp3").stat().st_size
    transcript = ask("--model", "ear@audio-stt", "--attach", "sound/speech.mp3")
    assert transcript == (0, f"I heard {size} bytes of audio/mpeg.\n", "")
    assert (tmp_path / "image.png").read_bytes().startswith(b"\x89PNG")


def test_a_person_talks_to_a_server_cancels_and_takes_another_model(server: str):
    words = [sys.executable, "-W", "error", "-m", "everturn", "chat", "--plain", "--no-color", "--base-url", server]
    terminal = Terminal([*words, "--model", "plain-n5000-p20"], PLAIN | {"EVERTURN_API_KEY": "sk-test"})
    terminal.until("you> ")
    terminal.type("Hello\n")
    terminal.until("lazy dog")
    terminal.interrupt()
    terminal.until("you> ")
    assert "· cancelled" in terminal.text
    terminal.type("/model openai:gpt-5.2\n")  # which is elsewhere: its key is missing, and this server is not asked
    terminal.until("you> ")
    assert "environment variable OPENAI_API_KEY" in " ".join(terminal.text.split())
    terminal.type("/model plain-n2-p1\n")
    terminal.until("you> ")
    terminal.type("/again\n")
    terminal.until("you> ")
    terminal.type("\x04")

    assert terminal.end() == 0
    assert f"plain-n2-p1>\n{FOX}\n· " in terminal.text
    terminal.close()


LOOKUP = """
from everturn import tool

@tool(read_only=True, approval="{approval}")
def lookup(query: str) -> str:
    return "24 miles per hour"
"""


@pytest.mark.parametrize(("approval", "code"), [("auto", 0), ("always", 1)])
def test_tools_of_a_file_are_called_and_where_nobody_can_be_asked_those_that_ask_are_denied(
    server: str, tmp_path: Path, approval: str, code: int
):
    (tmp_path / "mine.py").write_text(LOOKUP.format(approval=approval), encoding="utf-8")
    where = ("--model", "tool1-n2", "--base-url", server)
    done = run("chat", *where, "--tools", "mine.py", typed="Hello\n", cwd=tmp_path, EVERTURN_API_KEY="sk-test")

    assert (done.returncode, done.stdout) == (code, f"{FOX}\n")
    assert ("lookup asks, and there is nobody to ask, so it was denied" in done.stderr) is bool(code)


def test_a_person_is_asked_about_a_call_of_a_server_s_model(server: str, tmp_path: Path):
    (tmp_path / "mine.py").write_text(LOOKUP.format(approval="always"), encoding="utf-8")
    words = [sys.executable, "-W", "error", "-m", "everturn", "chat", "--plain", "--no-color", "--base-url", server]
    terminal = Terminal(
        [*words, "--model", "tool1-n2", "--tools", "mine.py"], PLAIN | {"EVERTURN_API_KEY": "sk-test"}, tmp_path
    )
    terminal.until("you> ")
    terminal.type("Hello\n")
    terminal.until("[?] help\n> ")
    assert "? lookup needs approval\n" in terminal.text
    assert "    query  what is the airspeed of an unladen swallow, and who measured it" in terminal.text
    terminal.type("y\n")
    terminal.until("you> ")
    assert "✓ lookup  24 miles per hour\n" in terminal.text
    terminal.type("\x04")

    assert terminal.end() == 0
    terminal.close()


def test_the_help_of_the_chat_says_what_a_tool_may_do_without_a_question():
    help_text = " ".join(run("chat", "--help").stdout.split())

    assert "A tool runs without approval unless it is declared with" in help_text
    assert "Loading a tool file runs it." in help_text


def test_a_model_that_makes_files_is_not_asked_where_nobody_would_get_them(server: str):
    where = ("--model", "picture@image-gen", "--base-url", server)
    done = run("chat", *where, typed="a fox\n", EVERTURN_API_KEY="sk-test")

    assert (done.returncode, done.stdout) == (2, "")
    assert "creates files: name a folder for them with --save DIR" in done.stderr


@pytest.mark.parametrize(
    "flag", ["--files DIR[:ro]", "--virtual-files", "--code", "--shell [DIR[:rw]]", "--web", "--mcp FILE"]
)
def test_the_help_of_the_chat_names_what_it_may_reach(flag: str):
    assert f"\n  {flag} " in run("chat", "--help").stdout


def test_files_that_a_chat_keeps_by_itself_are_reached_through_the_front_door(server: str):
    where = ("--model", "plain-n2-p1", "--base-url", server)
    done = run("chat", *where, "--virtual-files", "--web", typed="Hello\n/tools\n", EVERTURN_API_KEY="sk-test")

    assert (done.returncode, done.stdout) == (0, f"{FOX}\n")
    assert "write_file      files:session" in done.stderr
    assert "fetch_url" in done.stderr


def test_the_doctor_is_called_with_what_was_said():
    done = run("doctor", "--json")

    assert done.returncode in (0, 1)
    assert '"checks"' in done.stdout
    assert run("doctor", "--jsno").returncode == 2


@pytest.mark.parametrize(
    ("words", "expected"), [(("--help",), "everturn mcp trust servers.json NAME"), (("lst",), "'lst'")]
)
def test_the_words_behind_mcp_are_its_own(words: tuple[str, ...], expected: str):
    done = run("mcp", *words)

    assert done.returncode == (0 if words == ("--help",) else 2)
    assert expected in done.stdout + done.stderr


def test_a_configuration_is_checked_with_a_line_for_each_thing_that_is_wrong(tmp_path: Path):
    file = tmp_path / "own.toml"
    file.write_text("[server]\nprot = 1\n[agents.a]\nmodel = 3\n", encoding="utf-8")
    done = run("config", "check", str(file))

    assert (done.returncode, done.stdout) == (2, "")
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == [f"{file}:2:1", f"{file}:4:1"]


def test_a_configuration_is_shown_with_references_and_not_with_secrets(tmp_path: Path):
    file = tmp_path / "own.toml"
    file.write_text("[models.a]\nmodel = 'openai:x'\napi_key = '${env:MINE}'\n", encoding="utf-8")
    done = run("config", "show", str(file), MINE="sk-canary")

    assert done.returncode == 0
    assert f'models.a.api_key = "${{env:MINE}}"  # {file}:3:1' in done.stdout
    assert "sk-canary" not in done.stdout + done.stderr
    done = run("config", "check", str(file))
    assert (done.returncode, "${env:MINE}" in done.stderr) == (0, True)


def test_a_project_folder_with_a_hostile_configuration_changes_nothing(tmp_path: Path):
    (tmp_path / "everturn.toml").write_text("[tools]\npython = ['evil']\n[server]\nport = 1\n", encoding="utf-8")
    (tmp_path / "evil.py").write_text("open('ran', 'w')\n", encoding="utf-8")
    done = run("config", "show", cwd=tmp_path, HOME=str(tmp_path / "home"))

    assert done.stdout == "# no file: every setting has its default; docs/deploy/configuration.md lists them\n"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("serve", "--config", "/nonexistent.toml"), "/nonexistent.toml: the configuration cannot be read"),
        (("serve", "--nats", "nats://x"), "--nats is for a node of a cluster; add --cluster"),
        (("serve", "--model", "opnai:x", "--store", "memory"), "did you mean openai:x?"),
        (("worker", "a:b", "--config", "c"), "MODULE:FUNCTION or of --config; use one of them"),
        (("keys", "list", "--store", "/nonexistent/x.db"), "there is no store /nonexistent/x.db yet"),
        (("ps", "--store", "/nonexistent/x.db"), "there is no store /nonexistent/x.db yet"),
    ],
)
def test_a_server_that_cannot_be_had_is_one_line_that_says_what_to_do(
    words: tuple[str, ...], expected: str, tmp_path: Path
):
    done = run(*words, HOME=str(tmp_path))

    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1
