"""Server of a chat: the server that `everturn chat` talks to, in this process or in the one that has the store.

It is the same server as that of `everturn serve`, on a free port of this machine. Its token is made for this process,
and is stored beside the store for other processes of the same user. `cli.store.connection` describes how they share it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from everturn.access.context.server_context import ServerContext
from everturn.cli.config_options import config_file
from everturn.cli.connect_token import load_connect_token
from everturn.cli.output import show_slow_operation
from everturn.cli.store.connection import StoreConnection
from everturn.cli.store.server import sidecar_path
from everturn.client import Server
from everturn.config.agents import ASSISTANT
from everturn.config.build import CommandLineOverrides, configured_store, open_server
from everturn.config.folder.agents import FolderAgents
from everturn.config.load import LoadedConfig, load_config
from everturn.config.models import default_model
from everturn.config.schema import AgentTable, ModelTable
from everturn.config.tools import ConfiguredTools
from everturn.core.canonical_json import replace_surrogates
from everturn.errors import ConfigError, StoreBusy
from everturn.models.offline import OFFLINE
from everturn.permissions.rules_file import load_rules
from everturn.stores.registry import without_password
from everturn.terminal.text.local_tools import LocalToolOptions, build_local_tools
from everturn.terminal.text.tool_loader import check_manual, load_tools, parse_budget, tools_in

IN_MEMORY = (
    "another program has the store {store} open{why}: this conversation is in memory only, and is lost when you leave"
)
UNSAVED = "sessions cannot be saved ({why}): this conversation is lost when you leave"
OFFLINE_HINT = "No model is named and no API key was found, so the offline demo answers. Choose one with --model."
LOCAL_OPTIONS = (
    "model",
    "base_url",
    "system",
    "tools",
    "permissions",
    "budget",
    "manual",
    "files",
    "code",
    "web",
    "mcp",
)


class LocalServer(Struct):
    """A server to talk to, and notes for the user about how it was chosen."""

    server: Server
    notes: list[str]
    is_own_process: bool = False  # the server runs in this process and ends with it
    is_in_memory: bool = False  # its sessions are lost with the process, too
    connection: StoreConnection | None = None


@asynccontextmanager
async def open_chat_server(options: argparse.Namespace) -> AsyncGenerator[LocalServer]:
    """Open the server that the options name, until the block ends.

    Raises:
        ConfigError: something of it is not available here; nothing was sent.
    """
    if options.connect:
        async with Server(options.connect, load_connect_token(options)) as server:
            yield LocalServer(server, [])
        return
    async with AsyncExitStack() as stack:
        yield await _open_local(options, stack)


async def _open_local(options: argparse.Namespace, stack: AsyncExitStack) -> LocalServer:
    loaded, notes = load_config(config_file(options)), list[str]()
    try:
        store = configured_store(loaded, options.store, os.environ)
    except ConfigError as error:
        if options.store or options.session or loaded.config.store.url:
            raise
        notes.append(UNSAVED.format(why=error))  # a read-only home: a conversation is better than none
        store = "memory"
    if store == "memory":
        return await _in_memory(loaded, options, stack, notes)
    own = list_local_options(options)
    connection = StoreConnection(
        sidecar_path(store, os.environ),
        lambda: _open(loaded, options, store, notes),
        may_attach=set(own) <= {"--model"},
    )
    stack.push_async_callback(connection.aclose)
    try:
        with show_slow_operation("opening the sessions; another everturn may have them"):
            server = await connection.connect()
        if not connection.owns_store and options.model and not await _offers(server, replace_surrogates(options.model)):
            await connection.aclose()
            raise StoreBusy(
                f"another everturn has the sessions, and does not offer {replace_surrogates(options.model)}"
            )
    except StoreBusy as error:
        if options.store or options.session:
            more = f"; {', '.join(own)} cannot be used there: leave it out, or quit that one first" if own else ""
            raise StoreBusy(f"{error}{more}") from None
        notes.append(_why_in_memory(store, own))
        return await _in_memory(loaded, options, stack, notes)
    if not connection.owns_store:
        notes.append(f"another everturn has the sessions, at {connection.address}: this terminal is connected to it")
    elif is_unnamed_demo(loaded, replace_surrogates(options.model or "")):
        notes.append(OFFLINE_HINT)
    return LocalServer(server, notes, is_own_process=connection.owns_store, connection=connection)


@asynccontextmanager
async def _open(
    loaded: LoadedConfig, options: argparse.Namespace, store: str, notes: list[str]
) -> AsyncGenerator[ServerContext]:
    """Open the server context of a configuration and a command line.

    Tools are created each time, because closing the context closes them.
    """
    extra_tools = await _load_extra_tools(options, notes)
    overrides = CommandLineOverrides(store=store, model=replace_surrogates(options.model or ""), is_personal=True)
    applied = apply_command_line(loaded, options, extra_tools)
    async with open_server(applied, overrides, also=extra_tools) as context:
        folders = FolderAgents(context, applied, overrides.model or default_model(os.environ), os.environ)
        context.open_folder = folders.open
        for agent in context.agents.all:
            context.agents.add(replace(agent, any_model=True))
        yield context


async def _in_memory(
    loaded: LoadedConfig, options: argparse.Namespace, stack: AsyncExitStack, notes: list[str]
) -> LocalServer:
    """Open a server whose sessions end with it. Its address is not published."""
    connection = StoreConnection(None, lambda: _open(loaded, options, "memory", notes))
    stack.push_async_callback(connection.aclose)
    server = await connection.connect()
    if is_unnamed_demo(loaded, replace_surrogates(options.model or "")):
        notes.append(OFFLINE_HINT)
    return LocalServer(server, notes, is_own_process=True, is_in_memory=True, connection=connection)


async def _offers(server: Server, model: str) -> bool:
    return any(agent.any_model or model in (agent.model, *agent.models) for agent in await server.agents())


def _why_in_memory(store: str, own: list[str]) -> str:
    why = f" and {', '.join(own)} cannot be used there" if own else " and does not share them"
    return IN_MEMORY.format(store=without_password(store), why=why)


# Command-line options -----------------------------------------------------------------------------------------------


class _DeferredTrust:
    """Trust questions before there is a screen: none is asked; the UI lists what is not trusted, and can trust it."""

    def show(self, lines: list[str]) -> None:
        """Show nothing."""

    async def confirm(self, question: str) -> bool:
        """Agree to nothing."""
        return False


async def _load_extra_tools(options: argparse.Namespace, notes: list[str]) -> ConfiguredTools:
    """Load the tools that the command line adds to the configuration."""
    tool_options = LocalToolOptions(
        options.files, options.virtual_files, options.code, options.shell, options.web, tuple(options.mcp)
    )
    local_tools = await build_local_tools(tool_options, notes.append, _DeferredTrust())
    tools = [*load_tools(options.tools), *local_tools.tools]
    check_manual(options.manual, [tool for tool in tools if tool is not local_tools.servers])
    return ConfiguredTools(tools, list(local_tools.plugins))


def apply_command_line(loaded: LoadedConfig, options: argparse.Namespace, also: ConfiguredTools) -> LoadedConfig:
    """Apply the options of the command line to a configuration: to its first agent, and to the tools that they replace.

    Raises:
        ConfigError: the rules or the budget are invalid.
    """
    config, table = loaded.config, loaded.config.tools
    if options.here:  # those of the folder are used instead
        table = replace(table, **{"files": "", "virtual_files": False, "shell": False})
    if options.files or options.virtual_files:
        table = replace(table, files="", virtual_files=False)
    replaced = {"code": options.code, "shell": options.shell is not None, "web": options.web}
    table = replace(table, **{name: False for name, is_set in replaced.items() if is_set})
    agents = config.agents or {ASSISTANT: AgentTable(description="General assistant.")}
    first = next(iter(agents))
    models, system = config.models, replace_surrogates(options.system)
    name = replace_surrogates(options.model or "") or (default_model(os.environ) if options.base_url else "")
    if options.base_url:
        models = {**models, name: ModelTable(name, base_url=options.base_url)}
    agents = {**agents, first: _agent(agents[first], name, system, options, also)}
    rules = (*loaded.rules, *load_rules(options.permissions)) if options.permissions else loaded.rules
    systems = {**loaded.systems, first: system} if system else loaded.systems
    return replace(
        loaded, config=replace(config, tools=table, models=models, agents=agents), rules=rules, systems=systems
    )


def _agent(
    table: AgentTable, model: str, system: str, options: argparse.Namespace, also: ConfiguredTools
) -> AgentTable:
    tools = [tool for tool in also.tools if not hasattr(tool, "origins")]
    return replace(
        table,
        model=model or table.model,
        system=system or table.system,
        system_file="" if system else table.system_file,
        instructions=() if system else table.instructions,
        budget=parse_budget(options.budget) if options.budget else table.budget,
        review=options.review if options.review != "never" else table.review,
        manual=(*table.manual, *options.manual),
        tools=None if table.tools is None else (*table.tools, *tools_in(tools)),
    )


def list_local_options(options: argparse.Namespace) -> list[str]:
    """List the options that a server which already runs cannot apply."""
    flags = {name: bool(getattr(options, name)) for name in LOCAL_OPTIONS}
    flags |= {"virtual_files": options.virtual_files, "shell": options.shell is not None}
    flags |= {"review": options.review != "never"}
    return [f"--{name.replace('_', '-')}" for name, is_set in flags.items() if is_set]


def is_unnamed_demo(loaded: LoadedConfig, model: str) -> bool:
    """Whether the offline demo answers because no model is named; a user who has chosen it needs no hint."""
    model_name = model or os.environ.get("EVERTURN_MODEL", "").strip()
    first_agent = next(iter(loaded.config.agents.values()), None)
    return (
        not model_name and not (first_agent is not None and first_agent.model) and default_model(os.environ) == OFFLINE
    )
