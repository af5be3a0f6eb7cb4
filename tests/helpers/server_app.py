"""A server in this process, and somebody who asks it without a socket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from everturn.access.auth.oidc_login import LoginFlow
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.config.server_options import ServerOptions
from everturn.core.options import TurnOptions
from everturn.core.tenants.accounts import Principal, Role, Tenant, User
from everturn.errors import NotRecognised
from everturn.models.scripted import ScriptedModel
from everturn.server.app import Application, make_app
from everturn.server.route import Route
from everturn.server.streams.registry import StreamSlot
from everturn.stores.memory import MemoryStore

PORT = 8000
HOST = f"127.0.0.1:{PORT}"


class Answer(Struct):
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers if key == name)

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def code(self) -> str:
        return self.json["error"]["code"]


class PlainDoor:
    """A door that knows a few words: `Bearer tenant/user/role`, and the same as a cookie."""

    links: dict[str, str]

    def __init__(self) -> None:
        self.links = {}
        self.attempts = 0
        self.codes: set[str] = set()

    async def authenticate(self, authorization: str | None, cookie: str | None) -> Principal:
        word = authorization.removeprefix("Bearer ") if authorization else cookie or ""
        parts = word.split("/")
        if len(parts) != 3:
            raise NotRecognised("nobody")
        role: Any = parts[2]
        return Principal(parts[0], parts[1], role, credential=word, kind="key" if authorization else "login")

    def was_recently_valid(self, authorization: str | None = None, cookie: str | None = None) -> bool:
        return False

    async def csrf(self, principal: Principal) -> str:
        return f"csrf of {principal.credential}"

    async def is_csrf(self, principal: Principal, token: str) -> bool:
        return token == await self.csrf(principal)

    async def begin_oidc(self, redirect: str) -> LoginFlow:
        self.attempts += 1
        number = "" if self.attempts == 1 else str(self.attempts)
        return LoginFlow(f"https://id.example/?back={redirect}", f"signed{number}", f"state{number}")

    async def finish_oidc(
        self, code: str, state: str, cookie: str, redirect: str, seconds: float = 0
    ) -> tuple[str, Principal]:
        if not code.startswith("code") or cookie != f"signed{state.removeprefix('state')}" or code in self.codes:
            raise NotRecognised("nobody")
        self.codes.add(code)
        return "ours/owner/owner", await self.authenticate(None, "ours/owner/owner")

    async def log_in(self, secret: str, seconds: float = 0.0) -> tuple[str, Principal]:
        word = self.links.pop(secret, "")
        return word, await self.authenticate(None, word)

    async def log_out(self, principal: Principal) -> None: ...


class NoStreams:
    """Streams that end at once; whether somebody may follow is asked all the same."""

    is_over = False

    def end_erased(self, session: str) -> None:
        """Nobody follows anything here."""

    async def end_lost_access(self) -> None:
        """Nobody follows anything here."""

    async def session(self, access: Any, session: str, after: str = "") -> Response:
        await access.follow(session)
        return Response(b"", media_type="text/event-stream")

    async def turn(self, access: Any, session: str, turn: str, after: str = "") -> Response:
        await access.follow(session)
        await access.sessions.turn(session, turn)
        return Response(b"", media_type="text/event-stream")

    async def inbox(self, access: Any) -> Response:
        await access.inbox()
        return Response(b"", media_type="text/event-stream")

    def reserve(self, access: Any) -> StreamSlot:
        return StreamSlot(lambda: None)

    async def encoded(
        self, access: Any, session: str, turn: str, encoder: Any, headers: Any = None, seat: Any = None
    ) -> Any:
        await access.follow(session)
        await access.sessions.turn(session, turn)
        response: Any = Response(encoder.begin(), media_type="text/event-stream")
        response.end_reason = "over"
        return response

    async def start(self) -> None: ...

    async def aclose(self, grace: float = 0.0) -> None:
        self.is_over = True


async def make_house(runtime: App | None = None, requests: float = 0.0, **limits: Any) -> ServerContext:
    """A house with two tenants, `ours` and `theirs`, each with a user of every role."""
    runtime = runtime or App(ScriptedModel(*["Hello."] * 20), store=MemoryStore())
    store: Any = runtime.store
    agents = Agents([AgentSpec("assistant", TurnOptions())], default_limits=TenantLimits(requests=requests, **limits))
    roles: tuple[Role, ...] = ("viewer", "member", "approver", "owner", "operator")
    for tenant in ("ours", "theirs"):
        await store.accounts.put_tenant(Tenant(tenant))
        for role in roles:
            await store.accounts.put_user(User(tenant, role, role=role))
    return ServerContext(runtime, store.accounts, agents)


def make(
    house: Any,
    door: Any = None,
    streams: Any = None,
    options: ServerOptions | None = None,
    extra: Sequence[Route] = (),
    **more: Any,
) -> Application:
    entrance: Any = door or PlainDoor()
    event_streams: Any = streams or NoStreams()
    return make_app(house, entrance, event_streams, options or ServerOptions(), extra, **more)


def word(role: str, tenant: str = "ours", user: str = "") -> str:
    return f"{tenant}/{user or role}/{role}"


async def ask(
    app: Callable[..., Awaitable[None]],
    method: str,
    path: str,
    bearer: str = "",
    *,
    body: bytes | None = None,
    json: Any = None,
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    host: str = HOST,
    pieces: Sequence[bytes] | None = None,
    cookie: str = "",
) -> Answer:
    """Ask an application something; `who` is a bearer word, `cookie` a login."""
    header_fields = [
        (name.lower(), value) for name, value in (headers.items() if isinstance(headers, Mapping) else headers)
    ]
    names = {name for name, _ in header_fields}
    if json is not None:
        body = msgspec.json.encode(json)
        if "content-type" not in names:
            header_fields.append(("content-type", "application/json"))
    if host:
        header_fields.append(("host", host))
    if bearer:
        header_fields.append(("authorization", f"Bearer {bearer}"))
    if cookie:
        header_fields.append(("cookie", f"everturn-{PORT}={cookie}"))
    parts = list(pieces) if pieces is not None else [body or b""]
    if pieces is not None:
        header_fields.append(("transfer-encoding", "chunked"))
    elif body is not None and "content-length" not in names:
        header_fields.append(("content-length", str(len(body))))
    raw, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": raw,
        "raw_path": raw.encode("utf-8", "surrogatepass"),
        "query_string": query.encode(),
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in header_fields],
        "server": ("127.0.0.1", PORT),
        "client": ("127.0.0.1", 5),
        "scheme": "http",
        "http_version": "1.1",
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if not parts:
            return {"type": "http.disconnect"}
        piece = parts.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(parts)}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    shown = [(name.decode(), value.decode()) for name, value in start["headers"]]
    return Answer(start["status"], shown, b"".join(message.get("body", b"") for message in sent[1:]))
