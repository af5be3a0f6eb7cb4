"""Folders that a server has open: each has an agent of its own, which is made when a terminal opens the folder.

A session belongs to the folder of its agent. Two terminals in two folders share one server, so the server makes the
tools of either folder; a session whose folder nobody has open waits until somebody opens it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from everturn import api
from everturn.access.context.agents import AgentSpec
from everturn.access.context.server_context import ServerContext
from everturn.config.extensions.discovery import Extensions
from everturn.config.folder.agent import make_folder_agent
from everturn.config.folder.extension_tools import fingerprint, list_commands
from everturn.config.folder.project import Project, find_project
from everturn.config.folder.trust import FolderTrust
from everturn.config.load import LoadedConfig
from everturn.core.options import PERMISSION_MODES, TurnOptions
from everturn.errors import ConfigError, Forbidden

UNTRUSTED = "{folder} is not trusted yet; start `everturn` in it, which asks once"


class FolderAgents:
    """Opens folders in a server."""

    def __init__(self, context: ServerContext, loaded: LoadedConfig, model: str, environ: Mapping[str, str]) -> None:
        self._context, self._loaded, self._model, self._environ = context, loaded, model, environ
        self._trust = FolderTrust(environ)
        self._opened: dict[str, api.FolderView] = {}
        self._fingerprints: dict[str, object] = {}  # by root: what the agent was made of
        self._lock = asyncio.Lock()

    async def open(self, folder: str) -> api.FolderView:
        """Open the project around a folder: make its agent, or return the one there is if its files are the same.

        Raises:
            ConfigError: the folder cannot be used.
            Forbidden: nobody has trusted it.
        """
        project = await asyncio.to_thread(find_project, folder)
        if not await asyncio.to_thread(self._trust.is_trusted, project):
            raise Forbidden(UNTRUSTED.format(folder=project.label))
        if project.root == project.root.parent:
            raise ConfigError("the assistant does not work in /; `cd` to a folder below it")
        async with self._lock:
            key = str(project.root)
            extensions = await asyncio.to_thread(self._trust.extensions, project)
            current = fingerprint(extensions)
            if self._fingerprints.get(key) != current:
                self._opened[key] = await self._open(project)
                self._fingerprints[key] = current
            return replace(self._opened[key], **_describe(extensions))

    async def _open(self, project: Project) -> api.FolderView:
        app, agents = self._context.app, self._context.agents
        definition, notes = await asyncio.to_thread(
            make_folder_agent, project, self._loaded, self._model, self._environ, app, self._trust
        )
        await app.put_agent(definition)
        model = definition.model if isinstance(definition.model, str) else ""
        options = definition.options(model, TurnOptions(folder=str(project.root)))
        first = agents.all[0]
        options = replace(options, model=model or first.options.model)
        agents.add(
            AgentSpec(
                project.agent,
                options,
                definition.description,
                first.models,
                PERMISSION_MODES,
                any_model=True,
                definition=definition,
            )
        )
        return api.FolderView(
            agent=project.agent,
            root=str(project.root),
            label=project.label,
            mode=self._loaded.config.assistant.mode,
            notes=notes,
        )


def _describe(extensions: Extensions) -> dict[str, object]:
    """Return what a terminal shows of the extensions of a folder."""
    names = {kind: [found.name for found in extensions.found if found.kind == kind] for kind in ("skill", "agent")}
    return {"commands": list_commands(extensions), "skills": names["skill"], "subagents": names["agent"]}
