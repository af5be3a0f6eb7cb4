"""Options of a message: those of its chat, with what the message changes; they are checked before it is admitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from everturn.agents.definition import AgentDefinition
from everturn.agents.session_agent import options_of_agent
from everturn.base_app import BaseApp
from everturn.chat.validation import check_clients, check_manual, check_tools, validate_options, validate_params
from everturn.core.commands import ComparedAnswer
from everturn.core.options import TurnOptions
from everturn.tools.registry import ToolRegistry
from everturn.turn.request import merge_params


class SendOptions(NamedTuple):
    """The options of a message; with a `base`, another agent that has the session by then takes its turn.

    See `core.commands.Send`.
    """

    options: TurnOptions
    base: TurnOptions | None = None
    chosen: tuple[str, ...] = ()
    compared: tuple[ComparedAnswer, ...] = ()


class OptionsResolver:
    """Resolves the options of the messages of a chat: the defaults of the chat, and what a message changes."""

    def __init__(self, app: BaseApp, options: TurnOptions, agent: str = "", base: TurnOptions | None = None) -> None:
        self._app = app
        self._agent = agent
        self.defaults = self._checked(options)
        self._base = self.defaults if base is None else self._checked(base)  # without what the agent contributes

    def resolve(self, agent: AgentDefinition[Any] | str | None = None, **changed: Any) -> SendOptions:
        """The options of a message that is for an agent, or changes some of the chat's options; None changes nothing.

        Raises:
            ConfigError: an option is not valid, or the app does not know the agent.
        """
        overrides = {name: value for name, value in changed.items() if value is not None}
        own = self.defaults
        if agent is None and not overrides and own.tools is None and not own.manual and not own.clients:
            # Checked when this chat was made, and it names no tools, which may have changed.
            return SendOptions(own, self._base) if self._agent else SendOptions(own)
        if "model" in overrides:
            overrides["model"] = self._app.add_model(overrides["model"])
        if agent is not None:
            base, chosen = self._with_overrides(overrides)
            return SendOptions(self._checked(options_of_agent(self._app, self.agent_name(agent), base, chosen)))
        options = self._merged(dict(overrides))
        if not self._agent:
            return SendOptions(options)
        # The values as they were checked; client tools and metadata are those of any agent.
        checked = {name: getattr(options, name) for name in overrides if name not in ("params", "clients", "metadata")}
        base, chosen = self._with_overrides({**checked, "params": overrides.get("params")})
        return SendOptions(options, base, chosen)

    def agent_name(self, agent: AgentDefinition[Any] | str) -> str:
        """The name of an agent of this app.

        Raises:
            ConfigError: the app does not know it; the text lists those it knows.
        """
        if isinstance(agent, AgentDefinition):
            return self._app.add_agent(agent)
        return self._app.binding(agent).name

    def _with_overrides(self, overrides: Mapping[str, Any]) -> tuple[TurnOptions, tuple[str, ...]]:
        """The chat's own options with what was chosen for a message, and the names of that."""
        changed = {name: value for name, value in overrides.items() if value is not None}
        if "params" in changed:
            changed["params"] = merge_params((self._base.params or {}, validate_params(changed["params"])))
        return (replace(self._base, **changed) if changed else self._base), tuple(sorted(changed))

    def _merged(self, overrides: dict[str, Any]) -> TurnOptions:
        fields = {name: getattr(self.defaults, name) for name in TurnOptions.__struct_fields__}
        if "model" in overrides and self._app.modality_of(overrides["model"]) != "chat":
            fields["params"] = None  # the chat's parameters are for chat models
        if "params" in overrides:
            overrides["params"] = merge_params((fields["params"] or {}, validate_params(overrides["params"])))
        return self._checked(TurnOptions(**{**fields, **overrides}))

    def _checked(self, options: TurnOptions) -> TurnOptions:
        """Validate options, and check that the tools they name exist."""
        registry = self._app.registry_of(getattr(options, "agent", ""))
        if getattr(options, "tools", None) is not None:
            options = replace(options, tools=self._check_tools(options.tools, registry))
        options = validate_options(options)
        if not self._app.sources:  # otherwise a source may still publish them
            check_manual(options.manual, registry.tools)
        check_clients(options.clients, registry.tools)
        return options

    def _check_tools(self, patterns: Any, registry: ToolRegistry) -> tuple[str, ...] | None:
        """Check that tools exist: those of the agent that begins, of the app, or of another agent that may take over."""
        if not self._agent:
            return registry.check_selection(patterns)
        others = [self._app.registry, *(self._app.binding(name).registry for name in self._app.agents)]
        return check_tools(patterns, self._app.binding(self._agent).registry, others)
