"""A command line → what it wrote, in a sandbox; a person is asked about each, unless rules say otherwise."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Awaitable, Collection, Sequence
from typing import Any

from msgspec.structs import replace

from everturn.core.canonical import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import Execute, ToolSpec
from everturn.core.sandboxes import GUARANTEES, Guarantee
from everturn.errors import ConfigError, ToolError
from everturn.sandbox import bubblewrap_probe, promise
from everturn.sandbox.bubblewrap import AT_ONCE, DEFAULTS, Bubblewrap
from everturn.sandbox.bubblewrap_walls import Limits
from everturn.sandbox.shares import Shares
from everturn.tools.choices import spec_fields
from everturn.tools.code.judging import judging
from everturn.tools.code.wording import check_times, checked, output, schema
from everturn.tools.files.protected import NOTHING, PROTECTED, Protected

NAME = "run_shell"
SLACK = 15.0  # seconds that a call has beyond those of its command: to begin, and to be cleaned up
MOST_TOLD = 20  # paths
SHARE = AT_ONCE // 2  # commands of one session at the same time
NO_PARSER = "commands are judged by what they say, for which there is no parser here: pip install 'everturn[shell]'"


def absent(allow_degraded: Collection[Guarantee] = ()) -> str:
    """Why there is no such tool here, and what to do about it; "": there is."""
    if importlib.util.find_spec("tree_sitter") is None or importlib.util.find_spec("tree_sitter_bash") is None:
        return NO_PARSER
    return bubblewrap_probe.check().lacks(GUARANTEES, allow_degraded)


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

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Run it."""
        given = self.validate(arguments)
        return self._in_turn(given["command"], given["timeout"], context)

    async def _in_turn(self, command: str, seconds: float, context: ToolContext) -> Output:
        async with self._shares.one(context.session, lambda: context.progress("waits for another command to end")):
            return await self._run(command, seconds)

    async def _run(self, command: str, seconds: float) -> Output:
        before = await asyncio.to_thread(self.sandbox.kept)
        ran = await self.sandbox.run(command, seconds=seconds)
        said = output(ran, command, seconds, self._where)
        if not self.sandbox.writable or self.sandbox.folder is None:
            return said
        try:
            made = sorted((await asyncio.to_thread(self.sandbox.kept)).all - before.all)
        except ToolError as error:
            return replace(said, text=f"{said.text}\n[{error}]")
        if not made:
            return said
        told = ", ".join(map(repr, made[:MOST_TOLD])) + (" and more" if len(made) > MOST_TOLD else "")
        return replace(
            said,
            text=f"{said.text}\n[it made {told}: other programs take that as their orders, or it looks like a secret; a "
            "person should look at it before they run anything there]",
            metadata={**(said.metadata or {}), "made": made[:MOST_TOLD]},
        )


def run_shell(
    folder: str | os.PathLike[str] | None = None,
    *,
    writable: bool = False,
    read_only: Sequence[str | os.PathLike[str]] = (),
    limits: Limits = DEFAULTS,
    seconds: float = 30.0,
    most: float = 300.0,
    execute: Execute = "ask",
    allow_degraded: Collection[Guarantee] = (),
    name: str = NAME,
    protect: Protected = PROTECTED,
) -> Shell:
    """A tool that runs command lines in a sandbox without network, which sees of the host only its programs.

    `folder` is there at /work, for reading only unless it is `writable`. A command has `seconds`, or up to `most` if the
    model asks for them. Of what is there, secrets that `protect` names cannot be read, and what makes other programs do
    something (.git, settings) cannot be changed; if a command makes something new of the kind, that is told. What the sandbox guarantees is probed when this is called, which blocks for less than a second.

    Raises:
        ConfigError: something of what is promised does not hold here; the text says what, why, and how to mend it.
            `allow_degraded` lists what you do without.
    """
    check_times(name, seconds, most)
    if importlib.util.find_spec("tree_sitter_bash") is None:
        raise ConfigError(f"{name} cannot be offered here: {NO_PARSER}")
    where = promise(name, bubblewrap_probe.check(), GUARANTEES, allow_degraded)
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
        f"Run a command line in a shell (bash). {place} There is no network, and nothing is left running afterwards.",
        schema("command", "The command line.", seconds, most),
        timeout=2 * most + SLACK,  # as long again to wait for a place
        origin="code:bubblewrap",
        echoes=True,
        **chosen,
    )
    return Shell(spec, sandbox, where, seconds, most)
