"""What a command line says → a server to talk to: that of the process which has the store, be it this one or another.

The server is the same as that of `everturn serve`, on a free port of this machine; the token that opens it is made for
this process, and is beside the store for others of the same user. See `store_connection`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from everturn.access.access import House
from everturn.cli.saying import long_wait
from everturn.cli.serving import config_file
from everturn.cli.store_connection import StoreConnection
from everturn.cli.store_server import beside
from everturn.cli.tokens import token_for
from everturn.client import Server
from everturn.config.building import ASSISTANT, Given, open_house, store_of
from everturn.config.loading import Loaded, load
from everturn.config.models import usual_model
from everturn.config.schema import AgentTable, ModelTable
from everturn.config.tools import Brought
from everturn.core.canonical import clean
from everturn.errors import StoreBusy
from everturn.models.offline import OFFLINE
from everturn.permissions.reading import load_rules
from everturn.stores.named import without_password
from everturn.terminal.loading import check_by_hand, load_tools, read_budget, tools_in
from everturn.terminal.reaching import Reach, bring

IN_MEMORY = "another program has the sessions in {store}{why}: what you say here is kept in memory only, and lost when you leave"
OFFLINE_HINT = "No model is named and no key was found, so an offline demo answers. --model names one."
OWN = ("model", "base_url", "system", "tools", "permissions", "budget", "by_hand", "files", "code", "web", "mcp")


class Housed(Struct):
    """A server, and what a person should know about how it came to be."""

    server: Server
    notes: list[str]
    is_here: bool = False  # it ends with this process
    is_in_memory: bool = False  # what is said there is gone then, too
    connection: StoreConnection | None = None


@asynccontextmanager
async def house(options: argparse.Namespace) -> AsyncGenerator[Housed]:
    """The server that is meant, until the block ends.

    Raises:
        ConfigError: something of it cannot be had here; nothing was sent.
    """
    if options.connect:
        async with Server(options.connect, token_for(options)) as server:
            yield Housed(server, [])
        return
    async with AsyncExitStack() as stack:
        yield await _here(options, stack)


async def _here(options: argparse.Namespace, stack: AsyncExitStack) -> Housed:
    loaded, notes = load(config_file(options)), list[str]()
    store = store_of(loaded, options.store, os.environ)
    if store == "memory":
        return await _in_memory(loaded, options, stack, notes)
    own = own_options(options)
    connection = StoreConnection(
        beside(store, os.environ), lambda: _open(loaded, options, store, notes), may_attach=set(own) <= {"--model"}
    )
    stack.push_async_callback(connection.aclose)
    try:
        with long_wait("opening the sessions; another everturn may have them"):
            server = await connection.connect()
        if not connection.is_here and options.model and not await _offers(server, clean(options.model)):
            await connection.aclose()
            raise StoreBusy(f"another everturn has the sessions, and does not offer {clean(options.model)}")
    except StoreBusy as error:
        if options.store or options.session:
            more = f"; {', '.join(own)} cannot be used there: leave it out, or quit that one first" if own else ""
            raise StoreBusy(f"{error}{more}") from None
        notes.append(_why_in_memory(store, own))
        return await _in_memory(loaded, options, stack, notes)
    if not connection.is_here:
        notes.append(f"another everturn has the sessions, at {connection.address}: this terminal is connected to it")
    elif is_unnamed_demo(loaded, clean(options.model or "")):
        notes.append(OFFLINE_HINT)
    return Housed(server, notes, is_here=connection.is_here, connection=connection)


@asynccontextmanager
async def _open(loaded: Loaded, options: argparse.Namespace, store: str, notes: list[str]) -> AsyncGenerator[House]:
    """The house of a configuration and a command line. Its tools are made anew each time: closing it closes them."""
    also = await _brought(options, notes)
    given = Given(store=store, model=clean(options.model or ""), is_personal=True)
    async with open_house(with_flags(loaded, options, also), given, also=also) as made:
        yield made


async def _in_memory(loaded: Loaded, options: argparse.Namespace, stack: AsyncExitStack, notes: list[str]) -> Housed:
    """A server whose sessions end with it. Nobody else is told where it is."""
    connection = StoreConnection(None, lambda: _open(loaded, options, "memory", notes))
    stack.push_async_callback(connection.aclose)
    server = await connection.connect()
    if is_unnamed_demo(loaded, clean(options.model or "")):
        notes.append(OFFLINE_HINT)
    return Housed(server, notes, is_here=True, is_in_memory=True, connection=connection)


async def _offers(server: Server, model: str) -> bool:
    return any(model in (agent.model, *agent.models) for agent in await server.agents())


def _why_in_memory(store: str, own: list[str]) -> str:
    why = f" and {', '.join(own)} cannot be used there" if own else " and does not share them"
    return IN_MEMORY.format(store=without_password(store), why=why)


# What was said ---------------------------------------------------------------------------------------------------------


class _Later:
    """Nobody is asked before there is a screen: what is not trusted is listed there, and can be trusted."""

    def show(self, lines: list[str]) -> None:
        """Show nothing."""

    async def agreed(self, question: str) -> bool:
        """Agree to nothing."""
        return False


async def _brought(options: argparse.Namespace, notes: list[str]) -> Brought:
    """The tools that are named beside the configuration."""
    reach = Reach(options.files, options.virtual_files, options.code, options.shell, options.web, tuple(options.mcp))
    found = await bring(reach, notes.append, _Later())
    tools = [*load_tools(options.tools), *found.tools]
    check_by_hand(options.by_hand, [tool for tool in tools if tool is not found.servers])
    return Brought(tools, list(found.plugins))


def with_flags(loaded: Loaded, options: argparse.Namespace, also: Brought) -> Loaded:
    """A configuration with what the command line says of its first agent, and without the tools that it says anew.

    Raises:
        ConfigError: the rules or the budget make no sense.
    """
    config, table = loaded.config, loaded.config.tools
    if options.files or options.virtual_files:
        table = replace(table, files="", virtual_files=False)
    anew = {"code": options.code, "shell": options.shell is not None, "web": options.web}
    table = replace(table, **{name: False for name, is_said in anew.items() if is_said})
    agents = config.agents or {ASSISTANT: AgentTable(description="a plain assistant")}
    first = next(iter(agents))
    models, system = config.models, clean(options.system)
    name = clean(options.model or "") or (usual_model(os.environ) if options.base_url else "")
    if options.base_url:
        models = {**models, name: ModelTable(name, base_url=options.base_url)}
    agents = {**agents, first: _agent(agents[first], name, system, options, also)}
    rules = (*loaded.rules, *load_rules(options.permissions)) if options.permissions else loaded.rules
    systems = {**loaded.systems, first: system} if system else loaded.systems
    return replace(
        loaded, config=replace(config, tools=table, models=models, agents=agents), rules=rules, systems=systems
    )


def _agent(table: AgentTable, model: str, system: str, options: argparse.Namespace, also: Brought) -> AgentTable:
    named = [one for one in also.tools if not hasattr(one, "origins")]
    return replace(
        table,
        model=model or table.model,
        system=system or table.system,
        system_file="" if system else table.system_file,
        budget=read_budget(options.budget) if options.budget else table.budget,
        result=options.review if options.review != "auto" else table.result,
        by_hand=(*table.by_hand, *options.by_hand),
        tools=None if table.tools is None else (*table.tools, *tools_in(named)),
    )


def own_options(options: argparse.Namespace) -> list[str]:
    """The options that a server which runs already does not know of."""
    said = {name: bool(getattr(options, name)) for name in OWN}
    said |= {"virtual_files": options.virtual_files, "shell": options.shell is not None}
    said |= {"review": options.review != "auto"}
    return [f"--{name.replace('_', '-')}" for name, is_said in said.items() if is_said]


def is_unnamed_demo(loaded: Loaded, model: str) -> bool:
    """Whether the offline demo answers because nobody has named a model; who has chosen it needs no hint."""
    named = model or os.environ.get("EVERTURN_MODEL", "").strip()
    first = next(iter(loaded.config.agents.values()), None)
    return not named and not (first is not None and first.model) and usual_model(os.environ) == OFFLINE
