"""Agent of a folder: the first configured agent, with the files and a shell of the folder, and file snapshots."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from everturn.agents.definition import AgentDefinition
from everturn.base_app import BaseApp
from everturn.config.agents import AgentExtras, agent_tables, make_agent
from everturn.config.folder.extension_tools import make_extensions
from everturn.config.folder.git_access import GIT_READS, GIT_WRITES, make_git_access
from everturn.config.folder.project import Project
from everturn.config.folder.prompt import ASSISTANT, FolderInstructions
from everturn.config.folder.trust import FolderTrust
from everturn.config.load import LoadedConfig
from everturn.config.schema import AgentTable, AssistantTable
from everturn.config.tools import data_folder, state_folder
from everturn.core.ports import Model
from everturn.core.rules.globs import escape_glob
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError, EverturnError
from everturn.running.permissions import READ_ONLY_PROGRAMS
from everturn.tools.todo_tool import todos

NO_SHELL: Final = "there is no shell: {why}"
UNPROVEN_SHELL: Final = "the sandbox of the shell is not shown to work here, so every command asks: {why}"
NO_SNAPSHOTS: Final = "file changes cannot be undone here: {why}"
NO_SEARCH: Final = "there is no web search (assistant.search): {why}"
NETWORK: Final = (
    "network: pages of {domains} are read without asking; what is in this folder could be sent there "
    "(assistant.network in the configuration)"
)


class FolderTools(Struct):
    """The tools and plugins of a folder, and notes about what is missing or risky."""

    tools: list[Any] = field(default_factory=list[Any])
    plugins: list[Any] = field(default_factory=list[Any])
    rules: list[Rule] = field(default_factory=list[Rule])
    notes: list[str] = field(default_factory=list[str])


def without_own_folders(loaded: LoadedConfig) -> LoadedConfig:
    """Return a configuration without its tools for files and a shell: those of the folder are used instead."""
    own: dict[str, Any] = {"files": "", "virtual_files": False, "shell": False}
    return replace(loaded, config=replace(loaded.config, tools=replace(loaded.config.tools, **own)))


def make_folder_agent(
    project: Project,
    loaded: LoadedConfig,
    model: Model | str,
    environ: Mapping[str, str],
    app: BaseApp,
    trust: FolderTrust,
) -> tuple[AgentDefinition[Any], list[str]]:
    """Make the agent of a folder; the notes are for the person. It probes the sandbox, so it blocks for a second.

    Raises:
        ConfigError: the folder or the configuration cannot be used.
    """
    settings = loaded.config.assistant
    folder_tools = make_folder_tools(project, settings, loaded, environ)
    tables = agent_tables(loaded)
    first = next(iter(tables))
    added = make_extensions(project, trust, environ, folder_tools.tools, folder_tools.rules)
    extras = AgentExtras(
        name=project.agent,
        description=project.label,
        instructions=(ASSISTANT, FolderInstructions(project, trust, environ, settings.git, added.skills)),
        tools=(*folder_tools.tools, *added.tools),
        plugins=tuple(folder_tools.plugins),
        rules=tuple(folder_tools.rules),
        max_steps=_step_limit(settings, tables[first]),
    )
    return make_agent(loaded, first, model, environ, app, extras), [*folder_tools.notes, *added.notes]


def _step_limit(settings: AssistantTable, table: AgentTable) -> int:
    """The limit of the assistant, or that of its agent's table if it sets a higher one."""
    own = table.max_steps if table.max_steps != AgentTable().max_steps else 0
    return max(settings.max_steps, own)


def make_folder_tools(
    project: Project, settings: AssistantTable, loaded: LoadedConfig, environ: Mapping[str, str]
) -> FolderTools:
    """Make the tools of a folder. What this machine cannot provide is left out, with a note.

    Raises:
        ConfigError: this system cannot open files below a folder safely.
    """
    made = FolderTools()
    _add_files(project, loaded, environ, made)
    _add_shell(project, settings, made)
    _add_snapshots(project, environ, made)
    made.tools.append(todos())
    if settings.network:
        from everturn.tools.web import fetch_url

        made.tools.append(fetch_url(approval="ask"))
        domains = [domain for domain in settings.network if domain != "*"]
        for domain in domains:
            pattern = f"https://{domain.lower()}/**"
            made.rules.append(Rule("fetch_url", "allow", {"url": pattern}, source="assistant.network"))
        if domains:
            made.notes.append(NETWORK.format(domains=", ".join(domains)))
    _add_search(settings, environ, made)
    return made


