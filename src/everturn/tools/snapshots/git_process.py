"""Git processes: run git with no configuration but the one below, and kill it when it takes too long.

Git never runs inside a repository that it finds on its own: the settings there could make it start programs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

from everturn.errors import ConfigError, StoreUnavailable

GIT_SECONDS = 60.0  # after which a git process is killed
LISTED_BYTES = 64 * 2**20  # of one answer of git
OLDEST: Final = (2, 36)
NO_GIT: Final = (
    f"snapshots need git {OLDEST[0]}.{OLDEST[1]} or newer, and there is {{found}}: install it "
    "(`apt install git`, `brew install git`), or leave the snapshots out"
)
_CONFIG: Final = (
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.sshCommand=false",
    "core.pager=cat",
    "core.autocrlf=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
    "core.quotePath=false",
    "core.protectNTFS=true",
    "core.bigFileThreshold=2m",  # larger files are compared as bytes: comparing their lines could take minutes
    "diff.external=",
    "submodule.recurse=false",
    "protocol.allow=never",
    "gc.auto=0",
)


def find_git() -> str:
    """The path of the git program.

    Raises:
        ConfigError: git is not installed.
    """
    if (path := shutil.which("git")) is None:
        raise ConfigError(NO_GIT.format(found="none here"))
    return os.path.abspath(path)


class GitConversation:
    """A git process that answers one question after the other."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._in, self._out, self._errors = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout), errors
        self._come = b""

    def ask(self, question: bytes) -> None:
        """Send a question; no more than a pipe holds (64 KiB) before the answers are read, or both sides would
        block.
        """
        try:
            self._in.write(question)
            self._in.flush()
        except OSError:
            raise self._ended() from None

    def read(self, size: int) -> bytes:
        """Read exactly so many bytes."""
        pieces, missing = [self._come], size - len(self._come)
        while missing > 0:
            pieces.append(self._more())
            missing -= len(pieces[-1])
        data = b"".join(pieces)
        self._come = data[size:]
        return data[:size]

    def read_fields(self, count: int, end: bytes) -> list[bytes]:
        """Read so many fields, each terminated by `end`."""
        pieces, seen = [self._come], self._come.count(end)
        while seen < count:
            pieces.append(self._more())
            seen += pieces[-1].count(end)
        *complete, self._come = b"".join(pieces).split(end, count)
        return complete

    def _more(self) -> bytes:
        if not (data := os.read(self._out.fileno(), 65536)):
            raise self._ended()
        return data

    def _ended(self) -> StoreUnavailable:
        self._errors.seek(0)
        return StoreUnavailable(git_error(self._errors.read(2000)))


class GitProcess:
    """Runs git on one repository."""

    def __init__(self, home: Path) -> None:
        self.home, self._program = home, find_git()

    @contextmanager
    def converse(self, *args: str, work_tree: str = "") -> Generator[GitConversation]:
        """Start a git process that answers questions; it is killed when the context ends."""
        with self._start(args, work_tree=work_tree, stdin=subprocess.PIPE) as (process, errors):
            yield GitConversation(process, errors)

    def check(self, *args: str | bytes, home: Path | None = None) -> bytes:
        code, data, errors = self.run(*args, home=home)
        if code:
            raise StoreUnavailable(git_error(errors))
        return data

    def run(self, *args: str | bytes, home: Path | None = None, limit: int = LISTED_BYTES) -> tuple[int, bytes, bytes]:
        with self._start(args, home=home) as (process, errors):
            data = cast("IO[bytes]", process.stdout).read(limit + 1)
            if len(data) > limit:
                return -1, data[:limit], b"its answer is too long"
            code = process.wait()
            errors.seek(0)
            return code, data, errors.read(2000)

    @contextmanager
    def _start(
        self,
        args: Iterable[str | bytes],
        home: Path | None = None,
        work_tree: str = "",
        stdin: int = subprocess.DEVNULL,
    ) -> Generator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
        home = home or self.home
        env = {
            "PATH": os.defpath,
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_DIR": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "none",
        }
        if work_tree:
            env["GIT_WORK_TREE"] = work_tree
            del env["GIT_LITERAL_PATHSPECS"]  # `check-ignore` does not accept them
        line = [self._program, *(word for setting in _CONFIG for word in ("-c", setting)), *args]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                line, stdin=stdin, stdout=subprocess.PIPE, stderr=errors, env=env, cwd=work_tree or home
            )
            late = threading.Timer(GIT_SECONDS, process.kill)
            late.daemon = True
            late.start()
            try:
                yield process, errors
            finally:
                late.cancel()
                process.kill()
                for pipe in (process.stdin, process.stdout):
                    try:
                        if pipe is not None:
                            pipe.close()
                    except OSError:
                        pass  # git ended before it had read everything
                process.wait()


def git_error(output: bytes) -> str:
    """The error message for an output of git."""
    words = output.decode(errors="replace").strip() or "it was killed, or took too long"
    return f"git failed with the snapshots: {words}"
