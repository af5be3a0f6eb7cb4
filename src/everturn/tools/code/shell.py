"""The tool `run_shell`: runs a command line in a sandbox; each needs approval unless a rule decides."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical_json import JsonObject
from everturn.core.options import Approval
from everturn.core.parts import Output
from everturn.core.ports import Preview, ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.sandbox import GUARANTEES, Guarantee, SandboxReport
from everturn.errors import ConfigError, ToolError
from everturn.sandbox import OPTIONAL_GUARANTEES, check_shell, make_shell_sandbox, require_guarantees
from everturn.sandbox.bubblewrap_args import ShellLimits
from everturn.sandbox.bubblewrap_runner import DEFAULTS
from everturn.sandbox.fair_share import FairShare
from everturn.sandbox.quarantine import Quarantined
from everturn.sandbox.shell_sandbox import MAX_CONCURRENT_RUNS, ShellSandbox
from everturn.tools.code import file_hashes
from everturn.tools.code.path_policy import make_path_policy
from everturn.tools.code.report import check_timeouts, render_run_result, run_schema, validate_run_arguments
from everturn.tools.files.protected import PROTECTED, UNPROTECTED, ProtectedPaths
from everturn.tools.tool_options import spec_fields

log = logging.getLogger(__name__)

NAME = "run_shell"
SLACK = 15.0  # seconds of a call beyond those of its command: for startup and cleanup
MAX_LISTED_PATHS = 20  # paths
MAX_SESSION_COMMANDS = MAX_CONCURRENT_RUNS // 2  # concurrent commands of one session
NO_MEMORY = (
    " The memory of its processes is watched here, but what the kernel keeps for them (sockets, files in /tmp) is not "
    "limited: do not start what holds much of it."
)
NO_LIMITS = (
    " Memory and processes are not limited here: start nothing in the background, and nothing that takes much memory."
)
GIT_NOTE = " Exception: a plain `git add`, `git commit` or the like may change the repository, but not its configuration or hooks."
NO_PARSER = "commands are judged by what they say, for which there is no parser here: pip install 'everturn[shell]'"


def why_shell_unavailable(allow_degraded: Collection[Guarantee] = ()) -> str:
    """Why the tool is not available here, and what to do about it; "": it is."""
    if importlib.util.find_spec("tree_sitter") is None or importlib.util.find_spec("tree_sitter_bash") is None:
        return NO_PARSER
    report = check_shell()
    return report.explain_missing(_required(report), allow_degraded)


def unproven_guarantees() -> tuple[Guarantee, ...]:
    """Return the guarantees that the probe of the macOS sandbox did not confirm; with these as `allow_degraded`, each
    command asks. On Linux it returns (), because the shell requires all of them there.
    """
    report = check_shell()
    is_unproven = report.backend == "seatbelt" and not report.absent
    return tuple(guarantee for guarantee in _required(report) if is_unproven and guarantee not in report.holds)


def _required(report: SandboxReport) -> tuple[Guarantee, ...]:
    optional = OPTIONAL_GUARANTEES.get(report.backend, OPTIONAL_GUARANTEES["bubblewrap"])
    return tuple(guarantee for guarantee in GUARANTEES if guarantee not in optional)


class GitAccess(Struct, frozen=True):
    """Commands that may write the repository of the folder.

    `is_write` tells whether a command line is one of them; `variables` are the author of commits, because the
    repository's configuration cannot be read. What they may write is in `everturn.sandbox.git_folder`.
    """

    is_write: Callable[[str], bool]
    variables: Mapping[str, str] = {}


class RunShell:
    """The tool; made by `run_shell`."""

    def __init__(
        self,
        spec: ToolSpec,
        sandbox: ShellSandbox,
        where: dict[str, Any],
        seconds: float,
        most: float,
        git: GitAccess | None = None,
    ) -> None:
        self._spec, self._git = spec, git
        self.sandbox = sandbox
        self._where = where
        self._seconds, self._most = seconds, most
        self._shares = FairShare(MAX_SESSION_COMMANDS, most)

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject:
        """Check that there is a command, and fill in the timeout."""
        return validate_run_arguments(self._spec, "command", arguments, self._seconds, self._most)

    async def preview(self, arguments: JsonObject, context: ToolContext) -> Preview | None:
        """The files that the command line names: a person approves it with their contents."""
        folder = self.sandbox.folder
        return (
            None
            if folder is None
            else await asyncio.to_thread(file_hashes.preview_files, str(folder), context.cases, self.sandbox.mount)
        )

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Run the command."""
        checked_arguments = self.validate(arguments)
        return self._in_turn(checked_arguments["command"], checked_arguments["timeout"], context)

    async def _in_turn(self, command: str, seconds: float, context: ToolContext) -> Output:
        async with self._shares.acquire(context.session, lambda: context.progress("waits for another command to end")):
            await self._check_files(context.base_version)
            return await self._run(command, seconds)

    async def _check_files(self, base_version: str) -> None:
        """Check that the files still have the contents with which a person approved the command."""
        folder = self.sandbox.folder
        if not base_version or folder is None:
            return
        changed = await asyncio.to_thread(file_hashes.changed_files, str(folder), base_version)
        if changed:
            listing = ", ".join(map(repr, changed[:MAX_LISTED_PATHS])) + (
                " and more" if len(changed) > MAX_LISTED_PATHS else ""
            )
            raise ToolError(
                f"{listing} changed after the person was asked about this command; nothing was run. Call the tool "
                "again, so that the person is asked again"
            )

    async def _run(self, command: str, seconds: float) -> Output:
        git = self._git if self._git is not None and await asyncio.to_thread(self._git.is_write, command) else None
        before = await asyncio.to_thread(self.sandbox.find_protected)
        entries = None if git is None else await asyncio.to_thread(self.sandbox.git_entries)
        variables: JsonObject = {} if git is None else dict(git.variables)
        result = await self.sandbox.run(command, seconds=seconds, arguments=variables, writes_git=git is not None)
        report = render_run_result(result, command, seconds, self._where)
        if not self.sandbox.writable or self.sandbox.folder is None:
            return report
        try:
            quarantined = await asyncio.to_thread(self.sandbox.quarantine, before, command, entries)
        except ToolError as error:
            log.warning("%s: the files that a command created could not be checked: %s", self._spec.name, error)
            return replace(report, text=f"{report.text}\n[{error}]")
        return _report_quarantine(report, quarantined) if quarantined.moved or quarantined.not_moved else report