def _add_search(settings: AssistantTable, environ: Mapping[str, str], made: FolderTools) -> None:
    if not settings.search:
        return
    from everturn.config.key_store import KeyStore
    from everturn.tools.web.search import KEYS, web_search

    key = KeyStore(environ).find(KEYS[settings.search]) if settings.search in KEYS else ""
    try:
        made.tools.append(web_search(settings.search, url=settings.search_url, key=key, approval="ask"))
    except ConfigError as error:
        made.notes.append(NO_SEARCH.format(why=error))


def _add_files(project: Project, loaded: LoadedConfig, environ: Mapping[str, str], made: FolderTools) -> None:
    from everturn.tools.files import PROTECTED, files

    own_paths = (*(Path(file) for file in loaded.files), data_folder(environ), state_folder(environ))
    inside = [
        path.resolve().relative_to(project.root) for path in own_paths if path.resolve().is_relative_to(project.root)
    ]
    protect = PROTECTED.adding(secrets=[escape_glob(path.as_posix()) for path in inside if path.parts])
    made.tools.append(files(project.root, protect=protect, approval="ask").enabled())


def _add_shell(project: Project, settings: AssistantTable, made: FolderTools) -> None:
    from everturn.tools.code import shell

    if not settings.shell:
        return
    unproven = shell.unproven_guarantees()
    if reason := shell.why_shell_unavailable(unproven):
        made.notes.append(NO_SHELL.format(why=reason))
        return
    can_commit = project.is_git and settings.git != "off" and (project.root / ".git").is_dir()
    try:
        tool = shell.run_shell(
            project.root,
            writable=True,
            approval="ask",
            allow_degraded=unproven,
            git=make_git_access(project) if can_commit else None,
        )
    except EverturnError as error:
        made.notes.append(NO_SHELL.format(why=error))
        return
    if unproven:
        made.notes.append(UNPROVEN_SHELL.format(why=shell.why_shell_unavailable()))
    made.tools.append(tool)
    made.rules += shell_rules(tool.spec.name, asks_for_git=can_commit and settings.git == "ask")


def shell_rules(tool: str, *, asks_for_git: bool) -> list[Rule]:
    """Return the rules of the shell: commands that only print are allowed; those that change the repository may ask."""
    reads = (*sorted(READ_ONLY_PROGRAMS), *(f"git {word}" for word in GIT_READS))
    rules = [Rule(tool, "allow", {"command": f"{command} *"}, source="read-only commands") for command in reads]
    if asks_for_git:
        rules += [
            Rule(tool, "ask", {"command": f"git {word}{rest}"}, source="assistant.git")
            for word in GIT_WRITES
            for rest in ("", " *")
        ]
    return rules


def _add_snapshots(project: Project, environ: Mapping[str, str], made: FolderTools) -> None:
    if shutil.which("git") is None:
        made.notes.append(NO_SNAPSHOTS.format(why="git is not installed"))
        return
    from everturn.plugins.file_snapshots import FileSnapshots

    store = state_folder(environ) / "snapshots" / hashlib.sha256(os.fsencode(project.root)).hexdigest()[:16]
    try:
        if store.is_relative_to(project.root):
            raise ConfigError("the folder contains the folder of the snapshots")
        with suppress(OSError):
            store.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(store, os.W_OK | os.X_OK):
            raise ConfigError(f"{store} cannot be written; set XDG_STATE_HOME to a folder that can be")
        made.plugins.append(FileSnapshots({"work": project.root}, store_dir=store))
    except (EverturnError, OSError) as error:
        made.notes.append(NO_SNAPSHOTS.format(why=error))
