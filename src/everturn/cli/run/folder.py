"""Folder of `everturn run`: the project that its session belongs to, and the agent that works there."""

from __future__ import annotations

import argparse
import os
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.agents.definition import AgentDefinition
from everturn.base_app import BaseApp
from everturn.config.agents import AgentExtras, agent_tables, make_agent
from everturn.config.folder.agent import make_folder_agent, without_own_folders
from everturn.config.folder.project import Project, find_project
from everturn.config.folder.trust import FolderTrust
from everturn.config.load import LoadedConfig
from everturn.core.options import PermissionMode
from everturn.core.ports import Model
from everturn.errors import ConfigError

MODES: Final[dict[str, PermissionMode]] = {"": "", "plan": "plan", "ask": "ask", "auto-edit": "auto_edit"}
"""--mode → the permission mode of the turn."""


class RunFolder(Struct, frozen=True):
    """The project of a run. With `has_tools`, its agent has the files and the shell of the folder."""

    project: Project
    has_tools: bool


def find_run_folder(options: argparse.Namespace, loaded: LoadedConfig) -> RunFolder | None:
    """Return the project around the current folder; None: the session belongs to the agent of --agent.

    The tools of the folder are offered if it is trusted, and if no option says otherwise. Nobody is asked.

    Raises:
        ConfigError: the file of trusted folders is damaged.
    """
    if options.agent:
        return None
    try:
        project = find_project(os.getcwd())
    except (ConfigError, OSError):  # such as a folder that was deleted
        return None
    is_replaced = options.no_folder or options.files or options.virtual_files or options.shell is not None
    is_wanted = loaded.config.assistant.folder and not is_replaced and project.breadth != "root"
    return RunFolder(project, is_wanted and FolderTrust().is_trusted(project))


def apply_run_options(
    loaded: LoadedConfig, agent: str, folder: RunFolder | None, schema: dict[str, Any] | None
) -> LoadedConfig:
    """Apply the output schema, and the tools of a folder that replace those of the configuration."""
    tables = dict(agent_tables(loaded))
    if schema is not None:
        tables[agent] = replace(tables[agent], output_type=schema)
    if folder is not None and folder.has_tools:
        loaded = without_own_folders(loaded)
    return replace(loaded, config=replace(loaded.config, agents=tables))


def make_run_agent(
    folder: RunFolder, loaded: LoadedConfig, model: Model, app: BaseApp
) -> tuple[AgentDefinition[Any], list[str]]:
    """Make the agent of the folder: the first configured one, with the tools of the folder if it has them.

    Raises:
        ConfigError: the folder or the configuration cannot be used.
    """
    tables = agent_tables(loaded)
    first = next(iter(tables))
    config = replace(loaded.config, agents={**tables, first: replace(tables[first], model="")})  # the given one counts
    loaded = replace(loaded, config=config)
    if folder.has_tools:
        return make_folder_agent(folder.project, loaded, model, os.environ, app, FolderTrust())
    extras = AgentExtras(name=folder.project.agent, description=f"works in {folder.project.label}")
    return make_agent(loaded, first, model, os.environ, app, extras), []
