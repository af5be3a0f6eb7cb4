"""The notebook in a real browser: a table is kept there, added up there, and the server runs no code."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from everturn.replay import Recording
from everturn.server.routes.web_ui import BUILD_DIRECTORY, BUILD_VARIABLE
from tests.examples.example_process import check_recorded, commands, copied, environment, says, started
from tests.helpers.browser import visitor
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import ARGUMENTS, CHROMIUM, missing
from tools.servers.process import free_port

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

NAME = "browser-notebook"
TABLE = "what,sold\nbread,12\nsoup,30"


class Notebook(Rig):
    """The server of the example, as the drivers of the page's own tests know one."""

    def __init__(self, folder: Path, port: int, model: int) -> None:
        self.home, self.port = folder, port  # and no model of the rig's
        self._variables = {
            "EVERTURN_SERVER__PORT": str(port),
            "EVERTURN_SERVER__TOKEN_FILE": str(folder / "token"),
            "EVERTURN_MODELS__OFFLINE__BASE_URL": f"http://127.0.0.1:{model}/v1",
        }

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.home, **self._variables)

    def login_link(self, user: str = "local") -> str:
        """A link that logs a browser in, made by the command: the example has a configuration and a store of its own."""
        words = [sys.executable, "-m", "everturn", "login", "--config", str(self.config), "--user", user]
        completed = subprocess.run(words, env=self.environment, capture_output=True, text=True, check=True, timeout=60)
        return completed.stdout.strip()

    def exported(self, session: str) -> Recording:
        """What the server gives of a session, as a file."""
        token = (self.home / "token").read_text(encoding="utf-8").strip()
        request = urllib.request.Request(
            f"{self.url}/api/sessions/{session}/export", headers={"authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            (self.home / "exported.zip").write_bytes(answer.read())
        return Recording.read(self.home / "exported.zip")

    @property
    def variables(self) -> dict[str, str]:
        return self._variables


@pytest.fixture
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        missing("there is no Chromium; install one, or name it in EVERTURN_CHROMIUM")
    if BUILD_VARIABLE not in environment(Path()) and not (BUILD_DIRECTORY / "index.html").is_file():
        missing("the page is not built; run scripts/web")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    folder, (port, model) = copied(NAME, tmp_path), (free_port(), free_port())
    offline, serve = commands(NAME)
    server = Notebook(folder, port, model)
    with ExitStack() as stack:
        says(stack.enter_context(started([*offline, str(model)], folder)), "offline model is at")
        says(stack.enter_context(started(serve, folder, **server.variables)), "serves at")
        yield server


def test_a_table_is_added_up_in_the_browser(notebook: Notebook, browser: Browser) -> None:
    somebody = visitor(notebook, browser)
    somebody.log_in()
    screen = somebody.open()
    screen.box.fill(TABLE)
    screen.box.press("Enter")
    screen.question("write_file").allow()
    screen.question("browser_js_eval").allow()
    screen.sees("The total of sold is 42", 40.0)
    screen.wait_idle()
    session = screen.session
    assert notebook.stored_text(session).endswith("It is kept in `total.json`.")
    content = screen.page.evaluate(
        """async (session) => {
            const all = await (await navigator.storage.getDirectory()).getDirectoryHandle('everturn-files');
            const file = await (await all.getDirectoryHandle(session)).getFileHandle('total.json');
            return await (await file.getFile()).text();
        }""",
        session,
    )
    assert content == '{"total":42}'
    somebody.context.close()
    somebody.check()
    check_recorded(notebook.exported(session), NAME, "total.jsonl")
