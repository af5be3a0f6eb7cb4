"""The last program of the quickstart: three processes, one turn, and one mail."""

import re
import subprocess
import sys
from pathlib import Path

from docs_src.get_started.quickstart_mail import send_mail

ROOT = Path(__file__).parent.parent.parent
PROGRAM = ROOT / "docs_src" / "get_started" / "quickstart_mail.py"


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *words],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_question_is_open_after_a_restart_and_the_answered_turn_is_not_repeated(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "get-started" / "quickstart.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(\$ python mail\.py\n.*?)```", page, re.DOTALL)
    asks = run(tmp_path)
    assert asks == run(tmp_path)  # another process: the same question
    answered = run(tmp_path, "approve")
    assert shown == f"$ python mail.py\n{asks}$ python mail.py approve\n{answered}"
    assert run(tmp_path) == answered  # the same key is the same turn: nothing is asked or sent again


def test_its_tool_asks() -> None:
    assert send_mail.spec.approval == "ask"
