"""What `everturn` costs until its first screen: the processor time of the process, user and system, from its start to the
frame that shows the input.

    python benchmarks/first_screen.py [ROUNDS] [SOURCE ...] [--write]

A terminal of its own (100 by 30), a git repository, a configured model that is never called. SOURCE is the `src` folder of a
checkout; several of them take turns in one run, because a machine is not equally fast for long. `bare` is an app of Textual
with one input and nothing else; the last column counts the modules that are loaded by then. Bytecode is cached, as that of an
installed package is. The least of the rounds counts: whatever else the machine does only adds.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import resource
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # also where it is started as a file

from tools.docs_table import write_docs_table  # noqa: E402
from tools.environment import describe_load  # noqa: E402

PATIENCE = 120.0  # seconds
PAGE = ROOT / "benchmarks" / "results" / "first-screen.md"
SIZE = (100, 30)
INPUT = "sk anything"  # the cursor is on the first letter, which is written by itself
OURS = ROOT / "src"
BARE = """
from textual.app import App
from textual.widgets import TextArea

class Bare(App):
    def compose(self):
        yield TextArea(placeholder="Ask anything")

Bare().run()
"""
# The frame is noticed where it is written: who watches the terminal from outside notices it later, on a busy machine much later.
WATCH = """
import json, os, sys, time
from textual.drivers.linux_driver import LinuxDriver

write = LinuxDriver.write

def watch(self, data):
    write(self, data)
    if {input!r} in data:
        used = time.process_time()
        with open({out!r}, "w") as file:
            json.dump([used, sorted(sys.modules)], file)
        os._exit(0)

LinuxDriver.write = watch
"""
RUN = "import sys\nfrom everturn.cli import main\nsys.argv = ['everturn']\nmain()\n"


class FirstScreen(Struct, frozen=True):
    """CPU seconds until the first screen, and the modules that are loaded by then."""

    seconds: float
    modules: list[str]


def measure(program: str, home: Path, sources: Path | None = None) -> FirstScreen:
    """Start a program in a terminal, until it draws its input.

    Raises:
        TimeoutError: it did not.
    """
    out, folder = home / "first-screen.json", home / "project"
    out.unlink(missing_ok=True)
    for used in ("data", "state"):  # the last run was cut off, and did not tidy up
        shutil.rmtree(home / used, ignore_errors=True)
    code = WATCH.format(input=INPUT, out=str(out)) + program
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-c", code], environment(home, sources))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
    printed, end = _drain(terminal), os.waitpid(pid, 0)[1]
    os.close(terminal)
    if not out.exists():
        raise TimeoutError(f"no first screen (exit status {end}): {printed[-2000:]}")
    return FirstScreen(*json.loads(out.read_text()))


def _drain(terminal: int) -> str:
    printed, end = b"", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # it has ended
            break
        printed += data
    return printed.decode("utf-8", "replace")


def environment(home: Path, sources: Path | None) -> dict[str, str]:
    """The environment of a user without any setting of ours."""
    known = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    known |= {"HOME": str(home), "TERM": "xterm-256color", "PYTHONPYCACHEPREFIX": str(home / "bytecode")}
    known |= {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("STATE", "DATA", "CONFIG", "CACHE")}
    return known | ({"PYTHONPATH": str(sources)} if sources is not None else {})


def prepare(home: Path) -> None:
    """Make a home folder with a configuration, and a git repository in it."""
    file, folder = home / "config" / "everturn" / "everturn.toml", home / "project"
    file.parent.mkdir(parents=True)
    folder.mkdir()
    model = '[models.one]\nmodel = "compatible:one"\nbase_url = "http://127.0.0.1:1/v1"\n'
    file.write_text(f'{model}\n[agents.assistant]\nmodel = "one"\n', encoding="utf-8")
    (folder / "README.md").write_text("# A project\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)


def compare(sources: Sequence[Path], rounds: int) -> dict[str, list[FirstScreen]]:
    """Measure `bare` and each checkout in turn, after a round that only fills the caches."""
    base = Path(tempfile.mkdtemp(prefix="everturn-first-screen-"))
    found: dict[str, list[FirstScreen]] = {"bare": [], **{str(path): [] for path in sources}}
    try:
        for number in range(len(found)):
            (base / str(number)).mkdir()
            prepare(base / str(number))
        for turn in range(rounds + 1):
            for number, name in enumerate(found):
                program, path = (BARE, None) if name == "bare" else (RUN, Path(name))
                screen = measure(program, base / str(number), path)
                if turn:
                    found[name].append(screen)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return found


def measure_help(home: Path, sources: Path) -> float:
    """CPU seconds of `everturn --help`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-m", "everturn", "--help"]
    subprocess.run(words, env=environment(home, sources), cwd=home, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def render(rows: Sequence[str], rounds: int) -> str:
    """The page of results."""
    return (
        "# The first screen\n\n"
        "Written by `python benchmarks/first_screen.py --write`.\n\n"
        f"Processor time of the process, the least of {rounds} rounds and their median; the goals are 1.0 s until the first screen and 0.1 s for "
        f"`--help`. {describe_load()}\n\n" + "\n".join(rows) + "\n"
    )


def main() -> None:
    """Print a table, and write it with `--write`."""
    words = [word for word in sys.argv[1:] if word != "--write"]
    rounds = int(words[0]) if words else 5
    sources = [Path(path).resolve() for path in words[1:]] or [OURS]
    rows = ["| | least CPU s | median | modules |", "|---|--:|--:|--:|"]
    for name, screens in compare(sources, rounds).items():
        label = {"bare": "an app of Textual with one input", str(OURS): "`everturn` in a folder"}.get(name, name)
        rows.append(_row(label, [screen.seconds for screen in screens], str(len(screens[0].modules))))
    with tempfile.TemporaryDirectory(prefix="everturn-first-screen-") as home:
        times = [measure_help(Path(home), sources[0]) for _ in range(rounds + 1)][1:]
    rows.append(_row("`everturn --help`", times, ""))
    print("\n".join(rows))
    if "--write" in sys.argv:
        text = render(rows, rounds)
        PAGE.write_text(text, encoding="utf-8")
        write_docs_table("performance.md", "first-screen", text)


def _row(label: str, times: Sequence[float], modules: str) -> str:
    ordered = sorted(times)
    return f"| {label} | {ordered[0]:.2f} | {ordered[len(ordered) // 2]:.2f} | {modules} |"


if __name__ == "__main__":
    main()
