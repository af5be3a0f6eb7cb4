"""Configured tools: creates the tools, plugins and tool sources of `[tools]`, `[mcp]` and `plugins`.

Naming a module runs it: the author of the configuration trusts it as any program. All tenants share these tools.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from everturn.config.load import LoadedConfig
from everturn.config.modules import load_module
from everturn.config.plugins import create_plugins
from everturn.config.schema import FilesTable, MemoryTable, ShellTable
from everturn.core.requests import ToolSpec
from everturn.core.rules.globs import escape_glob
from everturn.core.sandbox import GUARANTEES
from everturn.errors import ConfigError
from everturn.tools.groups import ToolGroup

log = logging.getLogger(__name__)
READ_ONLY, WRITABLE = ":ro", ":rw"


class ConfiguredTools(Struct):
    """The tools and plugins of a configuration."""

    tools: list[Any] = field(default_factory=list[Any])
    plugins: list[Any] = field(default_factory=list[Any])


def create_tools(loaded: LoadedConfig, environ: Mapping[str, str], is_personal: bool = False) -> ConfiguredTools:
    """Create everything that is configured. It inspects this machine, so it takes a moment.

    For a single user (`is_personal`: a terminal, a run), the shell asks unless a rule or a grant allows the command. A
    server has several users: there it always requires approval, unless `tools.shell.approval` says otherwise.

    Raises:
        ConfigError: something is not available here.
    """
    configured, table = ConfiguredTools(), loaded.config.tools
    for at, name in enumerate(table.python):
        where = loaded.tree.where(("tools", "python", at))
        try:
            configured.tools += load_tools(name, Path(where.source).resolve().parent if where.line else None)
        except ConfigError as error:
            raise ConfigError(f"{where}: tools.python: {error}") from None
    folders = _files(loaded, configured, environ)
    if table.code:
        configured.tools += _code()
    if table.shell:
        _shell(table.shell, folders, configured, is_personal)
    if table.web:
        from everturn.tools.web import fetch_url

        configured.tools.append(fetch_url())
    if table.todos:
        from everturn.tools.todo_tool import todos

        configured.tools.append(todos())
    if table.memory:
        from everturn.tools.memory_tools import memory

        chosen = table.memory if isinstance(table.memory, MemoryTable) else MemoryTable()
        configured.tools.append(memory(approval=chosen.approval, read_only=chosen.read_only).enabled())
    if table.recall:
        from everturn.tools.recall_tools import recall

        configured.tools.append(recall(sessions=table.recall == "sessions").enabled())
    if folders:
        _snapshots(folders, configured, environ)
    if loaded.config.mcp:
        configured.tools.append(_servers(loaded, environ, is_personal))
    configured.plugins += create_plugins(loaded, environ)
    return configured


def load_tools(word: str, folder: Path | None) -> list[Any]:
    """Return the tools of a module or file, or (after a colon) one of them; a file is relative to a folder.

    Raises:
        ConfigError: there is none.
    """
    place, colon, name = word.rpartition(":")
    if not colon or not name.isidentifier():
        place, name = word, ""
    tools = {key: thing for key, thing in vars(load_module(place, folder)).items() if _is_tool(thing)}
    if name and name not in tools:
        raise ConfigError(f"{name!r} is not a tool in {place}; there are: {', '.join(tools) or 'none'}")
    if not tools:
        raise ConfigError(f"there is no tool in {place}; put @tool above a function")
    unique: list[Any] = []
    for thing in [tools[name]] if name else tools.values():
        if not any(thing is other for other in unique):
            unique.append(thing)
    return unique


def _is_tool(thing: Any) -> bool:
    if isinstance(thing, ToolGroup):
        return True
    try:
        return not isinstance(thing, type) and isinstance(getattr(thing, "spec", None), ToolSpec)
    except Exception:  # a property of an unrelated object may raise anything
        return False


def _files(loaded: LoadedConfig, brought: ConfiguredTools, environ: Mapping[str, str]) -> dict[str, Path]:
    """Add the file tools; return the folder that they write to, by the name of its root."""
    from everturn.tools.files import PROTECTED, files, virtual_files

    table = loaded.config.tools
    if table.virtual_files:
        brought.tools.append(virtual_files().enabled())
    if not table.files:
        return {}
    chosen = table.files if isinstance(table.files, FilesTable) else FilesTable(table.files)
    folder, is_read_only = _folder("tools.files", chosen.folder, READ_ONLY)
    own_paths = (*(Path(file) for file in loaded.files), data_folder(environ), state_folder(environ))
    inside = [path.resolve().relative_to(folder) for path in own_paths if path.resolve().is_relative_to(folder)]
    kept = PROTECTED.adding(secrets=[escape_glob(path.as_posix()) for path in inside if path.parts])
    approval = chosen.approval
    brought.tools.append(files(folder, read_only=is_read_only, protect=kept, approval=approval).enabled())
    return {} if is_read_only else {"work": folder}


def _folder(key: str, word: str, ending: str) -> tuple[Path, bool]:
    """Return a folder, and whether the suffix is there."""
    has_ending = word.endswith(ending) and not os.path.isdir(word)
    path = Path(word.removesuffix(ending) if has_ending else word).expanduser()
    if not path.is_absolute():
        raise ConfigError(f"{key}: the path of a folder must be absolute")
    if not path.is_dir():
        raise ConfigError(f"{key}: there is no folder {path}; create it first, or name another")
    return path.resolve(), has_ending


def _code() -> list[Any]:
    from everturn.sandbox import monty
    from everturn.tools.code import javascript, python

    reasons = {
        "run_python": monty.check().explain_missing(GUARANTEES),
        "run_javascript": javascript.why_javascript_unavailable(),
    }
    factories = {"run_python": python.run_python, "run_javascript": javascript.run_javascript}
    if all(reasons.values()):
        raise ConfigError(f"tools.code: {'; '.join(f'{name} cannot be had: {text}' for name, text in reasons.items())}")
    for name, text in reasons.items():
        if text:
            log.warning("%s is not offered: %s", name, text)
    return [factories[name]() for name, text in reasons.items() if not text]


def _shell(
    setting: str | bool | ShellTable, folders: dict[str, Path], brought: ConfiguredTools, is_personal: bool
) -> None:
    from everturn.tools.code import shell

    if reason := shell.why_shell_unavailable():
        raise ConfigError(f"tools.shell: run_shell cannot guarantee its limits on this machine: {reason}")
    chosen = setting if isinstance(setting, ShellTable) else ShellTable("" if setting is True else str(setting))
    approval = chosen.approval or ("ask" if is_personal else "always")
    if not chosen.folder:
        brought.tools.append(shell.run_shell(approval=approval))
        return
    folder, is_writable = _folder("tools.shell", chosen.folder, WRITABLE)
    if is_writable and any(folder in other.parents for other in folders.values()):
        raise ConfigError(
            f"tools.shell: {folder} contains the folder of tools.files, so commands could replace that folder"
        )
    brought.tools.append(shell.run_shell(folder, writable=is_writable, approval=approval))
    if is_writable and not any(folder.is_relative_to(other) for other in folders.values()):
        folders["shell"] = folder


def _snapshots(folders: dict[str, Path], brought: ConfiguredTools, environ: Mapping[str, str]) -> None:
    if shutil.which("git") is None:
        log.warning("no snapshots are taken, so files cannot be reverted: git is not installed")
        return
    from everturn.plugins.file_snapshots import FileSnapshots

    name = hashlib.sha256("\0".join(map(str, folders.values())).encode(errors="surrogateescape")).hexdigest()[:16]
    brought.plugins.append(FileSnapshots(folders, store_dir=state_folder(environ) / "snapshots" / name))


def _servers(loaded: LoadedConfig, environ: Mapping[str, str], is_personal: bool) -> Any:
    """Create the operator's MCP servers: naming them in this file means trusting them."""
    if find_spec("mcp") is None:
        raise ConfigError("[mcp] needs the mcp library: pip install 'everturn[mcp]'")
    from everturn.mcp import McpServers
    from everturn.mcp.config import ServerSpec, read_servers
    from everturn.mcp.login_store import DeferredLogins
    from everturn.mcp.servers import QUICK_START_TIMEOUT

    specs_by_name: dict[str, ServerSpec | ConfigError] = {}
    for file in loaded.files:
        if any(place.source == file for path, place in loaded.tree.places.items() if path[0] == "mcp"):
            specs_by_name |= read_servers(file, environ)
    specs: list[ServerSpec] = []
    for name, spec in specs_by_name.items():
        if loaded.config.mcp[name].disabled:  # a later file may disable a server of an earlier one
            continue
        if isinstance(spec, ConfigError):
            raise ConfigError(f"{loaded.tree.where(('mcp', name))}: {spec}")
        if spec.auth == "oauth" and not spec.login:  # a server has several users, a terminal has one
            spec = replace(spec, login="shared" if is_personal else "user")
        specs.append(spec)
    tokens = state_folder(environ) / "mcp-tokens"
    return McpServers(
        specs, timeout=QUICK_START_TIMEOUT, tokens=tokens, logins=None if is_personal else DeferredLogins()
    )


