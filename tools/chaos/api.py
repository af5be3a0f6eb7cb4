"""API installation under test: API nodes and workers, a provider, a ledger, and readers over HTTP.

The programs are `everturn serve --cluster` and `everturn worker`, as users start them. The model is a real endpoint,
whose provider is as strict as real ones: an invalid history is refused. A reader renders what it receives, as a client
would, and reconnects to any node with the id of the last message that it has read.
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
from everturn.client.event_stream import SseDecoder
from everturn.core.events import Terminal
from everturn.testing.provider import Call, Provider, Say
from tools.chaos.api_tools import LEDGER
from tools.chaos.ledger import LedgerLine, read_ledger
from tools.chaos.nodes import ApiNode, Installation, installation
from tools.chaos.resume import RELOADS, TurnScreen

if TYPE_CHECKING:
    import aiohttp

KEY = "CHAOS_KEY"
MODELS = ("echo", "long", "asks", "lingers", "grinds", "works")
MAILED = ("ada", "bob", "cem", "dan", "eve")
CONFIG = """
[tools]
python = ["tools.chaos.api_tools"]

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
_decode = msgspec.json.Decoder(api.StreamItem).decode


# The installation -----------------------------------------------------------------------------------------------------


class ApiCell:
    """An installation, the provider of its workers, and the effects of its tools."""

    def __init__(self, house: Installation, provider: Provider | None, stack: AsyncExitStack) -> None:
        self.house, self._provider, self._stack = house, provider, stack

    @property
    def provider(self) -> Provider:
        """The provider, where it runs in this process."""
        assert self._provider is not None
        return self._provider

    @property
    def addresses(self) -> list[str]:
        """The addresses of the running nodes."""
        return [node.address for node in self.house.nodes if node.is_running]

    def lines(self) -> list[LedgerLine]:
        """The lines of the ledger."""
        return read_ledger(self.house.home / "ledger").lines

    def effects(self, session: str = "", name: str = "") -> list[LedgerLine]:
        """The effects of tools: in a session, or of one tool."""
        wanted = (line for line in self.lines() if line.kind == "effect")
        return [line for line in wanted if session in ("", line.session) and name in ("", line.name)]

    async def server(self, addresses: Sequence[str] = (), token: str = "") -> Server:
        """A client of all nodes, or of some; it is closed with the cell."""
        client = Server(addresses or self.addresses, token or self.house.token)
        self._stack.push_async_callback(client.aclose)
        return client

    async def web(self, token: str = "") -> aiohttp.ClientSession:
        """A bare HTTP client; it is closed with the cell."""
        import aiohttp

        headers = {"authorization": f"Bearer {token or self.house.token}"}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=60.0)
        client = aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0), timeout=timeout)
        self._stack.push_async_callback(client.close)
        return client

    async def key(self, user: str, tenant: str) -> str:
        """An API key for a user, as an operator makes it."""
        words = ("keys", "add", user, "--tenant", tenant, "--role", "owner", "--store", self.house.postgres.url)
        making = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "everturn", *words, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await making.communicate()
        return next(word for word in output.decode().split() if word.startswith("evk_"))

    async def kill_driver(self, session: str) -> int:
        """Kill the worker that ran a tool of this session last."""
        pid = self.effects(session)[-1].pid
        os.kill(pid, signal.SIGKILL)
        return pid

    async def kill_all(self) -> None:
        """Kill every node and every worker at once; the servers below keep running."""
        parents, self.house.parents = self.house.parents, []
        nodes, self.house.nodes = self.house.nodes, []
        workers = [pid for parent in parents for pid in self.house.workers_of(parent)]
        await asyncio.gather(*(process.kill9() for process in (*parents, *nodes)))
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def start(self, nodes: int, workers: int, environment: Mapping[str, str] | None = None) -> None:
        """Start nodes and workers beside those that run."""
        starting = [self.house.start_node(environment=environment) for _ in range(nodes)]
        await asyncio.gather(*starting, *((self.house.start_workers(workers, environment),) if workers else ()))

    async def bring_back(self, node: ApiNode) -> None:
        """Restart a killed node, at its address."""
        if node in self.house.nodes:
            self.house.nodes.remove(node)
        await self.house.start_node(node.port)


