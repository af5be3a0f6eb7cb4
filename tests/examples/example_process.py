"""An example → a copy of it that runs as its README says, and what it did as a recording.

EVERTURN_RECORD=1 python -m pytest -n0 tests/examples      writes examples/*/recorded anew
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from everturn.replay import Recording, differences, normalize_recording
from everturn.stores.registry import get_store

ROOT: Final = Path(__file__).resolve().parent.parent.parent
EXAMPLES: Final = ROOT / "examples"
KEYS: Final = re.compile(r"_API_KEY$|^EVERTURN_|^MODEL$|^PORT$")
OWN: Final = ("identity", "claim", "timezone")  # of this machine, and of this run
PATIENCE: Final = 60.0  # seconds for a program to say what is waited for; a loaded machine needs more than one thinks


def copied(name: str, place: Path) -> Path:
    """The example where it may leave files behind."""
    folder = place / name
    shutil.copytree(
        EXAMPLES / name, folder, ignore=shutil.ignore_patterns("recorded", "__pycache__", "*.db", "kitchen*")
    )
    return folder


def commands(name: str, block: int = 0) -> list[list[str]]:
    """What the README says under "Start it", line by line; the first block, or another one."""
    readme = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    start = readme.partition("## Start it\n")[2].partition("\n## ")[0]
    return [shlex.split(line) for line in re.findall(r"```sh\n(.*?)```", start, re.DOTALL)[block].splitlines()]


def environment(home: Path, **more: str) -> dict[str, str]:
    """That of somebody who has installed everturn, and nothing else: no key, no configuration, a home of their own."""
    known = {name: value for name, value in os.environ.items() if not KEYS.search(name)}
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    places = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("DATA", "STATE", "CONFIG")}
    return known | places | {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"} | more


def run(words: list[str], cwd: Path, seconds: float = PATIENCE, **more: str) -> str:
    """What a program says that ends by itself, and well. One that does not is ended with all that it has started."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=cwd, env=environment(cwd, **more), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as program:
        try:
            output, wrong = program.communicate(timeout=seconds)
        finally:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
    assert program.returncode == 0, f"{words}: {program.returncode}\n{output}\n{wrong}"
    return output


@contextmanager
def started(words: list[str], cwd: Path, **more: str) -> Generator[subprocess.Popen[str]]:
    """A program that runs while the block does."""
    with (cwd / "programs.log").open("a", encoding="utf-8") as log:
        program = subprocess.Popen(
            words, cwd=cwd, env=environment(cwd, **more), stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        yield program
    finally:
        if program.poll() is None:
            program.terminate()
            try:
                program.wait(20)
            except subprocess.TimeoutExpired:
                program.kill()
        program.wait()
        assert program.stdout is not None
        program.stdout.close()


def says(program: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Wait until it says this."""
    out: IO[str] | None = program.stdout
    assert out is not None
    lines: list[str] = []
    while line := out.readline():
        lines.append(line)
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"it ended without {pattern!r}: {''.join(lines)}")


def is_there(url: str) -> bool:
    """Whether somebody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


async def recording_of(store: Path, session: str = "") -> Recording:
    """What is in a store; the only session of it, unless one is named."""
    opened = get_store(str(store))
    try:
        if not session:
            (only,) = await opened.sessions()
            session = only.id
        return await Recording.from_session(opened, session)
    finally:
        await opened.aclose()


def check_recorded(fresh: Recording, name: str, file: str, places: Mapping[str, str] | None = None) -> None:
    """What has happened now is what was recorded then, byte for byte but for times and names.

    Two things do not count: the folder, which is part of what tools for files are, and what a tab of a browser calls itself.
    """
    fresh = fresh.with_paths_replaced(places or {})
    path = EXAMPLES / name / "recorded" / file
    if os.environ.get("EVERTURN_RECORD"):
        path.parent.mkdir(exist_ok=True)
        fresh.write(path)
    recorded = Recording.read(path)
    found = differences(recorded, fresh, OWN)
    assert not found, "\n".join(str(difference) for difference in found)
    assert normalize_recording(fresh, OWN) == normalize_recording(recorded, OWN)