def stored_servers(environ: Mapping[str, str]) -> Any:
    """Create the source of the MCP servers that administrators add later; None: MCP is not installed."""
    if find_spec("mcp") is None:
        return None
    from everturn.mcp import McpServers
    from everturn.mcp.login_store import DeferredLogins
    from everturn.mcp.servers import QUICK_START_TIMEOUT
    from everturn.mcp.trust import StoredTrust

    folder = state_folder(environ) / "mcp-tokens" / "settings"
    return McpServers((), trust=StoredTrust(), timeout=QUICK_START_TIMEOUT, tokens=folder, logins=DeferredLogins())


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for state that is kept between runs."""
    return _home(environ, "XDG_STATE_HOME", ".local/state")


def data_folder(environ: Mapping[str, str]) -> Path:
    """Return the default folder for sessions."""
    return _home(environ, "XDG_DATA_HOME", ".local/share")


def _home(environ: Mapping[str, str], variable: str, usual: str) -> Path:
    value = environ.get(variable, "")
    if os.path.isabs(value):
        return Path(value) / "everturn"
    try:
        home = Path(environ.get("HOME") or "~").expanduser()
    except RuntimeError:  # a numeric user without a home, as in containers
        raise ConfigError(
            "there is no place for the store because HOME is not set; set HOME, or name a store with --store"
        ) from None
    return home / usual / "everturn"
