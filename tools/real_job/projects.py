"""Projects with a planted bug: source distributions as git repositories, with an environment for their tests."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

from msgspec import Struct

from tools.real_job.mutation import Mutation, plant
from tools.real_job.screen import UID

AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


class Project(Struct, frozen=True):
    """A source distribution: what its tests need, how they run, and where the bug is planted."""

    requirement: str
    sources: tuple[str, ...]  # files in which a bug may be planted
    tests: str = ""  # what follows the command: the tests that need no network
    needs: tuple[str, ...] = ()
    seed: int = 1

    @property
    def name(self) -> str:
        """The name of the distribution."""
        return self.requirement.partition("==")[0]

    @property
    def command(self) -> str:
        """The command that runs the tests."""
        return " ".join(filter(None, [".venv/bin/python -m pytest", self.tests]))


class Bug(Struct, frozen=True):
    """What was planted, for the report; the model is not told."""

    path: str
    mutation: Mutation

    def __str__(self) -> str:
        return f"`{self.path}:{self.mutation.line}` `{self.mutation.old}` → `{self.mutation.new}`"


PROJECTS = (
    Project("inflection==0.5.1", ("inflection/__init__.py",), "test_inflection.py", seed=1),
    Project("boltons==26.2.0", ("boltons/iterutils.py",), "tests/test_iterutils.py", seed=2),
    Project("toolz==1.2.0", ("toolz/itertoolz.py",), "toolz/tests/test_itertoolz.py", seed=1),
)


def download(requirement: str, folder: Path) -> Path:
    """Download a source distribution, and unpack it; the folder that it contains."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "pip", "download", "-q", "--no-binary", ":all:", "--no-deps", "-d", str(folder)]
    if not list(folder.glob("*.tar.gz")):
        words = words if _has_pip() else ["pip", *words[3:]]
        subprocess.run([*words, requirement], check=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


def _has_pip() -> bool:
    return subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0


def prepare(project: Project, folder: Path) -> tuple[Path, Bug]:
    """Make a repository of a project, with the bug already committed."""
    repository = download(project.requirement, folder)
    subprocess.run(["uv", "venv", "-q", "--python", "/usr/bin/python3", ".venv"], cwd=repository, check=True)
    words = ["uv", "pip", "install", "-q", "--python", ".venv/bin/python", "pytest", *project.needs]
    subprocess.run(words, cwd=repository, check=True)
    return repository, commit_bug(
        repository, [repository / source for source in project.sources], project.command, project.seed
    )


def commit_bug(folder: Path, sources: list[Path], command: str, seed: int) -> Bug:
    """Plant a bug that makes a test fail, and commit everything."""
    (folder / ".gitignore").write_text(".venv/\n__pycache__/\n.pytest_cache/\n.hypothesis/\n")

    def count_failures() -> int:
        from tools.real_job.debugger import find_failures

        words = [*command.split(), "-q"]
        known = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60, check=False, env=known)
        except subprocess.TimeoutExpired:
            return 0
        printed = done.stdout + done.stderr
        return len(find_failures(printed)) or (-1 if done.returncode else 0)

    assert count_failures() == 0, f"the tests of {folder.name} fail without a bug"
    file, mutation = plant(sources, seed, count_failures)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    subprocess.run(["git", *AUTHOR, "commit", "-q", "-m", "Import"], cwd=folder, check=True)
    if os.geteuid() == 0:  # the assistant runs as an ordinary user
        subprocess.run(["chown", "-R", f"{UID}:{UID}", str(folder)], check=True)
    return Bug(file.relative_to(folder).as_posix(), mutation)
