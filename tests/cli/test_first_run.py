"""The first start, in front of a terminal: one question, one file, and never again."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.helpers.cli_run import plain
from tests.helpers.pseudo_terminal import Terminal

from everturn.cli.first_run import list_model_choices, render_config, write_config
from everturn.config.discovery import LocalModelServer
from everturn.config.load import load_config
from everturn.localization import load_group

pytestmark = pytest.mark.timeout(180)  # it starts processes, and a machine may be busy
KEY = "sk-very-secret"
START = [sys.executable, "-m", "tests.cli.first_run_program"]
ROOT = str(Path(__file__).parents[2])
WHICH, PROMPT = "[1]: ", "you> "
Begin = Callable[..., Terminal]


class Ollama(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"models": [{"name": "qwen3:8b"}, {"name": "odd\\"name"}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def ollama() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Ollama) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


class ModelServer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_list = self.path == "/v1/models"
        body = b'{"data": [{"id": "tiny-model"}]}' if is_list else b"not here"
        self.send_response(200 if is_list else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def models_at() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), ModelServer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    opened: list[Terminal] = []

    def begin(port: int = 0, **environment: str) -> Terminal:
        more = {"TERM": "dumb", "PYTHONPATH": ROOT, "INPUTRC": os.devnull, **environment}
        opened.append(Terminal([*START, str(port)], plain(tmp_path, **more), tmp_path))
        return opened[-1]

    yield begin
    for terminal in opened:
        terminal.close()


def file_of(home: Path) -> Path:
    return home / ".config" / "everturn" / "everturn.toml"


def checked(home: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "everturn", "config", "check"]
    return subprocess.run(words, env=plain(home), capture_output=True, encoding="utf-8", check=False)


def test_the_demo_is_chosen_once_and_never_asked_about_again(begin: Begin, tmp_path: Path) -> None:
    first = begin()
    first.until(WHICH)
    assert "offline demo" in first.text
    first.type("seven\n")
    first.until(WHICH)
    assert "seven is not one of the choices" in first.text
    first.type("\n")
    first.until(PROMPT)
    file = file_of(tmp_path)
    assert 'model = "offline:demo"' in file.read_text(encoding="utf-8")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [path.name for path in file.parent.iterdir()] == ["everturn.toml"]
    first.type("Hello\n")
    first.until("You said")
    assert checked(tmp_path).returncode == 0
    again = begin(LANG="zh_CN.UTF-8")
    again.until(PROMPT)
    assert WHICH not in again.text
    assert "Welcome" not in again.text


def test_a_key_in_the_environment_is_offered_by_its_name(begin: Begin, tmp_path: Path) -> None:
    first = begin(OPENAI_API_KEY=KEY)
    first.until(WHICH)
    assert "OPENAI_API_KEY" in first.text
    first.type("1\n")
    first.until(PROMPT)
    first.type("\x04")
    first.end()
    written = file_of(tmp_path).read_text(encoding="utf-8")
    assert 'model = "openai:gpt-5.2"' in written
    assert KEY not in written + first.text
    gone = begin()  # the key is not there any more
    assert gone.end() == 2
    assert "everturn.toml:" in gone.text
    assert "OPENAI_API_KEY" in gone.text


def test_a_server_on_this_machine_is_offered(begin: Begin, tmp_path: Path, ollama: int) -> None:
    first = begin(ollama)
    first.until(WHICH)
    assert f"qwen3:8b, which Ollama serves at http://127.0.0.1:{ollama}" in first.text
    first.type("2\n")  # and whatever its models are called, the file makes sense
    first.until(PROMPT)
    assert load_config(str(file_of(tmp_path)), {}).config.models["odd-name"].model == 'ollama:odd"name'


@pytest.mark.parametrize(("key", "code"), [("\x03", 130), ("\x04", 0)])
def test_who_leaves_has_chosen_nothing(begin: Begin, tmp_path: Path, key: str, code: int) -> None:
    first = begin(LC_ALL="zh_CN.UTF-8")
    first.until("[1]\uff1a")
    assert "离线演示" in first.text
    if key == "\x03":
        left = first.interrupt_until_it_ends()
    else:
        first.type(key)
        left = first.end()
    assert left == code
    assert not file_of(tmp_path).parent.exists()


def test_what_cannot_be_written_is_said_in_a_line(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / ".config").write_text("a file where a folder should be", encoding="utf-8")
    first = begin()
    first.until(WHICH)
    first.type("\n")
    first.until(PROMPT)  # the chat starts all the same
    assert "cannot be written" in first.text
    assert "the next one asks again" in first.text
    assert "Traceback" not in first.text


def test_a_pasted_url_is_the_model_server(begin: Begin, tmp_path: Path, models_at: str) -> None:
    first = begin()
    first.until(WHICH)
    first.type(f"{models_at}\n")
    first.until(PROMPT)
    assert "tiny-model" in file_of(tmp_path).read_text(encoding="utf-8")
    assert f'base_url = "{models_at}/v1"' in file_of(tmp_path).read_text(encoding="utf-8")
    assert checked(tmp_path).returncode == 0


def test_a_url_where_nobody_answers_is_said_and_asked_again(begin: Begin) -> None:
    first = begin()
    first.until(WHICH)
    first.type("http://127.0.0.1:9/v1\n")
    first.until(WHICH)
    assert "no model server answers there" in first.text


def test_a_pasted_key_is_stored_for_its_owner_alone_and_not_in_the_configuration(begin: Begin, tmp_path: Path) -> None:
    first = begin(https_proxy="http://127.0.0.1:9")  # no network: the key cannot be checked
    first.until(WHICH)
    first.type("sk-ant-0123456789abcdef\n")
    first.until("It could not be checked")
    first.until(PROMPT)
    stored = file_of(tmp_path).with_name("keys.json")
    assert "sk-ant-0123456789abcdef" in stored.read_text(encoding="utf-8")
    assert stored.stat().st_mode & 0o777 == 0o600
    assert "sk-ant" not in file_of(tmp_path).read_text(encoding="utf-8")
    assert 'model = "anthropic:' in file_of(tmp_path).read_text(encoding="utf-8")


def test_without_a_terminal_nothing_is_asked(tmp_path: Path) -> None:
    script = "import sys; from everturn.cli.first_run import start_first_run; sys.exit(start_first_run())"
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, env=plain(tmp_path), input="", capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert not file_of(tmp_path).exists()


def test_what_is_there_is_never_written_over(tmp_path: Path) -> None:
    file = file_of(tmp_path)
    write_config(file, "mine = 1\n")
    with pytest.raises(FileExistsError):
        write_config(file, "other = 2\n")
    assert file.read_text(encoding="utf-8") == "mine = 1\n"
    assert [path.name for path in file.parent.iterdir()] == ["everturn.toml"]


def test_every_way_makes_a_file_that_makes_sense(tmp_path: Path, ollama: int) -> None:
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY")
    environ = {"HOME": str(tmp_path), **dict.fromkeys(names, KEY)}
    places = (LocalModelServer("Ollama", ollama, "ollama", "/api/tags"), LocalModelServer("LM Studio", 1, "compatible"))
    for at, way in enumerate(list_model_choices(environ, load_group("first_run", "en"), places)):
        file = tmp_path / f"{at}.toml"
        write_config(file, render_config(way, environ))
        loaded = load_config(str(file), {})
        assert list(loaded.config.agents) == ["assistant"]
        # What is commented out makes sense as well, once the marks are taken away from what is no prose.
        lines = file.read_text(encoding="utf-8").splitlines()
        live = [line.removeprefix("# ") if is_toml(line) else line for line in lines]
        file.write_text("\n".join(live), encoding="utf-8")
        assert load_config(str(file), {}).rules[0].tool == "write_file"
        assert KEY not in file.read_text(encoding="utf-8")


def is_toml(line: str) -> bool:
    bare = line.removeprefix("# ")
    return line.startswith("# ") and (bare.startswith("[") or (" = " in bare and bare.split(" = ")[0].isidentifier()))
