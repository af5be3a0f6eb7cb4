"""The person at the terminal: types the task, reads the screen, and answers what it asks."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tools.environment import ROOT, child_environment
from tools.real_job.screen import TerminalWindow

ASKED = re.compile(r"Allow (\w+)( to repeat| to send data out)?\?")
LIMIT = "Continue, for up to"  # the question at the step limit
READY = "Ask anything"
FOREIGN = re.compile(r"_API_KEY$|^EVERTURN_|^NO_COLOR$|^COLUMNS$|^LINES$")
LOOK = 0.05
ABOUT = re.compile(r"^\W*(?:Why|Tool|Where)\b")  # rows of a question that come and go while it is open
SETTLED = 0.3
GUARD = 0.6  # seconds that an approval is on the screen before a key counts


class Approval(Struct, frozen=True):
    """An approval as it was drawn."""

    tool: str
    screen: str
    answer: str


def environment(home: Path) -> dict[str, str]:
    """What the program is told: nothing of who runs this."""
    known = {name: value for name, value in child_environment().items() if not FOREIGN.search(name)}
    known |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": str(home), "TMPDIR": str(home / "tmp")}
    known |= {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("STATE", "DATA", "CONFIG", "CACHE")}
    author = {f"GIT_{role}_{key}": "ada" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    paths = [f"{ROOT}/src", str(ROOT), sysconfig.get_path("purelib")]
    cache = {"PYTHONPYCACHEPREFIX": str(home / "bytecode")}
    return known | author | cache | {"PYTHONPATH": os.pathsep.join(paths)}


def find_python() -> str:
    """An interpreter that an ordinary user can run: ours, unless we are root and it is in a folder of root.

    Raises:
        LookupError: there is none of this version.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    system = shutil.which(version, path="/usr/local/bin:/usr/bin")
    if os.geteuid() != 0 or _is_public(Path(sys.executable)):
        return sys.executable
    if system is None:
        raise LookupError(f"no {version} that an ordinary user can run")
    return system


def _is_public(file: Path) -> bool:
    real = file.resolve()
    return all(path.stat().st_mode & 0o005 == 0o005 for path in (real, *real.parents, *file.absolute().parents))


class Person:
    """A person who approves what the assistant asks, with one key for each question.

    With `always` they store a rule for the commands that it matches, and allow all edits at the first one.
    """

    def __init__(self, home: Path, folder: Path, always: re.Pattern[str] | None = None) -> None:
        self._home, self._folder, self._always = home, folder, always
        self.approvals: list[Approval] = []
        self.continues = 0
        self.seen: deque[str] = deque(maxlen=12)  # the last screens, for a report of what went wrong
        self.window = self.open()

    def open(self, *words: str, size: tuple[int, int] = (100, 30)) -> TerminalWindow:
        """Start `everturn` in the folder, in a terminal of its own."""
        command = [find_python(), "-m", "everturn", *words]
        return TerminalWindow(command, environment(self._home), self._folder, size)

    def ask(self, task: str) -> None:
        """Type the task when the terminal is ready."""
        self.window.wait_for(READY)
        self.window.press(task)
        self.window.wait_for(re.escape(task[-20:].split()[-1]))
        self.window.press("\r")

    def _look(self) -> str:
        """The screen now, which is remembered if it is another one."""
        text = self.window.text
        if not self.seen or self.seen[-1] != text:
            self.seen.append(text)
        return text

    def _settled(self) -> str:
        """The screen when nothing was drawn for a moment: half a dialog is no other question."""
        text = self._look()
        while True:
            time.sleep(SETTLED)
            before, text = text, self._look()
            if _question(text) == _question(before):
                return text

    def story(self) -> str:
        """The last screens, and the log of the terminal."""
        logs = [file.read_text(encoding="utf-8", errors="replace")[-4000:] for file in self._home.rglob("chat.log")]
        return "\n--------\n".join([*self.seen, *logs])

    def work(self, until: Callable[[str], bool], seconds: float = 900.0) -> str:
        """Answer what is asked until the screen shows something; the screen then.

        Raises:
            TimeoutError: it did not come.
        """
        end, quiet = time.monotonic() + seconds, time.monotonic() + 180
        last = ""
        while True:
            text = self._look()
            if text != last:
                last, quiet = text, time.monotonic() + 180
            if until(text):
                return text
            if ASKED.search(text):
                self._answer(text)
            elif LIMIT in text:
                self.continues += 1
                time.sleep(GUARD)
                self.window.press("y")
                self._wait_until_gone(re.compile(re.escape(LIMIT)))
            if time.monotonic() > min(end, quiet) or not self.window.is_alive:
                raise TimeoutError(f"the job stopped:\n{self.story()}")
            time.sleep(LOOK)

    def _answer(self, text: str) -> None:
        time.sleep(GUARD)
        text = self._settled()
        found = ASKED.search(text)
        if found is None:  # it was answered elsewhere
            return
        is_always = self._always is not None and found[1] == "run_shell" and self._always.search(text) is not None
        is_always = is_always and "always" in text
        if "more line" in text:
            self.window.press("\x1b[F")  # End: all of it must have been on the screen
            time.sleep(0.3)
        question = self._settled()
        if not ASKED.search(self.window.text):  # it was answered meanwhile
            return
        is_all_edits = self._always is not None and "allow all edits" in text
        self.window.press("A" if is_all_edits else "a" if is_always else "y")
        if is_always:
            self.window.wait_for("store this rule", 15)
            text += "\n" + self.window.text
            self.window.press("y")
        self.approvals.append(Approval(found[1], text, "always" if is_always or is_all_edits else "once"))
        self._wait_until_gone(re.compile(re.escape(found[0])), "" if is_always else question)

    def _wait_until_gone(self, pattern: re.Pattern[str], question: str = "") -> None:
        """Wait until an answer was taken: the question is gone, or another one is there."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            text = self._settled()
            if not pattern.search(text) or (question and _question(text) != _question(question)):
                return
            time.sleep(LOOK)
        raise TimeoutError(f"the answer was not taken:\n{self.window.text}")


def _question(text: str) -> str:
    """What a question is about: its first lines, and the lines that an edit changes. Rows about it may come a moment later."""
    begin = ASKED.search(text)
    rows = [] if begin is None else [row.strip("│ ") for row in text[begin.start() :].splitlines()]
    kept = [row for row in rows if row and not ABOUT.search(row)]
    return "\n".join([*kept[:4], *(row for row in kept[4:] if row[0] in "+−")])
