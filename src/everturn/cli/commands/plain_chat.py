"""Plain chat: `everturn chat` line by line, in the scrollback of the terminal or in a pipe."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from everturn.cli.output import is_terminal, print_error, wants_color
from everturn.core.canonical_json import replace_surrogates
from everturn.core.options import Budget, TurnOptions

if TYPE_CHECKING:
    from everturn.base_app import BaseApp
    from everturn.config.load import LoadedConfig
    from everturn.terminal.lines.folder import OpenLineFolder
    from everturn.terminal.lines.turn_view import TextRenderer
    from everturn.terminal.tui.folder import FolderStart

NO_STORE: Final = "--session names a conversation in a --store; say which, such as --store talks.db"


def chat(options: argparse.Namespace) -> int:
    """Run the chat with the configured agent and the additions of the command line, until the user leaves.

    Raises:
        ConfigError: there is no such model, file, folder, tool or rule.
        StoreBusy: another process has the store.
        StoreUnavailable: the store does not answer.
    """
    if sys.stdin is None:  # `<&-`
        return print_error("there is nothing to read: the input is closed", 2)
    if options.session and not options.store:
        return print_error(NO_STORE, 2)
    from everturn.cli.config_options import config_file
    from everturn.cli.run.local import make_agents_for, make_model_finder, resolve_agent
    from everturn.config.demo_tools import demo_tools
    from everturn.config.folder.agent import without_own_folders
    from everturn.config.load import load_config
    from everturn.config.tools import create_tools
    from everturn.config.work_folder import work_folder
    from everturn.models.offline import OFFLINE
    from everturn.permissions.rules_file import load_rules
    from everturn.terminal.lines import chat_loop

    loaded = load_config(config_file(options))
    start = getattr(options, "start", None)
    if start is not None:  # the tools of the folder are used instead
        loaded = without_own_folders(loaded)
    agent, name = resolve_agent(loaded, "", replace_surrogates(options.model or ""))
    find_model = make_model_finder(loaded, name, options.base_url)
    agents = make_agents_for(loaded, agent, find_model(name), find_model)
    spec = agents[0].options("", TurnOptions(folder=work_folder()))
    configured = create_tools(loaded, os.environ, True)
    chat_options = chat_loop.ChatOptions(
        name,
        wants_color(options),
        is_terminal(sys.stdin) and is_terminal(sys.stdout),
        tuple(options.attach),
        options.save,
        options.store,
        replace_surrogates(options.session),
        tuple(options.tools),
        _turn_options(options, spec, chat_loop.parse_budget),
        chat_loop.LocalToolOptions(
            options.files,
            options.virtual_files,
            options.code,
            options.shell,
            options.web,
            tuple(options.mcp),
        ),
        chat_loop.ChatConfig(
            (*configured.tools, *(demo_tools() if name == OFFLINE else ())),
            tuple(configured.plugins),
            (*loaded.rules, *(load_rules(options.permissions) if options.permissions else ())),
            tuple(agents),
            None if start is None else _make_folder_opener(start, loaded, name),
        ),
        _markdown_renderer(wants_color(options)),
    )
    return chat_loop.run_chat(chat_options, find_model)


def _make_folder_opener(start: FolderStart, loaded: LoadedConfig, model: str) -> OpenLineFolder:
    """Return a function that makes the agent of the folder in which the chat was started."""
    from everturn.config.folder.agent import make_folder_agent
    from everturn.config.folder.extension_tools import list_commands
    from everturn.config.folder.project import find_project
    from everturn.config.folder.trust import FolderTrust
    from everturn.terminal.lines.folder import LineFolder

    def open_folder(app: BaseApp) -> LineFolder:
        project, trust = find_project(start.path), FolderTrust()
        definition, notes = make_folder_agent(project, loaded, model, os.environ, app, trust)
        mode = start.mode or loaded.config.assistant.mode
        options = definition.options("", TurnOptions(folder=str(project.root), mode=mode))
        commands = list_commands(trust.extensions(project))
        return LineFolder(definition, options, project.label, tuple(notes), tuple(commands))

    return open_folder


def _turn_options(options: argparse.Namespace, spec: TurnOptions, read_budget: Callable[[str], Budget]) -> TurnOptions:
    """Merge the turn options of the agent with those of the command line, which win."""
    overrides: dict[str, Any] = {"review": options.review} if options.review != "never" else {}
    overrides |= {"manual": (*spec.manual, *options.manual)}
    overrides |= {"budget": read_budget(options.budget)} if options.budget else {}
    overrides |= {"system": replace_surrogates(options.system)} if options.system else {}
    return replace(spec, **overrides)


def _markdown_renderer(color: bool) -> Callable[[], TextRenderer] | None:
    """Return a factory for a renderer of Markdown, or None without colours or without Textual."""
    if not color or find_spec("textual") is None:
        return None
    from everturn.terminal.tui.scrollback import Scrollback, can_render_markdown

    return (lambda: Scrollback(sys.stdout)) if can_render_markdown(sys.stdout, color) else None
