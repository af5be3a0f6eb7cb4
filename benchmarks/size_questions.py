"""What people, programs and workers ask of a store, timed one question after another: see size.py.

The questions of people go through the ASGI application in this process, as a server would that has read a request;
those of workers through the `Store` port.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from msgspec import Struct
from size_load import session_name

from everturn.access.auth.authentication import Authenticator
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.cluster.ps import list_open_store
from everturn.config.server_options import ServerOptions
from everturn.core.options import TurnOptions
from everturn.core.tenants.accounts import LOCAL
from everturn.models.scripted import ScriptedModel
from everturn.server.app import make_app
from everturn.server.streams.open import StreamEndpoints
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import (
    NOON,
    call_requested_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)

Ask = Callable[[], Awaitable[int]]


class Row(Struct, frozen=True):
    """A question, how long it took in the middle of many tries and at worst, and how much came back."""

    what: str
    before: str  # what an earlier review measured, with a tenth of the sessions
    median: float  # milliseconds
    slowest: float  # milliseconds
    cpu: float  # milliseconds of this process
    size: int  # bytes, or lines


class Asking:
    """A server in this process, and somebody who asks it."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.app = App(ScriptedModel([]), store=store)
        self.house = ServerContext(
            self.app,
            store.accounts,
            Agents([AgentSpec("default", TurnOptions())], default_limits=TenantLimits(requests=0)),
        )
        self.entrance = Authenticator(store.accounts, self.app.clock)
        options = ServerOptions()
        self.application = make_app(self.house, self.entrance, StreamEndpoints(self.house, options), options)

    async def open(self, folder: Path) -> None:
        """Have something to show at the door."""
        self.token = await self.entrance.local_token(folder / "token")

    async def get(self, path: str) -> bytes:
        """Ask the application, as a server would that has read a request."""
        route, _, query = path.partition("?")
        scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": route,
            "raw_path": route.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"127.0.0.1:8000"), (b"authorization", f"Bearer {self.token}".encode())],
            "client": ("127.0.0.1", 40_000),
            "server": ("127.0.0.1", 8000),
            "scheme": "http",
            "http_version": "1.1",
        }
        statuses, body = list[int](), list[bytes]()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            if "status" in message:
                statuses.append(message["status"])
            body.append(message.get("body", b""))

        await self.application(scope, receive, send)
        if statuses != [200]:
            raise SystemExit(f"{path}: {statuses} {b''.join(body)[:300]!r}")
        return b"".join(body)

    def getting(self, path: str) -> Ask:
        """A question that is a GET."""

        async def ask() -> int:
            return len(await self.get(path))

        return ask

    async def ps(self) -> int:
        lines, _ = await list_open_store(self.store, 100)
        return len(lines)

    async def listed(self) -> int:
        infos = await self.store.session_page(LOCAL, limit=20)
        await self.store.sessions_with_open_gates([info.id for info in infos])
        return len(infos)

    async def spent(self) -> int:
        await self.store.spent(tenant=LOCAL)
        return 1

    async def spent_by_session(self) -> int:
        await self.store.spent(session=session_name(False, 1))
        return 1

    async def scrape(self) -> int:
        self.application.gauges_polled_at = 0.0
        return await self.getting("/metrics")()

    async def send(self) -> int:
        """A command is admitted."""
        name = f"new_{time.time_ns()}"
        await self.store.admit(send_message(name, name, name, "When is lunch today?"))
        return 1

    async def turn(self) -> int:
        """A command is admitted, the session claimed, and a turn written in two appends."""
        name = f"new_{time.time_ns()}"
        await self.store.admit(send_message(name, name, name, "When is lunch today?"))
        claim = await self.store.claim(name, time.time())
        assert claim is not None
        head = await self.store.append(name, 0, turn_started_events(name, command=name), claim.epoch)
        rest = [*call_requested_events(name), *turn_ended_events(name)]
        return await self.store.append(name, head, rest, claim.epoch)

    async def takeover(self) -> int:
        """A process claims a session whose driver has died in a turn."""
        name = f"left_{time.time_ns()}"
        await self.store.admit(send_message(name, name, name, "When is lunch today?"))
        await self.store.append(name, 0, turn_started_events(name, command=name))
        claim = await self.store.claim(name, time.time())
        assert claim is not None
        assert claim.turns
        await self.store.append(name, claim.head, turn_ended_events(name), claim.epoch)
        return 1

    async def overdue(self) -> int:
        return len(await self.store.overdue(NOON, NOON))


async def timed(question: str, before: str, ask: Ask, times: int) -> Row:
    """Ask a few times; the first is not counted, which also connects and prepares."""
    size = await ask()
    took, cpu = list[float](), list[float]()
    for _ in range(times):
        began, used = time.perf_counter(), time.process_time()
        size = await ask()
        took.append((time.perf_counter() - began) * 1000)
        cpu.append((time.process_time() - used) * 1000)
    return Row(question, before, statistics.median(took), max(took), statistics.median(cpu), size)


async def measure(asking: Asking, folder: Path, sessions: int, times: int) -> list[Row]:
    """Every question of the table, one after another."""
    await asking.open(folder)
    get, calm, parked = asking.getting, session_name(False, sessions // 2 // 10 * 10), session_name(True, 10)
    rare = sessions // 3 // 10 * 10
    questions: tuple[tuple[str, str, Ask], ...] = (
        ("GET /api/sessions", "2.5–8 ms", get("/api/sessions?limit=50")),
        ("GET /api/sessions/{session}", "2–12 ms", get(f"/api/sessions/{calm}")),
        ("GET …/messages", "", get(f"/api/sessions/{calm}/messages")),
        ("GET …/log/tail", "", get(f"/api/sessions/{calm}/log/tail")),
        ("GET …/tree", "", get(f"/api/sessions/{calm}/tree")),
        ("GET …/export", "", get(f"/api/sessions/{calm}/export")),
        ("GET …/gates, of a session that waits", "", get(f"/api/sessions/{parked}/gates")),
        ("GET /api/gates", "6–12 s", get("/api/gates")),
        ("search, no match", "1.9–4.5 s", get("/api/search?q=nobodywrotethis")),
        ("search, a word of one session", "0.4–1.0 s", get(f"/api/search?q=rare{rare}")),
        ("search, a word in one session of a thousand", "", get("/api/search?q=some77")),
        ("search, a word in every message", "", get("/api/search?q=common")),
        ("GET /api/usage", "0.5–2.3 s", get("/api/usage")),
        ("what a tenant has spent", "0.6–1.2 s", asking.spent),
        ("what a session has spent", "", asking.spent_by_session),
        ("GET /api/audit", "", get("/api/audit")),
        ("GET /api/grants", "", get("/api/grants")),
        ("GET /readyz", "", get("/readyz")),
        ("GET /metrics", "all gates decoded", asking.scrape),
        ("`everturn ps`", "12–26 s", asking.ps),
        ("`everturn sessions`", "6–12 s", asking.listed),
        ("a message is admitted to a new session", "", asking.send),
        ("a turn: admitted, claimed, written in two appends", "", asking.turn),
        ("a session is taken over and its turn ended, after it was begun", "", asking.takeover),
        ("a sweep for sessions that nobody drives", "", asking.overdue),
    )
    return [await timed(question, before, ask, times) for question, before, ask in questions]
