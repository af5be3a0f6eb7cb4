"""Streams over a real server and a real line: what tests of `everturn.server.streams.open` stand on."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Generator
from types import UnionType

import aiohttp
import msgspec
import uvicorn
from starlette.requests import Request
from starlette.types import Receive, Scope
from starlette.types import Send as AsgiSend

from everturn.access.access import Access
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.api import StreamItem
from everturn.app import App
from everturn.config.server_options import ServerOptions
from everturn.core.chunks import FinishChunk, TextChunk
from everturn.core.deltas import Delta
from everturn.core.events import Event, RequestRetried, StepFinished, StepInterrupted, StepRestarted, StepStarted
from everturn.core.options import TurnOptions
from everturn.core.parts import TextPart, ToolPart
from everturn.core.requests import ModelRequest
from everturn.core.tenants.accounts import Principal, Role
from everturn.errors import EverturnError
from everturn.server.streams.open import StreamEndpoints
from everturn.stores.accounts import MemoryAccounts

_decode = msgspec.json.Decoder(StreamItem).decode


class Taps:
    """A model that says what a test lets it say: one tap for each turn, by what the person asked."""

    name = "taps"

    def __init__(self) -> None:
        self._taps: dict[str, asyncio.Queue[str]] = {}

    def tap(self, prompt: str) -> asyncio.Queue[str]:
        """What is put in here is said in answer to this; "" ends the answer."""
        return self._taps.setdefault(prompt, asyncio.Queue())

    async def stream(self, request: ModelRequest) -> AsyncIterator[list[TextChunk | FinishChunk]]:
        """Say it."""
        [prompt] = [part.text for part in request.messages[-1].parts if isinstance(part, TextPart)]
        while text := await self.tap(prompt).get():
            yield [TextChunk(text)]
        yield [FinishChunk("stop")]


def house_of(runtime: App, streams: int = 1000) -> ServerContext:
    """A house with one agent, in which a tenant may have so many streams."""
    agents = Agents([AgentSpec("test", TurnOptions())], default_limits=TenantLimits(streams=streams))
    return ServerContext(runtime, getattr(runtime.store, "accounts", None) or MemoryAccounts(), agents)


def somebody(role: Role = "owner", credential: str = "key", tenant: str = "local") -> Principal:
    """Whoever asks."""
    return Principal(tenant, "ada", role, credential)


Answer = Callable[[Access, StreamEndpoints, Request], Awaitable[object]]


async def answer(access: Access, streams: StreamEndpoints, request: Request) -> object:
    """`/{session}`, `/{session}/{turn}` and `/` with `?after=`: what the application does, without its doors."""
    session, _, turn = request.url.path[1:].partition("/")
    after = request.headers.get("last-event-id") or request.query_params.get("after", "")
    if not session:
        return await streams.inbox(access)
    return await (streams.turn(access, session, turn, after) if turn else streams.session(access, session, after))


async def so(holds: Callable[[], bool]) -> None:
    """Wait until that is so."""
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never was so")


class Server:
    """A node that serves streams on a port of its own."""

    def __init__(self, house: ServerContext, streams: StreamEndpoints, port: int) -> None:
        self.house, self.streams, self.url = house, streams, f"http://127.0.0.1:{port}"


@contextlib.asynccontextmanager
async def serving(
    house: ServerContext, options: ServerOptions | None = None, answer: Answer = answer, gone: Collection[str] = ()
) -> AsyncGenerator[Server]:
    """Serve the streams of a house; `?role=` and `?key=` say who asks, and `gone` which keys hold no more."""

    async def standing(principals: Collection[Principal]) -> set[str]:
        return {principal.credential for principal in principals} & set(gone)

    streams = StreamEndpoints(house, options or ServerOptions(merge=0.01), standing)

    async def app(scope: Scope, receive: Receive, send: AsgiSend) -> None:
        request = Request(scope, receive)
        query = request.query_params
        principal = somebody(query.get("role", "owner"), query.get("key", "key"))  # type: ignore[arg-type]
        try:
            response = await answer(Access(house, principal), streams, request)
        except EverturnError as error:
            await send({"type": "http.response.start", "status": 499, "headers": []})
            await send({"type": "http.response.body", "body": type(error).__name__.encode()})
            return
        await response(scope, receive, send)  # type: ignore[operator]

    config = uvicorn.Config(app, port=0, lifespan="off", log_config=None, access_log=False, ws="none")
    server = uvicorn.Server(config)
    with signals_untouched():
        socket = config.bind_socket()
        task = asyncio.create_task(server.serve(sockets=[socket]))
        await streams.start()
        await so(lambda: server.started)
        try:
            yield Server(house, streams, socket.getsockname()[1])
        finally:
            await streams.aclose()
            server.should_exit = server.force_exit = True
            await task
            socket.close()


@contextlib.contextmanager
def signals_untouched() -> Generator[None]:
    before = uvicorn.Server.capture_signals
    uvicorn.Server.capture_signals = lambda self: contextlib.nullcontext()  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        uvicorn.Server.capture_signals = before


class Page:
    """Somebody's page: draws what it is shown, complains when a piece does not fit, and comes back where it was."""

    def __init__(self, url: str, **query: str) -> None:
        self.url, self.query = url, query
        self.cursor, self.why = "", ""
        self.log: list[tuple[int, Event]] = []
        self.partial: dict[str, dict[int, str]] = {}
        self.texts: dict[str, str] = {}  # turn -> all text of it
        self.messages = 0
        self._last = ""

    async def read(self, until: Callable[["Page"], bool] | None = None, chunk: int = 65_536) -> str:
        """Read on until that holds, or the stream ends; then hang up."""
        headers = {"last-event-id": self.cursor} if self.cursor else {}
        timeout = aiohttp.ClientTimeout(total=40)
        self.why = ""
        async with (
            aiohttp.ClientSession(timeout=timeout) as http,
            http.get(self.url, params=self.query, headers=headers) as response,
        ):
            if response.status != 200:
                return await response.text()
            buffer = bytearray()
            while not (until is not None and until(self)):
                before = len(buffer)
                buffer += await response.content.read(chunk)
                if len(buffer) == before:
                    break
                if buffer.find(b"\n\n", max(before - 1, 0)) < 0:
                    continue
                *whole, buffer = buffer.split(b"\n\n")
                for message in whole:
                    self._take(message.decode())
                    if self.why or (until is not None and until(self)):
                        break
                if self.why:
                    break
        return self.why

    def _take(self, message: str) -> None:
        if message.startswith(":"):
            return
        self.messages += 1
        fields = dict(line.split(": ", 1) for line in message.split("\n"))
        item = _decode(fields["data"])
        if item.end:
            assert "id" not in fields
            self.why = item.end
        elif item.event is not None:
            self._draw(item.seq, item.event)
        elif item.delta is not None:
            self._write(item.delta)
        self.cursor = fields.get("id", self.cursor)

    def _write(self, delta: Delta) -> None:
        parts = self.partial[delta.turn]
        assert delta.offset == len(parts.get(delta.part, "")), (delta, parts)
        parts[delta.part] = parts.get(delta.part, "") + delta.text

    def _draw(self, seq: int, event: Event) -> None:
        assert not self.log or seq > self.log[-1][0]
        self.log.append((seq, event))
        match event:
            case StepStarted(turn=turn) | StepRestarted(turn=turn) | RequestRetried(turn=turn):
                self.partial[turn] = {}
            case StepFinished(turn=turn, parts=parts) | StepInterrupted(turn=turn, parts=parts):
                drawn = self.partial.pop(turn)
                for at, part in enumerate(parts):
                    whole = part.arguments if isinstance(part, ToolPart) else getattr(part, "text", "")
                    assert drawn.get(at, "") == whole
                    self.texts[turn] = self.texts.get(turn, "") + whole
            case _:
                pass

    def has(self, kind: type[Event] | UnionType, times: int = 1) -> bool:
        """Whether so many events of a kind were seen."""
        return sum(isinstance(event, kind) for _, event in self.log) >= times

    @property
    def live(self) -> dict[str, str]:
        """What is being said: turn -> its text so far."""
        return {turn: "".join(parts.values()) for turn, parts in self.partial.items()}
