"""The client for JavaScript, as somebody gets it: built, and used from Node with a real server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.server_process import Node
from tests.web.conftest import missing

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
EXAMPLE = ROOT / "docs_src" / "guides" / "web_client_first.mjs"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which Node finds the client."""
    if not (WEB / "node_modules").is_dir() or not shutil.which("node"):
        missing("web/node_modules is missing; run scripts/web")
    folder = tmp_path_factory.mktemp("package")
    to = folder / "node_modules" / "@everturn" / "client"
    to.mkdir(parents=True)
    shutil.copy(WEB / "client" / "package.json", to)
    compiler = WEB / "node_modules" / "typescript" / "bin" / "tsc"
    words = ["node", compiler, "-p", WEB / "client", "--outDir", to / "dist"]
    built = subprocess.run(words, capture_output=True, text=True, check=False, cwd=WEB)
    assert built.returncode == 0, built.stdout
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("node") / "home", pace=0.004).start()
    yield node
    node.kill9()


def run(package: Path, script: Path, *words: str) -> str:
    shutil.copy(script, package)
    done = subprocess.run(
        ["node", script.name, *words], cwd=package, capture_output=True, encoding="utf-8", check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_first_example_does_what_the_page_says(package: Path, server: Node) -> None:
    output = run(package, EXAMPLE, server.address, server.token)
    assert output == EXAMPLE.with_suffix(".txt").read_text(encoding="utf-8")


def test_the_example_in_its_readme_is_that_of_the_page() -> None:
    readme = (WEB / "client" / "README.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```js\n(.*?)```", readme, re.DOTALL)
    assert code == EXAMPLE.read_text(encoding="utf-8")


def test_over_lines_that_break_each_character_comes_once(package: Path, server: Node) -> None:
    output = run(package, ROOT / "tests" / "web" / "breaks.mjs", server.address, server.token, "12")
    report = json.loads(output)
    assert report["wrong"] == 0
    assert report["connections"] > 100


def test_what_the_golden_logs_come_to_is_as_written() -> None:
    words = [sys.executable, ROOT / "scripts" / "web_golden.py", "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_types_of_the_client_are_those_of_the_server() -> None:
    words = [sys.executable, ROOT / "scripts" / "web_types.py", "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
