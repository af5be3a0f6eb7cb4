"""Local tools of a chat: the options `--files`, `--code`, `--shell`, `--web` and `--mcp` become tools and plugins.

A tool that this machine cannot run safely is an error or a message to the person; it is never left out silently.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from everturn.core.rules.globs import escape_glob
from everturn.core.sandbox import GUARANTEES
from everturn.errors import CommandRefused, ConfigError, StoreUnavailable
from everturn.terminal.text.visible_text import escape_invisible

if TYPE_CHECKING:
    from everturn.mcp import McpServers, ServerSpec, ServerStatus, TrustFile
    from everturn.tools.files import ProtectedPaths
    from everturn.tools.snapshots.store import FolderSnapshots

LIST_TIMEOUT = 15.0  # seconds that a server has to list its tools, before it is trusted
READ_ONLY, WRITABLE = ":ro", ":rw"
POLL_INTERVAL = 0.05  # seconds between two checks of servers that are connecting
Tell = Callable[[str], None]


class Confirmer(Protocol):
    """The person at the terminal, whom this module asks before it trusts an MCP server."""

    def show(self, lines: list[str]) -> None:
        """Show lines to the person, exactly as they are."""
        ...

    async def confirm(self, question: str) -> bool:
        """Ask the person a yes-or-no question."""
        ...


class LocalToolOptions(Struct, frozen=True):
    """Which local tools a chat has. `shell` is the folder that commands see: "" for none, None for no shell at all."""

    files: str = ""
    virtual: bool = False
    code: bool = False
    shell: str | None = None
    web: bool = False
    mcp: tuple[str, ...] = ()


class LocalTools(Struct):
    """Tools and plugins for a chat, the file snapshots by root, and the MCP servers."""

    tools: list[Any] = field(default_factory=list[Any])
    plugins: list[Any] = field(default_factory=list[Any])
    snapshots: Mapping[str, FolderSnapshots] = {}
    servers: McpServers | None = None

    def status(self) -> list[ServerStatus]:
        """Return the status of every server."""
        return [] if self.servers is None else self.servers.status()

    async def wait_for_servers(self, seconds: float) -> None:
        """Wait at most this long for servers that are connecting: nothing else runs here while a person types."""
        for _ in range(int(seconds / POLL_INTERVAL)):
            if all(status.state != "connecting" for status in self.status()):
                return
            await asyncio.sleep(POLL_INTERVAL)


async def build_local_tools(options: LocalToolOptions, tell: Tell, person: Confirmer | None) -> LocalTools:
    """Build the tools that the options ask for. Without a person, an untrusted server is an error.

    Raises:
        ConfigError: this machine cannot provide a tool, or two options conflict; nothing was sent.
    """
    local = LocalTools()
    if options.files and options.virtual:
        raise ConfigError("--files and --virtual-files have tools with the same names; use one of them")
    folders = _add_files(options, local)
    if options.code:
        local.tools += await asyncio.to_thread(_code, tell)
    if options.shell is not None:
        tool, folder = await asyncio.to_thread(_shell, options.shell)
        local.tools.append(tool)
        _check_apart(options, folder)
        if folder is not None and not any(folder.is_relative_to(other) for other in folders.values()):
            folders["shell"] = folder
    if options.web:
        from everturn.tools.web import fetch_url

        local.tools.append(fetch_url())
    if folders:
        await _add_snapshots(folders, local, tell)
    if options.mcp:
        local.servers = await _servers(options.mcp, tell, person)
        local.tools.append(local.servers)
    return local


# Files -----------------------------------------------------------------------------------------------------------


def _add_files(options: LocalToolOptions, local: LocalTools) -> dict[str, Path]:
    """Add file tools, and return the folder that they write to, by the name of its root."""
    if options.virtual:
        from everturn.tools.files import virtual_files

        local.tools.append(virtual_files().enabled())
    if not options.files:
        return {}
    from everturn.tools.files import files

    folder, is_read_only = _split(options.files, READ_ONLY)
    _check_folder("--files", folder)
    local.tools.append(files(folder, read_only=is_read_only, protect=_protected(folder, options.mcp)).enabled())
    return {} if is_read_only else {"work": folder.resolve()}


def _protected(folder: Path, servers: tuple[str, ...]) -> ProtectedPaths:
    """Return the paths that the file tools protect: also our own tokens, trust file and snapshots, and the files that
    name MCP servers, if they are inside the folder."""
    from everturn.mcp.trust import default_trust_path
    from everturn.tools.files import PROTECTED

    own_paths = (default_trust_path().parent, state_dir(os.environ))
    configs = (Path(path).expanduser() for path in servers)
    return PROTECTED.adding(
        secrets=_patterns_inside(folder, own_paths), write_protected=_patterns_inside(folder, configs)
    )


def _patterns_inside(folder: Path, paths: Iterable[Path]) -> list[str]:
    """Return the paths that are inside a folder, as patterns."""
    root = folder.resolve()
    resolved = (path.resolve() for path in paths)
    inside = [path.relative_to(root).as_posix() for path in resolved if path != root and path.is_relative_to(root)]
    return [escape_glob(path) for path in inside]


def _split(text: str, ending: str) -> tuple[Path, bool]:
    """Return a folder, and whether the text has the ending; a folder whose own name ends that way is taken as it is."""
    path = Path(os.path.expanduser(text))
    if text.endswith(ending) and not path.is_dir():
        return Path(os.path.expanduser(text.removesuffix(ending))), True
    return path, False


def _check_apart(options: LocalToolOptions, writable: Path | None) -> None:
    """Refuse a shell that could replace the folder of the file tools."""
    if options.files and writable is not None:
        root = _split(options.files, READ_ONLY)[0].resolve()
        if writable in root.parents:
            raise ConfigError(
                f"--shell {escape_invisible(str(writable))}:rw could put another folder in the place of --files "
                f"{escape_invisible(str(root))}; "
                "name the same folder for both, or one that is not around it"
            )


def _check_folder(flag: str, folder: Path) -> None:
    if not folder.is_dir():
        problem = "it is not a folder" if folder.exists() else "there is no such folder"
        raise ConfigError(f"{flag} {escape_invisible(str(folder))}: {problem}; create it first, or name another")


async def _add_snapshots(folders: dict[str, Path], local: LocalTools, tell: Tell) -> None:
    """Add file snapshots, after recording one: a folder that cannot be recorded would fail every turn."""
    from everturn.plugins.file_snapshots import FileSnapshots

    name = hashlib.sha256("\0".join(map(str, folders.values())).encode(errors="surrogateescape")).hexdigest()[:16]
    try:
        snapshots = FileSnapshots(folders, store_dir=state_dir(os.environ) / "snapshots" / name)
        for shadow in snapshots.folders.values():
            await shadow.record()
    except (ConfigError, CommandRefused, StoreUnavailable, OSError) as error:
        tell(f"no snapshots are taken, so that /revert cannot take back what is done to files: {error}")
        return
    local.plugins.append(snapshots)
    local.snapshots = snapshots.folders


def state_dir(environment: Mapping[str, str]) -> Path:
    """Return the folder for state that is saved between two runs."""
    home = environment.get("XDG_STATE_HOME") or str(Path(environment.get("HOME") or "~").expanduser() / ".local/state")
    return Path(home) / "everturn"


# Code ------------------------------------------------------------------------------------------------------------


def _code(tell: Tell) -> list[Any]:
    """Return the code tools whose sandbox guarantees hold on this machine."""
    from everturn.sandbox import monty
    from everturn.tools.code import javascript, python

    reasons = {
        "run_python": monty.check().explain_missing(GUARANTEES),
        "run_javascript": javascript.why_javascript_unavailable(),
    }
    missing = [f"{name} is not offered: {reason}" for name, reason in reasons.items() if reason]
    if len(missing) == len(reasons):
        raise ConfigError(f"--code: {'; '.join(missing)}")
    for message in missing:
        tell(message)
    factories = {"run_python": python.run_python, "run_javascript": javascript.run_javascript}
    return [factories[name]() for name, reason in reasons.items() if not reason]


def _shell(text: str) -> tuple[Any, Path | None]:
    """Return a shell tool, and the folder that it may write to."""
    from everturn.tools.code import shell

    if reason := shell.why_shell_unavailable():
        raise ConfigError(f"--shell: run_shell cannot guarantee its limits on this machine: {reason}")
    if not text:
        return shell.run_shell(), None
    folder, is_writable = _split(text, WRITABLE)
    _check_folder("--shell", folder)
    return shell.run_shell(folder, writable=is_writable), folder.resolve() if is_writable else None


# Servers ---------------------------------------------------------------------------------------------------------


async def _servers(paths: tuple[str, ...], tell: Tell, person: Confirmer | None) -> McpServers:
    if find_spec("mcp") is None:
        raise ConfigError("--mcp needs the mcp library: pip install 'everturn[mcp]'")
    from everturn.mcp import McpServers, TrustFile, load_servers
    from everturn.mcp.servers import QUICK_START_TIMEOUT
    from everturn.mcp.trust import default_trust_path

    trust, specs = TrustFile(default_trust_path()), list["ServerSpec"]()
    for path in paths:
        for spec in load_servers(path):
            if not trust.launch(spec):
                if person is None:
                    raise ConfigError(
                        f"--mcp {path}: {spec.name} is not trusted, and there is no terminal to ask on; it would run: "
                        f"{escape_invisible(spec.line)} (review it, and trust it: everturn mcp trust {path} {spec.name})"
                    )
                await _trust(spec, trust, tell, person)
            specs.append(spec)
    return McpServers(
        specs, trust=trust, timeout=QUICK_START_TIMEOUT, tokens=default_trust_path().parent / "mcp-tokens"
    )


async def _trust(spec: ServerSpec, trust: TrustFile, tell: Tell, person: Confirmer) -> None:
    """Ask before a server is started, and trust it with the tools that it then has; or leave it untrusted."""
    known = trust.changes(spec)
    tell(f"{spec.name} is not trusted, or not as it is now; it would {'run' if spec.command else 'be reached at'}:")
    person.show([escape_invisible(spec.line)])
    if len(known) > 1:  # the first says what is different, and then come both lines
        person.show([escape_invisible(line) for line in known])
    verb = "start" if spec.command else "connect to"
    if not await person.confirm(f"{verb} {spec.name}, and trust it as it is now?"):
        tell(f"{spec.name} was not started, and its tools are not offered")
        return
    tell(f"looking at the tools of {spec.name}")
    facts, problem = await _list_tools(spec)
    if problem:
        tell(f"{spec.name} is not trusted, for it cannot be looked at: {escape_invisible(problem)}")
        return
    changed = [escape_invisible(line) for line in trust.changes(spec, facts) if line not in known]
    if changed:
        person.show(changed)
    if changed and not await person.confirm(f"trust {spec.name} with its tools as they are now?"):
        tell(f"{spec.name} is not trusted, and its tools are not offered")
        return
    await asyncio.to_thread(trust.trust, spec, {fact.name: fact.hash for fact in facts}, facts)
    tell(
        f"{spec.name} is trusted, with its tools: {', '.join(escape_invisible(fact.name) for fact in facts) or 'none'}"
    )


async def _list_tools(spec: ServerSpec) -> tuple[list[Any], str]:
    """Connect to a server and return its tools, or why that failed."""
    from everturn.mcp import McpServers
    from everturn.mcp.trust import default_trust_path

    servers = McpServers([spec], timeout=LIST_TIMEOUT, tokens=default_trust_path().parent / "mcp-tokens")
    try:
        await servers.open(lambda origin, tools: None)
        (status,) = servers.status()
        if status.state == "ready":
            return list(servers.facts(spec.name)), ""
        return [], f"{status.state}: {status.reason}" if status.reason else status.state
    finally:
        with suppress(Exception):
            await servers.aclose()
