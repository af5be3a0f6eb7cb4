"""Shell sandbox: what the sandboxes of shells have in common, whichever isolates the processes.

It opens the folder once, finds its protected paths before each command, runs a limited number of commands at once, and
moves protected files to the quarantine that a command created.
"""

from __future__ import annotations

import asyncio
import os
import re
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from msgspec import json

from everturn.core.canonical_json import JsonObject
from everturn.core.sandbox import SandboxResult
from everturn.errors import ConfigError
from everturn.sandbox.git_folder import find_git_intruders
from everturn.sandbox.hidden_paths import GIT_CONTROL_FILES, HiddenPaths, PathPolicy, find_hidden_paths
from everturn.sandbox.process import StopSignal, run_in_thread
from everturn.sandbox.quarantine import Quarantined, move_to_quarantine

MAX_COMMAND_BYTES: Final = 100_000  # bytes of a command: the kernel takes 128 KiB as one argument
MAX_CONCURRENT_RUNS: Final = 8  # concurrent runs of one sandbox
SHELLS: Final = ("/bin/bash", "/bin/sh")
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class ShellSandbox(ABC):
    """Runs commands that see one folder; `path_policy` decides what in it is hidden or read-only.

    Raises:
        ConfigError: the folder does not exist.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None, *, writable: bool, path_policy: PathPolicy | None
    ) -> None:
        self.folder = None if folder is None else Path(folder).resolve()
        if self.folder is not None and (not self.folder.is_dir() or self.folder == Path("/")):
            raise ConfigError(f"{self.folder} cannot be the folder of a shell; name a folder below /")
        self._opened = -1
        if self.folder is not None:  # opened once: a folder that replaces it later is not used
            self._opened = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            weakref.finalize(self, os.close, self._opened)
        self.writable = writable
        self._path_policy = None if self.folder is None else path_policy

    @property
    @abstractmethod
    def mount(self) -> str:
        """The path of the folder as a command sees it."""

    @cached_property
    def _places(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(MAX_CONCURRENT_RUNS)

    def find_protected(self) -> HiddenPaths:
        """The protected paths of the folder, as they are now; it blocks.

        Raises:
            ToolError: there are too many, or a link is in the way.
        """
        if self.folder is None or self._path_policy is None:
            return HiddenPaths()
        return find_hidden_paths(self._opened, self._path_policy, writable=self.writable)

    def git_entries(self) -> set[str]:
        """The entries of the folder's repository that a commit does not write, to find those that a command adds."""
        return find_git_intruders(self._opened)

    def quarantine(self, before: HiddenPaths, why: str, git_entries: set[str] | None = None) -> Quarantined:
        """Move newly created protected files to the quarantine, where no program obeys them; it blocks.

        `git_entries` are those before a command that could write the repository; None: it could not.

        Raises:
            ToolError: the folder cannot be walked.
        """
        if self.folder is None or self._path_policy is None or not self.writable:
            return Quarantined()
        intruders = find_git_intruders(self._opened) if git_entries is not None else set[str]()
        links: list[str] = []
        after = find_hidden_paths(self._opened, self._path_policy, writable=True, links=links)
        created = {*after.unchangeable, *links} - before.unchangeable
        whole = created - after.repositories
        # Of a folder that has become a repository, only what makes it one: the rest may have existed before.
        parts = {
            f"{repository}/{name}"
            for repository in created & after.repositories
            if repository not in GIT_CONTROL_FILES
            for name in GIT_CONTROL_FILES
        }
        return move_to_quarantine(
            self._opened,
            sorted({*whole, *parts, *(created & GIT_CONTROL_FILES), *(intruders - (git_entries or set()))}),
            why,
        )

    @abstractmethod
    def run_program(
        self,
        argv: Sequence[str],
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
        seconds: float = 10.0,
        stop: StopSignal | None = None,
        writes_git: bool = False,
    ) -> SandboxResult:
        """Run a program, and block until it has ended."""

    async def run(
        self,
        code: str,
        *,
        stdin: str = "",
        arguments: JsonObject | None = None,
        seconds: float = 10.0,
        writes_git: bool = False,
    ) -> SandboxResult:
        """Run a command line in a shell; `arguments` are environment variables."""
        if len(code.encode(errors="replace")) > MAX_COMMAND_BYTES or "\0" in code:
            return SandboxResult(
                error=f"a command has at most {MAX_COMMAND_BYTES} bytes, and no NUL among them; put data into a file"
            )
        argv = (next(filter(os.path.exists, SHELLS), SHELLS[-1]), "-c", code)
        variables = _variables(arguments or {})
        async with self._places:
            return await run_in_thread(lambda stop: self.run_program(argv, stdin, variables, seconds, stop, writes_git))

    async def aclose(self) -> None:  # noqa: B027
        """Do nothing: there are no workers."""


def _variables(arguments: JsonObject) -> dict[str, str]:
    if wrong := [name for name in arguments if VARIABLE.fullmatch(name) is None]:
        raise ConfigError(f"{wrong[0]!r} is not a valid name for a shell variable: letters, digits and '_'")
    return {
        name: value.replace("\0", "") if isinstance(value, str) else json.encode(value).decode()
        for name, value in arguments.items()
    }
