"""What a command line says → a server to talk to: one in this process, or one that runs already.

The server is the same as that of `everturn serve`, on a free port of this machine; the token that opens it is made for
this once, and nobody but this process ever has it. What is kept is in the usual store.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from hmac import compare_digest

from msgspec import Struct
from msgspec.structs import replace

from everturn.access.access import House
from everturn.access.entrance import SHOW, Entrance
from everturn.cli.people import answers
from everturn.cli.serving import address_file, config_file
from everturn.cli.tokens import check_listener, read_token, token_for
from everturn.client import Server
from everturn.clock import SystemClock
from everturn.config.building import ASSISTANT, Given, open_house, store_of, token_file
from everturn.config.loading import Loaded, load
from everturn.config.models import usual_model
from everturn.config.options import ServerOptions
from everturn.config.schema import AgentTable, ModelTable
from everturn.config.tools import Brought
from everturn.core.accounts import LOCAL, Principal, User
from everturn.core.canonical import clean
from everturn.errors import ConfigError, NotRecognised, StoreBusy
from everturn.models.offline import OFFLINE
from everturn.permissions.reading import load_rules
from everturn.terminal.loading import check_by_hand, load_tools, read_budget, tools_in
from everturn.terminal.reaching import Reach, bring

DRAIN = 2.0  # seconds that what runs has to come to a place where it can be gone on with
SHARED = (
    "another everturn keeps its sessions in {store}, so this one is kept in memory; `everturn serve` is for several"
)
OFFLINE_HINT = "No model is named and no key was found, so an offline demo answers. --model names one."
OWN = ("model", "base_url", "system", "tools", "permissions", "budget", "by_hand", "files", "code", "web", "mcp")


class Housed(Struct):
    """A server, and what a person should know about how it came to be."""

    server: Server
    notes: list[str]
    is_here: bool = False  # it ends with this process


class Door(Entrance):
    """A door with one key, which only this process has."""

    def __init__(self, house: House, token: str) -> None:
        super().__init__(house.accounts, SystemClock())
        self._shown = f"Bearer {token}".encode()

    async def recognise(self, authorization: str | None = None, cookie: str | None = None) -> Principal:
        """Whoever has the key.

        Raises:
            NotRecognised: anybody else.
        """
        if cookie is None and compare_digest((authorization or "").encode(), self._shown):
            return Principal(LOCAL, LOCAL, "operator", "terminal")
        raise NotRecognised(SHOW)

    async def standing(self, principals: Iterable[Principal]) -> set[str]:
        """The key holds as long as the process."""
        return set()


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
    also = await _brought(options, notes)
    loaded = with_flags(loaded, options, also)
    store = store_of(loaded, options.store, os.environ)
    given = Given(store=store, model=clean(options.model or ""))
    try:
        made = await stack.enter_async_context(open_house(loaded, given, also=also))
    except StoreBusy:
        if options.store or options.session:
            raise
        if not _has_own(options) and (found := _running(loaded, store)) is not None:
            notes.append(f"a server runs already, at {found[0]}: this is connected to it")
            return Housed(await stack.enter_async_context(Server(*found)), notes)
        notes.append(SHARED.format(store=store))
        made = await stack.enter_async_context(open_house(loaded, replace(given, store="memory"), also=also))
    if made.agents.get("").options.model == OFFLINE:
        notes.append(OFFLINE_HINT)
    return Housed(await _serve(made, stack), notes, is_here=True)


async def _serve(made: House, stack: AsyncExitStack) -> Server:
    """Serve in a task of this loop until the stack is left."""
    from everturn.server import serving

    if await made.accounts.user(LOCAL, LOCAL) is None:
        await made.accounts.put_user(User(LOCAL, LOCAL, role="operator", created=made.runtime.clock.now()))
    token, leave = f"evk_{secrets.token_urlsafe(32)}", asyncio.Event()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    how = ServerOptions(port=0, drain=DRAIN)
    task = asyncio.create_task(serving.serve(made, Door(made, token), how, address.set_result, leave=leave))

    async def end() -> None:
        leave.set()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(end)
    await asyncio.wait({task, address}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
        raise ConfigError("the server of this process did not start; `everturn doctor` says more")
    return await stack.enter_async_context(Server(address.result(), token))


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


def _has_own(options: argparse.Namespace) -> bool:
    """Whether something was said that a server which runs already does not know of."""
    return any(getattr(options, name) for name in OWN) or options.virtual_files or options.shell is not None


# Who runs already ------------------------------------------------------------------------------------------------------


def _running(loaded: Loaded, store: str) -> tuple[str, str] | None:
    """Where the server is that has the store, and its token; None if it does not say.

    One that was killed has not taken its word back, and by now its port may be anybody's.
    """
    token = token_file(loaded, store, os.environ)
    try:
        address = address_file(token).read_text(encoding="utf-8").strip()
        check_listener(address)
        return (address, read_token(token)) if answers(address) else None
    except (OSError, ConfigError):
        return None
