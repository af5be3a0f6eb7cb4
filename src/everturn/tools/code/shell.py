"""A command line → what it wrote, in a sandbox; a person is asked about each, unless rules say otherwise."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
from collections.abc import Awaitable, Collection, Sequence
from typing import Any

from msgspec.structs import replace

from everturn.core.canonical import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import Preview, ToolContext
from everturn.core.requests import Execute, ToolSpec
from everturn.core.sandboxes import GUARANTEES, Guarantee
from everturn.errors import ConfigError, ToolError
from everturn.sandbox import NOT_NEEDED, bubblewrap_probe, promise
from everturn.sandbox.bubblewrap import AT_ONCE, DEFAULTS, Bubblewrap
from everturn.sandbox.bubblewrap_walls import Limits
from everturn.sandbox.quarantine import Quarantined
from everturn.sandbox.shares import Shares
from everturn.tools.choices import spec_fields
from everturn.tools.code import named
from everturn.tools.code.judging import judging
from everturn.tools.code.wording import check_times, checked, output, schema
from everturn.tools.files.protected import NOTHING, PROTECTED, Protected

log = logging.getLogger(__name__)

NAME = "run_shell"
SLACK = 15.0  # seconds that a call has beyond those of its command: to begin, and to be cleaned up
MOST_TOLD = 20  # paths
SHARE = AT_ONCE // 2  # commands of one session at the same time
NEEDED: tuple[Guarantee, ...] = tuple(one for one in GUARANTEES if one not in NOT_NEEDED["bubblewrap"])
NO_MEMORY = (
    " The memory of its processes is watched here, but what the kernel keeps for them (sockets, files in /tmp) is not "
    "limited: do not start what holds much of it."
)
NO_PARSER = "commands are judged by what they say, for which there is no parser here: pip install 'everturn[shell]'"


def absent(allow_degraded: Collection[Guarantee] = ()) -> str:
    """Why there is no such tool here, and what to do about it; "": there is."""
    if importlib.util.find_spec("tree_sitter") is None or importlib.util.find_spec("tree_sitter_bash") is None:
        return NO_PARSER
    return bubblewrap_probe.check().lacks(NEEDED, allow_degraded)


class Shell:
    """The tool; made by `run_shell`."""

    def __init__(self, spec: ToolSpec, sandbox: Bubblewrap, where: dict[str, Any], seconds: float, most: float) -> None:
        self._spec = spec
        self.sandbox = sandbox
        self._where = where
        self._seconds, self._most = seconds, most
        self._shares = Shares(SHARE, most)

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject:
        """Check that there is a command, and fill in its time."""
        return checked(self._spec, "command", arguments, self._seconds, self._most)

    async def preview(self, arguments: JsonObject, context: ToolContext) -> Preview | None:
        """The files that the line names: a person allows it with what they hold."""
        folder = self.sandbox.folder
        return None if folder is None else await asyncio.to_thread(named.preview, str(folder), context.cases)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Run it."""
        given = self.validate(arguments)
        return self._in_turn(given["command"], given["timeout"], context)

    async def _in_turn(self, command: str, seconds: float, context: ToolContext) -> Output:
        async with self._shares.one(context.session, lambda: context.progress("waits for another command to end")):
            await self._check_files(context.basis)
            return await self._run(command, seconds)

    async def _check_files(self, basis: str) -> None:
        """See that the files are still those that a person allowed the command with."""
        folder = self.sandbox.folder
        if not basis or folder is None:
            return
        changed = await asyncio.to_thread(named.changed, str(folder), basis)
        if changed:
            told = ", ".join(map(repr, changed[:MOST_TOLD])) + (" and more" if len(changed) > MOST_TOLD else "")
            raise ToolError(
                f"{told} changed after the person was asked about this command; nothing was run. Make the call anew, so "
                "that they are asked again"
            )

    async def _run(self, command: str, seconds: float) -> Output:
        before = await asyncio.to_thread(self.sandbox.kept)
        ran = await self.sandbox.run(command, seconds=seconds)
        said = output(ran, command, seconds, self._where)
        if not self.sandbox.writable or self.sandbox.folder is None:
            return said
        try:
            away = await asyncio.to_thread(self.sandbox.quarantine, before, command)
        except ToolError as error:
            log.warning("%s: what a command made could not be looked at: %s", self._spec.name, error)
            return replace(said, text=f"{said.text}\n[{error}]")
        return _told(said, away) if away.moved or away.left else said


