"""A real server on loopback, two tenants in it, and a model that does what any message tells it: the worst there is.

`call TOOL {…}` in a message is a call with just these bytes as its arguments, one for each such line; `say …` says the
rest, and anything else is answered with `Done.`
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from everturn import api
from everturn.access.access import Access
from everturn.access.auth.authentication import Authenticator
from everturn.access.auth.options import OidcOptions
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.clock import SystemClock
from everturn.config.server_options import ServerOptions
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk
from everturn.core.options import TurnOptions
from everturn.core.ports import Bus, Engine
from everturn.core.requests import ModelRequest
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.core.tenants.accounts import ROLES, Principal, Tenant, User
from everturn.server.app import make_app
from everturn.server.route import Route
from everturn.server.serve import serve
from everturn.stores.memory import MemoryStore
from everturn.tools.function import tool

SOON = 15.0


class Obedient:
    """Does what the last message says, whoever wrote it."""

    name = "obedient"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.go_on = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        self.requests.append(request)
        last = request.messages[-1]
        text = last.text if last.role == "user" else ""
        if text.startswith("say "):
            for at in range(4, len(text), 7):
                yield [TextChunk(text[at : at + 7])]
            yield [FinishChunk("stop")]
            return
        if text.startswith("hang"):
            yield [TextChunk("I begin. ")]
            await self.go_on.wait()
        calls = [line.split(" ", 2) for line in text.split("\n") if line.startswith("call ")]
        if not calls:
            yield [TextChunk("Done."), FinishChunk("stop")]
            return
        yield [CallChunk(slot, words[2], words[1], f"given_{slot}") for slot, words in enumerate(calls)]
        yield [FinishChunk("tool_calls")]


class Ledger:
    """What really was done."""

    def __init__(self) -> None:
        self.done: list[tuple[str, Any]] = []

    def tools(self) -> list[Any]:
        @tool(approval="ask", idempotent=True, subjects={"to": "text"})
        async def mail(to: str, text: str = "") -> str:
            """Send a mail."""
            self.done.append(("mail", (to, text)))
            return f"sent to {to}"

        @tool(approval="always")
        async def pay(amount: int) -> str:
            """Pay."""
            self.done.append(("pay", amount))
            return f"paid {amount}"

        @tool(approval="ask", subjects={"command": "command"})
        async def shell(command: str) -> str:
            """Run a command line."""
            self.done.append(("shell", command))
            return "ran"

        @tool(approval="auto", read_only=True, review="always")
        async def records(of: str) -> str:
            """Read what a person looks at first."""
            return f"the record of {of} is reviewed-canary-77"

        @tool(approval="auto", read_only=True)
        async def echo(value: Any) -> str:
            """Say it again."""
            self.done.append(("echo", value))
            return value if isinstance(value, str) else json.dumps(value)

        return [mail, pay, shell, records, echo]


class Answer(msgspec.Struct):
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers if key.lower() == name)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def what(self) -> tuple[int, bytes]:
        return self.status, self.body


class Peer:
    """The server, whoever asks it, and what its tools did."""

    def __init__(self, house: ServerContext, entrance: Authenticator, model: Any, ledger: Ledger) -> None:
        self.house, self.entrance, self.model, self.ledger = house, entrance, model, ledger
        self.keys: dict[str, str] = {}  # `tenant/role` -> the secret of a key
        self.url = ""
        self.http: aiohttp.ClientSession | None = None

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    @property
    def routes(self) -> list[Route]:
        streams: Any = None
        return make_app(self.house, self.entrance, streams, ServerOptions()).table.routes

    @asynccontextmanager
    async def open(self, method: str, path: str, user: str = "", **more: Any) -> AsyncGenerator[aiohttp.ClientResponse]:
        """Ask; `who` is `tenant/role`. The answer can be read as it comes."""
        assert self.http is not None
        headers: dict[str, str] = dict(more.pop("headers", {}))
        headers.setdefault("accept-encoding", "identity")
        if user:
            headers.setdefault("authorization", f"Bearer {self.keys[user]}")
        url = URL(self.url + path, encoded=True)
        async with self.http.request(method, url, headers=headers, allow_redirects=False, **more) as answer:
            yield answer

    async def ask(self, method: str, path: str, user: str = "ours/owner", **more: Any) -> Answer:
        """Ask, and read all of the answer."""
        async with asyncio.timeout(SOON), self.open(method, path, user, **more) as answer:
            return Answer(answer.status, list(answer.headers.items()), await answer.read())

    async def say(self, text: str, user: str = "ours/owner", **more: Any) -> api.MessageReceipt:
        """Begin a session, and share it with everybody in the tenant."""
        answer = await self.ask("POST", "/api/sessions", user, json={"text": text, **more})
        assert answer.status == 201, answer.body
        sent = msgspec.json.decode(answer.body, type=api.MessageReceipt)
        shared = {"role": "viewer", "level": "write"}
        assert (await self.ask("POST", f"/api/sessions/{sent.session}/shares", user, json=shared)).status == 201
        return sent

    async def gates(self, session: str, user: str = "ours/owner", count: int = 1) -> list[Any]:
        """The open gates of a session, once there are so many."""
        async with asyncio.timeout(SOON):
            while True:
                found = (await self.ask("GET", f"/api/sessions/{session}/gates", user)).json["gates"]
                if len(found) >= count:
                    return [view["gate"] for view in found]
                await asyncio.sleep(0.01)

    async def answer(self, session: str, gate: Any, user: str = "ours/approver", **decision: Any) -> Answer:
        """Answer a gate."""
        body = {"hash": gate["hash"], **(decision or {"allow": "once"})}
        return await self.ask("POST", f"/api/sessions/{session}/gates/{gate['id']}/answer", user, json=body)

    async def rest(self, sent: api.MessageReceipt, user: str = "ours/owner") -> Any:
        """A turn that is over or waits: what it is then."""
        path = f"/api/sessions/{sent.session}/turns/{sent.turn}"
        async with asyncio.timeout(SOON):
            while True:
                turn = (await self.ask("GET", path, user)).json
                if turn["phase"] in ("completed", "error", "cancelled", "waiting"):
                    return turn
                await asyncio.sleep(0.01)

    async def told(self, text: str, **more: Any) -> list[str]:
        """What the calls of a message came to, in words; a call that waits for a person is "waiting"."""
        turn = await self.rest(await self.say(text, **more))
        parts = [part for message in turn["messages"] for part in message["parts"] if part.get("type") == "tool"]
        return [_outcome(part) for part in parts]

    async def log_in(self, tenant: str = "ours", user: str = "owner") -> dict[str, str]:
        """The headers of a browser that has logged in: its cookie."""
        link = await self.entrance.login_link(tenant, user)
        form = {"content-type": "application/x-www-form-urlencoded"}
        answer = await self.ask("POST", "/login", "", data=f"token={link}", headers=form)
        assert answer.status == 303
        return {"cookie": answer.header("set-cookie").partition(";")[0]}


def _outcome(part: Any) -> str:
    output = part.get("output") or {}
    return output.get("text") or part.get("state", "pending")


@asynccontextmanager
async def a_peer(
    *,
    store: Store | None = None,
    bus: Bus | None = None,
    engine: Engine | None = None,
    tools: Iterable[Any] = (),
    rules: Sequence[Rule] = (),
    model: Any = None,
    options: Mapping[str, Any] | None = None,
    limits: TenantLimits | None = None,
    wrap: Callable[[Any], Any] = lambda store: store,
    oidc: OidcOptions | None = None,
) -> AsyncGenerator[Peer]:
    """Serve, with a user of every role in `ours` and in `theirs`, until the end."""
    ledger, inner_store = Ledger(), store or MemoryStore()
    model = model or Obedient()
    runtime = App(model, tools=[*ledger.tools(), *tools], store=wrap(inner_store), bus=bus, engine=engine, rules=rules)
    agents = Agents([AgentSpec("assistant", TurnOptions())], default_limits=limits or TenantLimits(requests=0))
    accounts: Any = inner_store.accounts
    house = ServerContext(runtime, accounts, agents)
    entrance = Authenticator(accounts, SystemClock(), oidc)
    peer, leave, up = Peer(house, entrance, model, ledger), asyncio.Event(), asyncio.Event()

    def ready(address: str) -> None:
        peer.url = address
        up.set()

    await runtime.start()
    try:
        for tenant in ("ours", "theirs"):
            await accounts.put_tenant(Tenant(tenant))
            top = Access(house, Principal(tenant, "operator", "operator", "c"))
            for role in ROLES:
                await accounts.put_user(User(tenant, role, role=role))
                peer.keys[f"{tenant}/{role}"] = (await top.accounts.create_key(api.NewKey(user=role, role=role))).secret
        settings: dict[str, Any] = {"port": 0, "merge": 0.01, "drain": 1.0, **(options or {})}
        task = asyncio.create_task(serve(house, entrance, ServerOptions(**settings), ready, leave=leave))
        timeout = aiohttp.ClientTimeout(total=SOON)
        jar = aiohttp.DummyCookieJar()
        try:
            await asyncio.wait({task, waiting := asyncio.create_task(up.wait())}, return_when="FIRST_COMPLETED")
            waiting.cancel()
            async with aiohttp.ClientSession(timeout=timeout, cookie_jar=jar, auto_decompress=False) as http:
                peer.http = http
                yield peer
        finally:
            leave.set()
            await task
    finally:
        await runtime.aclose()


# What this process does beside --------------------------------------------------------------------------------------------

STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn")
REVIVES = ("pickle.find_class", "marshal.loads", "code.__new__", "exec", "compile")
_watches: list[tuple[tuple[str, ...], list[str]]] = []


def _on_audit(event: str, arguments: tuple[object, ...]) -> None:
    for wanted, seen in _watches:
        if event in wanted:
            seen.append(f"{event} {arguments!r:.200}")


@contextmanager
def watched(*events: str) -> Generator[list[str]]:
    """Whatever of these events the interpreter itself reports."""
    if _on_audit not in _hooked:
        sys.addaudithook(_on_audit)
        _hooked.append(_on_audit)
    watch: tuple[tuple[str, ...], list[str]] = (events, [])
    _watches.append(watch)
    try:
        yield watch[1]
    finally:
        _watches.remove(watch)


_hooked: list[Any] = []


@asynccontextmanager
async def a_trap() -> AsyncGenerator[tuple[str, list[bytes]]]:
    """A listener that nobody should come to: its address, and what whoever came has said."""
    came: list[bytes] = []

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", came


def items_of(stream: bytes) -> list[dict[str, Any]]:
    """The messages of an event stream, by their fields; whatever is no field is refused."""
    found: list[dict[str, Any]] = []
    # Every one of the three ways to end a line ends one here.
    for block in stream.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        fields: dict[str, Any] = {}
        for line in block.split("\n"):
            if line and not line.startswith(":"):
                name, colon, value = line.partition(":")
                assert (colon, name in ("id", "data", "event")) == (":", True), line
                assert name not in fields, block
                fields[name] = value.removeprefix(" ")
        if fields:
            found.append(fields)
    return found
