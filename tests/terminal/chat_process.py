"""`everturn chat` with the scripted model, in front of a terminal and in a pipe."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.helpers.pseudo_terminal import Terminal

CHAT = [sys.executable, "-W", "error", "-m", "tests.terminal.scripted_chat"]
PLAIN = {
    **os.environ,
    "COLUMNS": "80",
    "PYTHONUTF8": "1",
    "TERM": "xterm",
    "INPUTRC": os.devnull,  # how the tester likes to type is nobody's business
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]).rstrip(
        os.pathsep
    ),
}
PLAIN.pop("NO_COLOR", None)
PROMPT = "you> "

Start = Callable[..., Terminal]


def ask(terminal: Terminal, line: str) -> str:
    """Type a line, and return what is shown until the next prompt."""
    before = len(terminal.text)
    terminal.type(line + "\n")
    terminal.until(PROMPT)
    return terminal.text[before:]


def pipe(
    lines: str, *words: str, out: int = subprocess.PIPE, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CHAT, *words],
        input=lines,
        stdout=out,
        stderr=subprocess.PIPE,
        env=PLAIN,
        cwd=cwd,
        encoding="utf-8",
        check=False,
    )


def one_line(text: str) -> str:
    """A text as it reads however it was wrapped."""
    return " ".join(text.split())
