"""Completion: the commands that can be typed, their arguments, and the files after an `@`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everturn.terminal.tui.command_host import CommandHost
from everturn.terminal.tui.folder_commands import describe_commands, list_files, match_files
from everturn.terminal.tui.prompt_commands import describe_prompts
from everturn.terminal.tui.texts.app import get_app_texts


class Completion:
    """Everything that the input can complete."""

    def __init__(self, app: CommandHost) -> None:
        self._app = app
        self._files: list[str] = []

    def slash_commands(self) -> dict[str, str]:
        """Return the commands with their descriptions; a prompt or a file of the folder does not hide a command."""
        self._refresh_offers()
        slash = get_app_texts(self._app.language).slash
        known = {**slash, **_new(describe_prompts(self._app), slash)}
        known |= _new(describe_commands(self._app.folder), known)
        return {**known, **_new(self._app.mcp_offers.describe_prompts(), known)}

    def _refresh_offers(self) -> None:
        if self._app.mcp_offers.is_old():
            self._app.run_worker(self._app.mcp_offers.refresh(), exit_on_error=False)

    def values(self, word: str) -> Sequence[str]:
        """Return the possible arguments of a command, for completion."""
        if word == "/model":
            return self.models()
        if word == "/prompt":
            return [prompt.name for prompt in self._app.prompts]
        return [agent.name for agent in self._app.agents.agents] if word == "/agent" else ()

    def files(self, typed: str) -> list[str]:
        """Return the files of the folder, and the resources of MCP servers, that match what was typed after an `@`."""
        folder = self._app.folder
        self._refresh_offers()
        resources = self._app.mcp_offers.match_resources(typed)
        if folder is None:
            return resources
        if not typed or not self._files:  # listed anew with each `@`
            self._files = list_files(folder.root)
        return (
            [*resources, *match_files(self._files, typed)]
            if ":" in typed
            else [*match_files(self._files, typed), *resources]
        )

    def models(self) -> list[str]:
        """Return the models that the agent of this session may use, its own first."""
        name = self._app.current_agent_and_model()[0]
        agent = next((candidate for candidate in self._app.agents.agents if candidate.name == name), None)
        return [] if agent is None else list(dict.fromkeys([agent.model, *agent.models]))


def _new(added: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    return {name: about for name, about in added.items() if name not in known}
