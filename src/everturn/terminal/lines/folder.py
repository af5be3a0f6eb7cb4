"""Folder of the line-mode chat: the agent that works there, and the slash commands that its files define."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from everturn import api
from everturn.agents.definition import AgentDefinition
from everturn.base_app import BaseApp
from everturn.config.extensions.slash_commands import expand_command
from everturn.core.options import TurnOptions


class LineFolder(Struct, frozen=True):
    """A folder as line mode uses it. `options` are those of its turns, `notes` are for the person."""

    definition: AgentDefinition[Any]
    options: TurnOptions
    label: str
    notes: tuple[str, ...] = ()
    commands: tuple[api.FolderCommand, ...] = ()

    def expand(self, word: str, arguments: str) -> str | None:
        """Return what a slash command of the folder sends; None if there is no such command."""
        found = next((command for command in self.commands if f"/{command.name}" == word), None)
        return None if found is None else expand_command(found.text, arguments)


OpenLineFolder = Callable[[BaseApp], LineFolder]
"""Makes the agent of the folder for an app; it probes the sandbox, so it blocks for a second."""
