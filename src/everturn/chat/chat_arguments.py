"""Arguments of `Chat(…)`: validates them, and makes an app for a chat that was given none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from everturn.agents.definition import AgentDefinition
from everturn.base_app import BaseApp
from everturn.core.hooks import HOOKS
from everturn.core.options import Prompt, TurnOptions
from everturn.core.ports import Model
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import TurnStore
from everturn.errors import ConfigError
from everturn.running.drive_setup import TurnSettings
from everturn.tools.groups import ToolGroup
from everturn.tools.registry import ToolItem, ToolRegistry

# Arguments that a chat with a runtime cannot take, and where to pass them instead.
APP_ARGUMENTS: Final = {
    "tools": "App(tools=…); a turn has some of them with send(tools=[names])",
    "plugins": "App(plugins=…)",
    "system": "options=TurnOptions(system=…) for this chat, or App(settings=Settings(prompt=Prompt(agent=…))) for all",
    "store": "App(store=…)",
    "settings": "App(settings=…)",
    "rules": "App(rules=…), or options=TurnOptions(rules=(…,)) for this chat",
}


class ChatSetup(NamedTuple):
    """What the arguments of a chat come to: its app, its agent and its options."""

    app: BaseApp
    options: TurnOptions
    agent: str = ""  # the agent that begins; "": the app's model
    base: TurnOptions | None = None  # with an agent: the options without what the agent contributes


def resolve_arguments(
    model: Model | str | AgentDefinition[Any],
    *,
    tools: Iterable[ToolItem] | ToolRegistry,
    plugins: Iterable[object],
    system: str,
    store: TurnStore | str | None,
    options: TurnOptions | None,
    settings: TurnSettings | None,
    rules: Iterable[Rule] | str | Path,
    app: BaseApp | None,
) -> ChatSetup:
    """Validate the arguments of a chat; without an `app`, make one of them.

    Raises:
        ConfigError: arguments are of the wrong type, or cannot be used together.
    """
    if (
        hasattr(tools, "spec")
        or callable(tools)
        or isinstance(tools, ToolGroup)
        or any(hasattr(plugins, hook) for hook in HOOKS)
    ):
        raise ConfigError("tools and plugins must be lists: tools=[search], plugins=[Timing()]")
    tools, plugins = tools if isinstance(tools, ToolRegistry) else list(tools), list(plugins)
    if isinstance(options, dict) or isinstance(settings, dict):
        raise ConfigError("options must be a TurnOptions(...), settings a Settings(...)")
    arguments = {"tools": tools, "plugins": plugins, "system": system, "rules": rules}
    if isinstance(model, AgentDefinition):
        if any(arguments.values()):
            raise ConfigError("an agent has its own instructions, tools, plugins and rules; pass them to Agent(…)")
        app = app or BaseApp(agents=[model], store=store, settings=settings)
        agent, base = app.add_agent(model), options or TurnOptions()
        return ChatSetup(app, app.agent_options(agent, base), agent, base)
    if app is not None:
        _refuse_with_app({**arguments, "store": store is not None, "settings": settings is not None})
        return ChatSetup(app, replace(options or TurnOptions(), model=app.add_model(model)))
    if model is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise ConfigError("None is not a model; pass a model or an agent: Chat('openai:gpt-5.2'), Chat(Agent(…))")
    if settings is not None and system:
        raise ConfigError("pass `system`, or `settings` with a prompt, not both")
    settings = settings or TurnSettings(prompt=Prompt(agent=system))
    app = BaseApp(model, tools=tools, plugins=plugins, store=store, settings=settings, rules=rules)
    return ChatSetup(app, options or TurnOptions())


def _refuse_with_app(arguments: Mapping[str, object]) -> None:
    """Refuse arguments that the runtime already has.

    Raises:
        ConfigError: the text says where to pass each of them instead.
    """
    if problems := [f"{name}: {instead}" for name, instead in APP_ARGUMENTS.items() if arguments[name]]:
        raise ConfigError(f"Chat(app=…) conflicts with other arguments: {'; '.join(problems)}")
