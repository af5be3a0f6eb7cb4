"""An installation that is to be killed, seen over HTTP: its nodes and workers, a provider, a ledger, and readers.

The programs are `everturn serve --cluster` and `everturn worker`, as people start them. The model is a real endpoint, whose
provider is as strict as real ones: a history that is not valid is refused. A reader draws what it is shown, as a screen
would, and comes back to any node with the id of the last message that it has read.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from everturn import api
from everturn.client import Server
from everturn.client.listening import Frames
from everturn.core.events import Terminal
from everturn.testing.chaos.api_tools import LEDGER
from everturn.testing.chaos.ledger import Line, read_ledger
from everturn.testing.chaos.nodes import ApiNode, Installation, installation
from everturn.testing.chaos.resuming import RELOADS, Face
from everturn.testing.provider import Call, Provider, Say

if TYPE_CHECKING:
    import aiohttp

KEY = "CHAOS_KEY"
MODELS = ("echo", "long", "asks", "lingers", "grinds", "works")
MAILED = ("ada", "bob", "cem", "dan", "eve")
CONFIG = """
[tools]
python = ["everturn.testing.chaos.api_tools"]

[limits]
requests = 0
streams = 0

[tenants.other.users.mallory]
role = "owner"
"""
MODEL = """
[models.{name}]
model = "openai-chat:{name}"
base_url = "{url}/v1"
api_key = "${{env:CHAOS_KEY}}"

[agents.{name}]
model = "{name}"
"""
_decode = msgspec.json.Decoder(api.Item).decode


# The installation -----------------------------------------------------------------------------------------------------


class ApiCell:
    """An installation, the provider that its workers ask, and what its tools have done."""

    def __init__(self, house: Installation, provider: Provider | None, stack: AsyncExitStack) -> None:
        self.house, self._provider, self._stack = house, provider, stack

    @property
    def provider(self) -> Provider:
        """The provider, where it is in this process."""
        assert self._provider is not None
        return self._provider

    @property
    def addresses(self) -> list[str]:
        """Where the nodes are that run."""
        return [node.address for node in self.house.nodes if node.is_running]

    def lines(self) -> list[Line]:
        """What the ledger of effects says."""
        return read_ledger(self.house.home / "ledger").lines

    def effects(self, session: str = "", name: str = "") -> list[Line]:
        """What tools did: in a session, or of a name."""
        wanted = (line for line in self.lines() if line.kind == "effect")
        return [line for line in wanted if session in ("", line.session) and name in ("", line.name)]

    async def server(self, addresses: Sequence[str] = (), token: str = "") -> Server:
        """A client of all nodes, or of some; it is closed with the cell."""
        made = Server(addresses or self.addresses, token or self.house.token)
        self._stack.push_async_callback(made.aclose)
        return made

    async def web(self, token: str = "") -> aiohttp.ClientSession:
        """A client without any sense of its own; it is closed with the cell."""
        import aiohttp

        headers = {"authorization": f"Bearer {token or self.house.token}"}
        patience = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=60.0)
        made = aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0), timeout=patience)
        self._stack.push_async_callback(made.close)
        return made

    async def key(self, user: str, tenant: str) -> str:
        """A key for somebody, as an operator makes it."""
        words = ("keys", "add", user, "--tenant", tenant, "--role", "owner", "--store", self.house.postgres.url)
        making = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "everturn", *words, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await making.communicate()
        return next(word for word in said.decode().split() if word.startswith("evk_"))

    async def kill_driver(self, session: str) -> int:
        """Kill the worker that ran a tool of this session last."""
        pid = self.effects(session)[-1].pid
        os.kill(pid, signal.SIGKILL)
        return pid

    async def kill_all(self) -> None:
        """Kill every node and every worker at once; the servers beneath stay."""
        parents, self.house.parents = self.house.parents, []
        nodes, self.house.nodes = self.house.nodes, []
        workers = [pid for parent in parents for pid in self.house.workers_of(parent)]
        await asyncio.gather(*(one.kill9() for one in (*parents, *nodes)))
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def start(self, nodes: int, workers: int, environment: Mapping[str, str] | None = None) -> None:
        """Start nodes and workers beside those that run."""
        starting = [self.house.start_node(environment=environment) for _ in range(nodes)]
        await asyncio.gather(*starting, *((self.house.start_workers(workers, environment),) if workers else ()))

    async def bring_back(self, node: ApiNode) -> None:
        """Start a node that was killed again, at its address."""
        if node in self.house.nodes:
            self.house.nodes.remove(node)
        await self.house.start_node(node.port)


@asynccontextmanager
async def api_cell(nodes: int = 3, workers: int = 3, provider: str = "") -> AsyncGenerator[ApiCell]:
    """A cell with nodes and workers; `provider` is where one listens that is a process of its own."""
    async with AsyncExitStack() as stack:
        own = None if provider else await stack.enter_async_context(Provider())
        url = provider or (own.url if own else "")
        more = CONFIG + "".join(MODEL.format(name=name, url=url) for name in MODELS)
        # Programs of the installation get what this process has; a key that is wanted by name has to be there.
        known = {KEY: "key", LEDGER: ""}
        house = await stack.enter_async_context(installation(more=more, environment=known))
        house.environment[LEDGER] = str(house.home / "ledger")
        made = ApiCell(house, own, stack)
        if own is not None:
            _tell(own)
        await made.start(nodes, workers)
        yield made


def _tell(provider: Provider) -> None:
    """What models say that need nobody to tell them more."""
    provider.script("echo", [[Say("All is well.")]])
    mails = [Call("mail", msgspec.json.encode({"to": to}).decode()) for to in MAILED]
    provider.script("asks", [mails, [Say("That was all.")]])


# A reader -------------------------------------------------------------------------------------------------------------


class Screen(Face):
    """A face that is shown messages of an event stream, and keeps the last id."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = b""  # the terminal event, as bytes
        self._at = 0  # the last position

    def take(self, name: str, item: api.Item) -> None:
        """Draw a message."""
        self.cursor = name or self.cursor
        if item.event is not None:
            if item.seq <= self._at:
                self.complaints.append(f"the event at {item.seq} came behind that at {self._at}")
            self._at = item.seq
            if isinstance(item.event, Terminal):
                self.ended = msgspec.json.encode(item.event)
        shown = item.event or item.delta or item.progress
        if shown is not None:
            self.show(shown)