def _told(said: Output, away: Quarantined) -> Output:
    """A result that says what was put in quarantine: in its text for the model, in its title for the person."""
    made = (*away.moved, *away.left)
    names = ", ".join(map(repr, made[:MOST_TOLD])) + (" and more" if len(made) > MOST_TOLD else "")
    log.warning("a command made %s, which is protected; it is in %s", names, away.place)
    done = f"moved to {away.place}, where nothing reads it" if not away.left else "NOT all of it could be moved away"
    return replace(
        said,
        text=f"{said.text}\n[it made {names}: other programs take that as their orders, or it looks like a secret. It was "
        f"{done}; a person can look at it there, and put it back]",
        title=f"[quarantined: {', '.join(made[:3])}{' …' if len(made) > 3 else ''}] {said.title}",
        metadata={
            **(said.metadata or {}),
            "quarantined": list(away.moved[:MOST_TOLD]),
            "quarantine": away.place,
            **({"not_quarantined": list(away.left[:MOST_TOLD])} if away.left else {}),
        },
    )


def run_shell(
    folder: str | os.PathLike[str] | None = None,
    *,
    writable: bool = False,
    read_only: Sequence[str | os.PathLike[str]] = (),
    limits: Limits = DEFAULTS,
    seconds: float = 30.0,
    most: float = 300.0,
    execute: Execute = "ask_once",
    allow_degraded: Collection[Guarantee] = (),
    name: str = NAME,
    protect: Protected = PROTECTED,
) -> Shell:
    """A tool that runs command lines in a sandbox without network, which sees of the host only its programs.

    A person is asked unless a rule or a remembered answer allows the command; `execute="ask"` asks every time.

    `folder` is there at /work, for reading only unless it is `writable`. A command has `seconds`, or up to `most` if the
    model asks for them. Of what is there, secrets that `protect` names cannot be read, and what makes other programs do
    something (.git, bare repositories, settings) cannot be changed; if a command makes something new of the kind, that is
    moved to `.everturn-quarantine` in the folder, and told. What the sandbox guarantees is probed when this is first called,
    which blocks for about two seconds.

    Raises:
        ConfigError: something of what is promised does not hold here; the text says what, why, and how to mend it.
            `allow_degraded` lists what you do without.
    """
    check_times(name, seconds, most)
    if importlib.util.find_spec("tree_sitter_bash") is None:
        raise ConfigError(f"{name} cannot be offered here: {NO_PARSER}")
    report = bubblewrap_probe.check()
    where = promise(name, report, NEEDED, allow_degraded)
    if "memory" not in report.holds:
        log.warning(
            "%s: what a command takes of memory is not limited as a whole: %s", name, report.missing.get("memory")
        )
    judge = None if protect == NOTHING else judging(protect)
    sandbox = Bubblewrap(folder, writable=writable, read_only=read_only, limits=limits, judge=judge)
    place = (
        "The current folder, /work, is empty; everything is gone after the command."
        if folder is None
        else f"The current folder, /work, {'can be changed' if writable else 'can only be read'}; /tmp is empty."
        + (" Secrets in it cannot be read, and .git and settings cannot be changed." if judge else "")
    )
    chosen = spec_fields(
        name, {"execute": execute, "subjects": {"command": "command"}, "effects": "once"}, ("command", "timeout")
    )
    spec = ToolSpec(
        name,
        f"Run a command line in a shell (bash). {place} There is no network, and nothing is left running afterwards."
        + ("" if "memory" in report.holds else NO_MEMORY),
        schema("command", "The command line.", seconds, most),
        timeout=2 * most + SLACK,  # as long again to wait for a place
        origin="code:bubblewrap",
        echoes=True,
        **chosen,
    )
    return Shell(spec, sandbox, where, seconds, most)
