"""What a command line says that a chat may reach → tools and plugins, or one line that says why not.

What does not hold on this machine is never left out without a word.
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

from everturn.core.globs import escape
from everturn.core.sandboxes import GUARANTEES
from everturn.errors import CommandRefused, ConfigError, StoreUnavailable
from everturn.terminal.exact import seen

if TYPE_CHECKING:
    from everturn.mcp import McpServers, ServerSpec, ServerStatus, TrustFile
    from everturn.tools.files import Protected
    from everturn.tools.shadow import Shadow

LOOK = 15.0  # seconds that a server has to say what it has, before it is trusted
READ_ONLY, WRITABLE = ":ro", ":rw"
TICK = 0.05  # seconds between two looks at servers that are on their way
Tell = Callable[[str], None]


class Person(Protocol):
    """Whoever sits in front of it."""

    def show(self, lines: list[str]) -> None:
        """Show them lines, each of them exactly."""
        ...

    async def agreed(self, question: str) -> bool:
        """Ask them something."""
        ...


class Reach(Struct, frozen=True):
    """What a chat may reach. `shell` is the folder that commands see: "" for none, None for no shell at all."""

    files: str = ""
    virtual: bool = False
    code: bool = False
    shell: str | None = None
    web: bool = False
    mcp: tuple[str, ...] = ()


class Brought(Struct):
    """What came of it: tools and plugins for a chat, the snapshots by root, and the servers."""

    tools: list[Any] = field(default_factory=list[Any])
    plugins: list[Any] = field(default_factory=list[Any])
    keepers: Mapping[str, Shadow] = {}
    servers: McpServers | None = None

    def status(self) -> list[ServerStatus]:
        """How the servers are."""
        return [] if self.servers is None else self.servers.status()

    async def settled(self, seconds: float) -> None:
        """Wait so long, at most, for servers that are on their way: while a person types nothing else goes on here."""
        for _ in range(int(seconds / TICK)):
            if all(status.state != "connecting" for status in self.status()):
                return
            await asyncio.sleep(TICK)


async def bring(reach: Reach, tell: Tell, person: Person | None) -> Brought:
    """Everything that is asked for; with no person, nothing that would have to be asked about.

    Raises:
        ConfigError: something of it cannot be had here; nothing was sent.
    """
    brought = Brought()
    if reach.files and reach.virtual:
        raise ConfigError("--files and --virtual-files have tools of the same names; say one of them")
    folders = _bring_files(reach, brought)
    if reach.code:
        brought.tools += await asyncio.to_thread(_code, tell)
    if reach.shell is not None:
        tool, folder = await asyncio.to_thread(_shell, reach.shell)
        brought.tools.append(tool)
        _check_apart(reach, folder)
        if folder is not None and not any(folder.is_relative_to(other) for other in folders.values()):
            folders["shell"] = folder
    if reach.web:
        from everturn.tools.web import fetch_url

        brought.tools.append(fetch_url())
    if folders:
        await _bring_snapshots(folders, brought, tell)
    if reach.mcp:
        brought.servers = await _servers(reach.mcp, tell, person)
        brought.tools.append(brought.servers)
    return brought


# Files -----------------------------------------------------------------------------------------------------------


def _bring_files(reach: Reach, brought: Brought) -> dict[str, Path]:
    """File tools; and the folder that they write to, by the name of its root."""
    if reach.virtual:
        from everturn.tools.files import virtual_files

        brought.tools.append(virtual_files().enabled())
    if not reach.files:
        return {}
    from everturn.tools.files import files

    folder, is_read_only = _split(reach.files, READ_ONLY)
    _check_folder("--files", folder)
    brought.tools.append(files(folder, read_only=is_read_only, protect=_protected(folder, reach.mcp)).enabled())
    return {} if is_read_only else {"work": folder.resolve()}


def _protected(folder: Path, servers: tuple[str, ...]) -> Protected:
    """What is kept from a model: with our own tokens, trust and snapshots, and the files that name servers, wherever
    they lie."""
    from everturn.mcp.trust import default_trust_path
    from everturn.tools.files import PROTECTED

    ours = (default_trust_path().parent, state_folder(os.environ))
    named = (Path(path).expanduser() for path in servers)
    return PROTECTED.also(secrets=_beneath(folder, ours), starters=_beneath(folder, named))


def _beneath(folder: Path, paths: Iterable[Path]) -> list[str]:
    """The paths, as patterns, as far as they are beneath a folder."""
    root = folder.resolve()
    found = (path.resolve() for path in paths)
    inside = [path.relative_to(root).as_posix() for path in found if path != root and path.is_relative_to(root)]
    return [escape(path) for path in inside]


def _split(word: str, ending: str) -> tuple[Path, bool]:
    """A folder, and whether the ending is there; a folder whose own name ends so is itself."""
    path = Path(os.path.expanduser(word))
    if word.endswith(ending) and not path.is_dir():
        return Path(os.path.expanduser(word.removesuffix(ending))), True
    return path, False


def _check_apart(reach: Reach, writable: Path | None) -> None:
    """Refuse a shell that could put something else in the place of the folder of the file tools."""
    if reach.files and writable is not None:
        root = _split(reach.files, READ_ONLY)[0].resolve()
        if writable in root.parents:
            raise ConfigError(
                f"--shell {seen(str(writable))}:rw could put another folder in the place of --files {seen(str(root))}; "
                "name the same folder for both, or one that is not around it"
            )


def _check_folder(flag: str, folder: Path) -> None:
    if not folder.is_dir():
        what = "it is not a folder" if folder.exists() else "there is no such folder"
        raise ConfigError(f"{flag} {seen(str(folder))}: {what}; make it first, or name another")


async def _bring_snapshots(folders: dict[str, Path], brought: Brought, tell: Tell) -> None:
    """Snapshots, tried once: what cannot be recorded would fail every turn."""
    from everturn.plugins.snapshots import Snapshots

    name = hashlib.sha256("\0".join(map(str, folders.values())).encode(errors="surrogateescape")).hexdigest()[:16]
    try:
        snapshots = Snapshots(folders, store_dir=state_folder(os.environ) / "snapshots" / name)
        for shadow in snapshots.shadows.values():
            await shadow.record()
    except (ConfigError, CommandRefused, StoreUnavailable, OSError) as error:
        tell(f"no snapshots are taken, so that /revert cannot take back what is done to files: {error}")
        return
    brought.plugins.append(snapshots)
    brought.keepers = snapshots.shadows


def state_folder(environment: Mapping[str, str]) -> Path:
    """Where what is kept for a person between two runs lies."""
    home = environment.get("XDG_STATE_HOME") or str(Path(environment.get("HOME") or "~").expanduser() / ".local/state")
    return Path(home) / "everturn"


# Code ------------------------------------------------------------------------------------------------------------


def _code(tell: Tell) -> list[Any]:
    """What runs code, as far as what it promises holds here."""
    from everturn.sandbox import monty
    from everturn.tools.code import javascript, python

    reasons = {
        "run_python": monty.check().lacks(GUARANTEES),
        "run_javascript": javascript.absent(),
    }
    why = [f"{name} is not offered: {reason}" for name, reason in reasons.items() if reason]
    if len(why) == len(reasons):
        raise ConfigError(f"--code: {'; '.join(why)}")
    for text in why:
        tell(text)
    made = {"run_python": python.run_python, "run_javascript": javascript.run_javascript}
    return [made[name]() for name, reason in reasons.items() if not reason]


def _shell(word: str) -> tuple[Any, Path | None]:
    """A shell; and the folder that it may write to."""
    from everturn.tools.code import shell

    if reason := shell.absent():
        raise ConfigError(f"--shell: run_shell cannot keep here what it promises: {reason}")
    if not word:
        return shell.run_shell(), None
    folder, is_writable = _split(word, WRITABLE)
    _check_folder("--shell", folder)
    return shell.run_shell(folder, writable=is_writable), folder.resolve() if is_writable else None


# Servers ---------------------------------------------------------------------------------------------------------


async def _servers(paths: tuple[str, ...], tell: Tell, person: Person | None) -> McpServers:
    if find_spec("mcp") is None:
        raise ConfigError("--mcp needs mcp: pip install 'everturn[mcp]'")
    from everturn.mcp import McpServers, TrustFile, load_servers
    from everturn.mcp.trust import default_trust_path

    trust, found = TrustFile(default_trust_path()), list["ServerSpec"]()
    for path in paths:
        for spec in load_servers(path):
            if not trust.launch(spec):
                if person is None:
                    raise ConfigError(
                        f"--mcp {path}: {spec.name} is not trusted, and there is nobody to ask; it would run: "
                        f"{seen(spec.line)} (look at it, and trust it: everturn mcp trust {path} {spec.name})"
                    )
                await _trust(spec, trust, tell, person)
            found.append(spec)
    return McpServers(found, trust=trust, tokens=default_trust_path().parent / "mcp-tokens")


async def _trust(spec: ServerSpec, trust: TrustFile, tell: Tell, person: Person) -> None:
    """Ask before a server is started, and trust it with the tools that it then has; or leave it untrusted."""
    known = trust.changes(spec)
    tell(f"{spec.name} is not trusted, or not as it is now; it would {'run' if spec.command else 'be reached at'}:")
    person.show([seen(spec.line)])
    if len(known) > 1:  # the first says what is different, and then come both lines
        person.show([seen(line) for line in known])
    what = "start" if spec.command else "connect to"
    if not await person.agreed(f"{what} {spec.name}, and trust it as it is now?"):
        tell(f"{spec.name} was not started, and its tools are not offered")
        return
    tell(f"looking at the tools of {spec.name}")
    facts, why = await _look(spec)
    if why:
        tell(f"{spec.name} is not trusted, for it cannot be looked at: {seen(why)}")
        return
    changed = [seen(line) for line in trust.changes(spec, facts) if line not in known]
    if changed:
        person.show(changed)
    if changed and not await person.agreed(f"trust {spec.name} with its tools as they are now?"):
        tell(f"{spec.name} is not trusted, and its tools are not offered")
        return
    await asyncio.to_thread(trust.trust, spec, {fact.name: fact.hash for fact in facts}, facts)
    tell(f"{spec.name} is trusted, with its tools: {', '.join(seen(fact.name) for fact in facts) or 'none'}")


async def _look(spec: ServerSpec) -> tuple[list[Any], str]:
    """What a server says of its tools, or why it says nothing."""
    from everturn.mcp import McpServers
    from everturn.mcp.trust import default_trust_path

    servers = McpServers([spec], patience=LOOK, tokens=default_trust_path().parent / "mcp-tokens")
    try:
        await servers.open(lambda origin, tools: None)
        (status,) = servers.status()
        if status.state == "ready":
            return list(servers.facts(spec.name)), ""
        return [], f"{status.state}: {status.reason}" if status.reason else status.state
    finally:
        with suppress(Exception):
            await servers.aclose()
