"""The guide on `everturn run`: its commands are run as a reader would, and say what the page shows."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers.cli_run import PATIENCE, plain

GUIDES = Path(__file__).parents[2] / "docs_src" / "guides"
WIDTH = 87
pytestmark = pytest.mark.timeout(400)  # it starts nine processes, and a machine may be busy


@pytest.mark.parametrize("name", ["run_first", "run_json"])
def test_the_page_shows_what_the_commands_say(name: str, tmp_path: Path) -> None:
    if name == "run_json" and shutil.which("jq") is None:
        pytest.skip("there is no jq here")
    env = plain(tmp_path)
    command = tmp_path / "bin" / "everturn"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m everturn "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    done = subprocess.run(
        ["sh", str(GUIDES / f"{name}.sh")],
        env={**env, "PATH": f"{command.parent}:{env['PATH']}"},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=3 * PATIENCE,
        check=False,
    )
    shown = (GUIDES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    assert timeless(done.stdout.splitlines()) == timeless([line for line in shown if not line.startswith("# --8<--")])
    assert "Traceback" not in done.stderr


def timeless(lines: list[str]) -> list[str]:
    """Lines without the time; what is too wide for a page is cut there, too."""
    cut = [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in lines]
    return [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "…", line) for line in cut]