async def visit(
    screen: Screen, web: aiohttp.ClientSession, url: str, is_enough: Callable[[Screen], bool] = lambda _: False
) -> None:
    """Read a turn on, where a screen left off, until it is over, enough, or broken off."""
    import aiohttp

    headers = {"last-event-id": screen.cursor} if screen.cursor else {}
    frames = Frames()
    with suppress(aiohttp.ClientError, OSError):  # as a browser has it: it comes again
        async with web.get(url, headers=headers) as answer:
            if answer.status != 200:
                if answer.status < 500:
                    screen.complaints.append(f"{answer.status}: {(await answer.read())[:200]!r}")
                    screen.is_over = True
                return
            async for data in answer.content.iter_any():
                for name, found in frames.feed(data):
                    screen.take(name, _decode(found))
                    if is_enough(screen):
                        return


class Reader:
    """Comes and goes as it likes, at any node, with the id that it had."""

    def __init__(self, cell: ApiCell, web: aiohttp.ClientSession, path: str, rng: random.Random, stay: float) -> None:
        self._cell, self._web, self._path, self._rng, self._stay = cell, web, path, rng, stay
        self.screen = Screen()
        self.forgotten: list[Screen] = []  # what it saw before it reloaded
        self.visits = self.moves = 0

    async def read(self) -> None:
        """Come and go until the turn is over."""
        rng, before = self._rng, ""
        while not self.screen.is_over:
            node = rng.choice(self._cell.house.nodes).address  # it may be one that is dead
            self.visits, self.moves, before = self.visits + 1, self.moves + (before not in ("", node)), node
            most = self.screen.pieces + (rng.randrange(1, 60) if rng.random() < 0.5 else sys.maxsize)
            with suppress(TimeoutError):
                async with asyncio.timeout(rng.expovariate(1 / self._stay)):
                    await visit(self.screen, self._web, node + self._path, lambda one, most=most: one.pieces >= most)
            if not self.screen.is_over:
                await asyncio.sleep(rng.uniform(0, self._stay / 2))
                if rng.random() < RELOADS:
                    self.forgotten.append(self.screen)
                    self.screen = Screen()