def _report_quarantine(report: Output, quarantined: Quarantined) -> Output:
    """Add what was quarantined to the report: to its text for the model, to its title for the person."""
    paths = (*quarantined.moved, *quarantined.not_moved)
    names = ", ".join(map(repr, paths[:MAX_LISTED_PATHS])) + (" and more" if len(paths) > MAX_LISTED_PATHS else "")
    log.warning("a command created %s, which is protected; it was moved to %s", names, quarantined.folder)
    done = (
        f"moved to {quarantined.folder}, where nothing reads it"
        if not quarantined.not_moved
        else "NOT all of it could be moved away"
    )
    return replace(
        report,
        text=f"{report.text}\n[it made {names}: other programs take that as their orders, or it looks like a secret. It was "
        f"{done}; a person can look at it there, and put it back]",
        title=f"[quarantined: {', '.join(paths[:3])}{' …' if len(paths) > 3 else ''}] {report.title}",
        metadata={
            **(report.metadata or {}),
            "quarantined": list(quarantined.moved[:MAX_LISTED_PATHS]),
            "quarantine": quarantined.folder,
            **({"not_quarantined": list(quarantined.not_moved[:MAX_LISTED_PATHS])} if quarantined.not_moved else {}),
        },
    )


def run_shell(
    folder: str | os.PathLike[str] | None = None,
    *,
    writable: bool = False,
    read_only: Sequence[str | os.PathLike[str]] = (),
    limits: ShellLimits = DEFAULTS,
    seconds: float = 30.0,
    most: float = 300.0,
    approval: Approval = "ask",
    allow_degraded: Collection[Guarantee] = (),
    name: str = NAME,
    protect: ProtectedPaths = PROTECTED,
    git: GitAccess | None = None,
) -> RunShell:
    """Make a tool that runs command lines in a sandbox without network, which sees only the programs of the host.

    A command needs approval unless a rule or a grant allows it; `approval="always"` always requires approval.

    `folder` is mounted at /work (on macOS it keeps its path), read-only unless it is `writable`. A command has `seconds`, or up to `most` if the
    model asks for more. In the folder, secrets that `protect` names cannot be read, and files that make other programs
    act (.git, bare repositories, settings) cannot be changed; if a command creates such a file, it is moved to
    `.everturn-quarantine` in the folder, and reported. With `git`, commands that it names may stage and commit in the
    repository whose root the folder is. The first call probes the guarantees of the sandbox, which
    blocks for about two seconds.

    Raises:
        ConfigError: a guarantee does not hold here; the message says which one, why, and how to fix it.
            `allow_degraded`
            lists the guarantees that you do without.
    """
    check_timeouts(name, seconds, most)
    if importlib.util.find_spec("tree_sitter_bash") is None:
        raise ConfigError(f"{name} cannot be offered here: {NO_PARSER}")
    report = check_shell()
    where = require_guarantees(name, report, _required(report), allow_degraded)
    if report.backend == "seatbelt" and unproven_guarantees() and approval != "deny":
        approval = "always"
    if "memory" not in report.holds:
        log.warning(
            "%s: the memory of a command is limited per process only, not as a whole: %s",
            name,
            report.missing.get("memory"),
        )
    path_policy = None if protect == UNPROTECTED else make_path_policy(protect)
    sandbox = make_shell_sandbox(folder, writable=writable, read_only=read_only, limits=limits, path_policy=path_policy)
    is_macos = report.backend == "seatbelt"
    temporary = "$TMPDIR" if is_macos else "/tmp"
    place = (
        f"The current folder, {sandbox.mount or temporary}, is empty; everything is gone after the command."
        if folder is None
        else f"The current folder, {sandbox.mount}, {'can be changed' if writable else 'can only be read'}; "
        f"{temporary} is empty."
        + (" Secrets in it cannot be read, and .git and settings cannot be changed." if path_policy else "")
        + (GIT_NOTE if git is not None else "")
    )
    chosen = spec_fields(name, {"approval": approval, "subjects": {"command": "command"}}, ("command", "timeout"))
    spec = ToolSpec(
        name,
        f"Run a command line in a shell (bash). {place} There is no network"
        + (f".{NO_LIMITS}" if is_macos else ", and nothing is left running afterwards.")
        + ("" if is_macos or "memory" in report.holds else NO_MEMORY),
        run_schema("command", "The command line.", seconds, most),
        timeout=2 * most + SLACK,  # as long again to wait for a free slot
        origin=f"code:{report.backend if is_macos else 'bubblewrap'}",
        echoes=True,
        **chosen,
    )
    return RunShell(spec, sandbox, where, seconds, most, git)