@asynccontextmanager
async def api_cell(nodes: int = 3, workers: int = 3, provider: str = "") -> AsyncGenerator[ApiCell]:
    """A cell with nodes and workers; `provider` is the address of one that is a process of its own."""
    async with AsyncExitStack() as stack:
        own = None if provider else await stack.enter_async_context(Provider())
        url = provider or (own.url if own else "")
        more = CONFIG + "".join(MODEL.format(name=name, url=url) for name in MODELS)
        # Programs of the installation inherit this environment; a key that is referenced by name has to be in
        # it.
        known = {KEY: "key", LEDGER: ""}
        house = await stack.enter_async_context(installation(more=more, environment=known))
        house.environment[LEDGER] = str(house.home / "ledger")
        cluster = ApiCell(house, own, stack)
        if own is not None:
            _tell(own)
        await cluster.start(nodes, workers)
        yield cluster


def _tell(provider: Provider) -> None:
    """Set the scripts of the models that every scenario uses."""
    provider.script("echo", [[Say("All is well.")]])
    mails = [Call("mail", msgspec.json.encode({"to": to}).decode()) for to in MAILED]
    provider.script("asks", [mails, [Say("That was all.")]])


# A reader -------------------------------------------------------------------------------------------------------------


class ApiTurnScreen(TurnScreen):
    """Renders the messages of an event stream, and keeps the last id."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = b""  # the terminal event, as bytes
        self._at = 0  # the last position

    def take(self, name: str, item: api.StreamItem) -> None:
        """Render a message."""
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
    screen: ApiTurnScreen,
    web: aiohttp.ClientSession,
    url: str,
    is_enough: Callable[[ApiTurnScreen], bool] = lambda _: False,
) -> None:
    """Continue to read a turn where a screen left off, until it is over, enough was read, or the connection breaks."""
    import aiohttp

    headers = {"last-event-id": screen.cursor} if screen.cursor else {}
    frames = SseDecoder()
    with suppress(aiohttp.ClientError, OSError):  # as in a browser: it reconnects
        async with web.get(url, headers=headers) as answer:
            if answer.status != 200:
                if answer.status < 500:
                    screen.complaints.append(f"{answer.status}: {(await answer.read())[:200]!r}")
                    screen.is_over = True
                return
            async for data in answer.content.iter_any():
                for name, payload in frames.feed(data):
                    screen.take(name, _decode(payload))
                    if is_enough(screen):
                        return


class ApiReader:
    """Connects to any node and disconnects at random, with the last id."""

    def __init__(self, cell: ApiCell, web: aiohttp.ClientSession, path: str, rng: random.Random, stay: float) -> None:
        self._cell, self._web, self._path, self._rng, self._stay = cell, web, path, rng, stay
        self.screen = ApiTurnScreen()
        self.forgotten: list[ApiTurnScreen] = []  # what it rendered before it reloaded
        self.visits = self.moves = 0

    async def read(self) -> None:
        """Connect and disconnect until the turn is over."""
        rng, before = self._rng, ""
        while not self.screen.is_over:
            node = rng.choice(self._cell.house.nodes).address  # it may be a dead one
            self.visits, self.moves, before = self.visits + 1, self.moves + (before not in ("", node)), node
            most = self.screen.pieces + (rng.randrange(1, 60) if rng.random() < 0.5 else sys.maxsize)
            with suppress(TimeoutError):
                async with asyncio.timeout(rng.expovariate(1 / self._stay)):
                    await visit(
                        self.screen, self._web, node + self._path, lambda screen, most=most: screen.pieces >= most
                    )
            if not self.screen.is_over:
                await asyncio.sleep(rng.uniform(0, self._stay / 2))
                if rng.random() < RELOADS:
                    self.forgotten.append(self.screen)
                    self.screen = ApiTurnScreen()
