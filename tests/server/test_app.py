"""The application: who is let in, what is read, and how an error looks."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everturn import api, errors
from everturn.access.access import Access
from everturn.access.context.roles import role_of
from everturn.access.conversations.audio import AudioAccess
from everturn.access.conversations.files import FileAccess
from everturn.access.conversations.sessions import SessionAccess
from everturn.config.server_options import ServerOptions
from everturn.errors import EverturnError
from everturn.server.openapi import find_references
from everturn.server.route import HttpRequestContext, Route
from everturn.server.routes import (
    accounts,
    admin,
    audio,
    hooks,
    presence,
    push,
    schedules,
    settings,
    sharing,
    traces,
    users,
    webhooks,
)
from everturn.server.routes import api as api_routes
from tests.helpers.access_methods import METHODS, RESOURCES
from tests.helpers.server_app import PORT, NoStreams, PlainDoor, ask, make, make_house, word

ROUTES = [
    *api_routes.ROUTES,
    *admin.ROUTES,
    *accounts.ROUTES,
    *schedules.ROUTES,
    *sharing.ROUTES,
    *webhooks.ROUTES,
    *users.ROUTES,
    *settings.ROUTES,
    *(route for route in hooks.ROUTES if route.needs is not None),
    *audio.ROUTES,
    *presence.ROUTES,
    *push.ROUTES,
    *traces.ROUTES,
]


class Recording:
    """Stands for `Access` and its resources: notes what is called, and answers with nothing."""

    def __init__(self, called: list[Any], owner: type = Access) -> None:
        self._called, self._owner = called, owner

    def __getattr__(self, name: str) -> Any:
        if self._owner is Access and name in RESOURCES:
            return Recording(self._called, RESOURCES[name])
        method = getattr(self._owner, name)
        signature = inspect.signature(method)

        async def call(*args: Any, **kwargs: Any) -> Any:
            signature.bind(self, *args, **kwargs)
            self._called.append(method)
            return {FileAccess.read: b"", AudioAccess.speak: (b"", "audio/wav")}.get(method)

        return call


class RecordingHouse:
    """A house in which everything may be asked for and nothing is there."""

    def __init__(self, failing: BaseException | None = None) -> None:
        self.called: list[Any] = []  # methods
        self.failing = failing
        self.counted: list[str] = []

    def make_access(self) -> Any:
        if self.failing is not None:
            raise self.failing
        return Recording(self.called)

    def count(self, tenant: str) -> None:
        self.counted.append(tenant)

    @property
    def agents(self) -> Any:
        class Limits:
            uploads = 1000

        class Agents:
            def limits(self, tenant: str) -> Limits:
                return Limits()

        return Agents()


@pytest.fixture(autouse=True)
def _access_of_a_recording_house(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_access(house: Any, principal: Any) -> Any:
        return house.make_access() if isinstance(house, RecordingHouse) else Access(house, principal)

    monkeypatch.setattr("everturn.server.app.Access", make_access)


BODIES: dict[Any, Any] = {
    api.AnswerGate: {"hash": "h", "allow": "once"},
    api.ClaimGate: {"hash": "h", "claim": "c" * 16},
    api.RevertFiles: {"root": "", "tree": "t"},
    api.ExplainCall: {"tool": "t"},
    api.TrustServer: {"hash": "h"},
    api.GetMcpPrompt: {"name": "review"},
    api.ReadMcpResource: {"uri": "notes://today"},
    api.NewInvitation: {"user": "new"},
    api.PasswordLogin: {"user": "owner", "password": "x"},
    api.ChangePassword: {"new": "x"},
    api.OpenInvitation: {"token": "x"},
    api.AcceptInvitation: {"token": "x"},
    api.SwitchAgent: {"agent": "helper"},
    api.PatchSession: {"title": "x"},
    api.PutRating: {"rating": "up"},
    api.NewPushSubscription: {"endpoint": "https://push.example.com/x", "p256dh": "x", "auth": "x", "key": "x"},
    api.PutMemory: {"path": "a", "text": "x"},
    api.NewWebhook: {"url": "https://example.com/hook"},
    api.NewSchedule: {"text": "x", "cron": "0 9 * * *"},
    api.ScheduleDefinition: {"text": "x", "cron": "0 9 * * *"},
    api.PutPrompt: {"name": "a", "text": "x"},
    api.PutInstructions: {"text": "x"},
    api.PutSessionInstructions: {"text": "x"},
    api.NewModelKey: {"key": "sk-something-long"},
    api.NewModelSettings: {"settings": {"model": "openai:m"}},
    api.NewAgentSettings: {"settings": {}},
    api.RestoreVersion: {"version": 1},
    api.NewHook: {"scheme": "standard", "text": "x"},
    api.ForkAnswer: {"step": 1},
    api.Looking: {"tab": "t", "at": []},
    api.DryRunRules: {"rules": []},
    api.ExplainDraft: {"rules": [], "tool": "t"},
    api.FinishMcpLogin: {"state": "x"},
    api.NewRuleSettings: {"rules": []},
    api.OpenLink: {"link": "x"},
    api.SpeakText: {"text": "x"},
    api.PlanSchedule: {"cron": "0 9 * * *"},
    api.OpenAsAdministrator: {"reason": "x"},
}


async def call(app: Any, route: Route, credential: str, **ids: str) -> Any:
    """Ask a route with something that fits it."""
    path = route.path
    for name in (part[1:-1] for part in route.path.split("/") if part.startswith("{")):
        path = path.replace(f"{{{name}}}", ids.get(name, "absent"))
    query = "&".join(f"{param.name}=x" for param in route.query if param.is_needed)
    more: dict[str, Any] = {}
    if route.takes == "bytes":
        more = {"body": b"data", "headers": {"content-type": route.media[0].replace("*/*", "image/png")}}
    elif route.body is not None:
        more = {"json": BODIES.get(route.body, {})}
    return await ask(app, route.method, f"{path}?{query}" if query else path, credential, **more)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
async def test_a_route_asks_only_the_method_whose_role_it_takes(route: Route, monkeypatch: pytest.MonkeyPatch) -> None:
    house = RecordingHouse()
    if route.name == "export":
        monkeypatch.setattr("pathlib.Path.read_bytes", lambda self: b"zip")
    answer = await call(make(house), route, word("operator"))
    assert answer.status < 300, answer.body
    assert route.calls is not None
    asked_too = {SessionAccess.turn} if route.name == "follow_turn" else set[Any]()  # by the streams
    assert set(house.called) == {route.calls} | asked_too
    assert route.needs == role_of(route.calls)
    assert house.counted == ([] if route.is_uncounted else ["ours"])


def test_every_method_of_access_has_a_route() -> None:
    faces = {SessionAccess.start_with_id}  # only they have names of their own
    assert {route.calls for route in ROUTES} == set(METHODS.values()) - faces


def failing(error: BaseException) -> Any:
    return make(RecordingHouse(error))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.KeyConflict("x"), 409),
        (errors.SessionBusy("x"), 409),
        (errors.AnsweredOtherwise("x"), 409),
        (errors.HashMismatch("x"), 409),
        (errors.GateExpired("x"), 410),
        (errors.ConfigError("x"), 422),
        (errors.TooMuch("x", 3), 429),
        (errors.StoreUnavailable("x"), 503),
        (errors.EngineUnavailable("x"), 503),
        (ZeroDivisionError("x"), 500),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_errors_have_their_status_and_our_body(error: Exception, status: int) -> None:
    answer = await ask(failing(error), "GET", "/api/me", word("viewer"))
    assert answer.status == status
    failure = msgspec.json.decode(answer.body, type=api.ErrorResponse)
    assert failure.error.code
    assert bool(answer.header("retry-after")) == (status in (429, 503))
    assert answer.header("content-type") == "application/json"


async def test_without_a_credential_nothing_is_distinguished() -> None:
    app = make(await make_house())
    paths = ["/api/me", "/api/nothing", "/", "/api/sessions/x", "/metrics", "/v1/models", "/admin", "//", "/api/../x"]
    answers = [await ask(app, "GET", path) for path in paths if path != "/"]
    answers += [await ask(app, method, "/api/sessions") for method in ("PATCH", "POST", "HEAD", "TRACE")]
    assert {answer.status for answer in answers} == {401}
    # Under /v1 the same is said as programs for that API read it.
    assert len({(answer.body, tuple(answer.headers)) for answer in answers if b"param" not in answer.body}) == 1


async def test_with_one_the_rest_is_404_or_405() -> None:
    app = make(await make_house())
    assert (await ask(app, "GET", "/api/nothing", word("viewer"))).code == "unknown"
    answer = await ask(app, "PUT", "/api/sessions", word("owner"), json={})
    assert (answer.status, answer.header("allow")) == (405, "GET, POST")
    for path in ("/api/sessions/", "/api//me", "/api/me/", "/api/sessions/a%2fb/tree/x", "/api/sessions/%00"):
        assert (await ask(app, "GET", path, word("viewer"))).status == 404, path


async def test_an_encoded_slash_stays_inside_its_id() -> None:
    seen: list[Any] = []

    async def handler(request: HttpRequestContext) -> None:
        seen.append(dict(request.ids))

    route = Route(method="GET", path="/x/{one}/y/{two}", name="x", needs="viewer", about="", handler=handler)
    app = make(RecordingHouse(), extra=[route])
    assert (await ask(app, "GET", "/x/a%2Fb/y/%2e%2e", word("viewer"))).status == 204
    assert seen == [{"one": "a/b", "two": ".."}]


async def test_a_role_that_is_not_enough_is_told_before_anything_is_looked_at() -> None:
    app = failing(AssertionError("nobody may come this far"))
    for path in ("/api/sessions/x/messages", "/api/sessions"):
        answer = await ask(app, "POST", path, word("viewer"), body=b"no json", headers={"content-type": "text/plain"})
        assert answer.code == "forbidden"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 415),
        ("application/json; charset=utf-16", 415),
        ("application/json-patch+json", 415),
        ("", 415),
        ("application/json", 201),
        ("Application/JSON; charset=UTF-8", 201),
    ],
)
async def test_json_comes_as_json(kind: str, status: int) -> None:
    app = make(RecordingHouse(), extra=[])
    answer = await ask(app, "POST", "/api/sessions", word("member"), body=b"{}", headers={"content-type": kind})
    assert answer.status == (204 if status == 201 else status)


async def test_an_empty_body_is_an_empty_object() -> None:
    house = RecordingHouse()
    assert (await ask(make(house), "POST", "/api/sessions/s/turns/t/cancel", word("member"))).status == 204
    assert house.called == [SessionAccess.cancel_turn]


async def test_a_body_that_is_too_large_is_refused_with_and_without_its_length() -> None:
    app = make(RecordingHouse(), options=ServerOptions(body=100))
    credential, kind = word("member"), {"content-type": "application/json"}
    declared = await ask(app, "POST", "/api/sessions", credential, body=b"", headers={**kind, "content-length": "101"})
    streamed = await ask(app, "POST", "/api/sessions", credential, pieces=[b"[" * 60, b"[" * 60, b""], headers=kind)
    for answer in (declared, streamed):
        assert (answer.status, answer.code, answer.header("connection")) == (413, "too_large", "close")
    assert app._bodies.memory.held == 0


async def test_an_upload_may_be_larger_and_has_its_own_limit() -> None:
    house = RecordingHouse()
    app = make(house, options=ServerOptions(body=100))
    credential, kind = word("member"), {"content-type": "image/svg+xml"}
    assert (await ask(app, "POST", "/api/files", credential, body=b"x" * 900, headers=kind)).status == 204
    assert (await ask(app, "POST", "/api/files", credential, body=b"x" * 1001, headers=kind)).status == 413
    assert (await ask(app, "POST", "/api/files", credential, body=b"x", headers={"content-type": "no"})).status == 415
    assert (await ask(app, "POST", "/api/import", credential, body=b"x", headers=kind)).status == 415


async def test_a_bad_value_says_where_it_stands() -> None:
    app = make(RecordingHouse())
    answer = await ask(app, "POST", "/api/sessions", word("member"), json={"text": 5})
    assert (answer.status, answer.json["error"]["where"]) == (422, "$.text")
    answer = await ask(app, "GET", "/api/sessions?limit=0", word("viewer"))
    assert (answer.status, answer.json["error"]["where"]) == (422, "limit")
    answer = await ask(app, "POST", "/api/sessions", word("member"), json={}, headers={"idempotency-key": "k" * 201})
    assert (answer.status, answer.json["error"]["where"]) == (422, "idempotency-key")


async def test_a_cookie_changes_something_only_with_its_token() -> None:
    house = RecordingHouse()
    app = make(house)
    cookie = word("member")
    for headers in ({}, {"x-csrf-token": "csrf of somebody"}, {"x-csrf-token": ""}):
        answer = await ask(app, "POST", "/api/sessions", cookie=cookie, json={}, headers=headers)
        assert (answer.status, answer.code) == (403, "csrf")
    assert house.called == []
    assert (await ask(app, "GET", "/api/me", cookie=cookie)).status == 204
    headers = {"x-csrf-token": f"csrf of {cookie}"}
    assert (await ask(app, "POST", "/api/sessions", cookie=cookie, json={}, headers=headers)).status == 204


async def test_a_node_that_leaves_takes_no_new_streams_and_says_so() -> None:
    app = make(await make_house())
    assert (await ask(app, "GET", "/readyz")).status == 200
    app.is_leaving = True
    assert (await ask(app, "GET", "/healthz")).status == 200
    assert (await ask(app, "GET", "/readyz")).code == "leaving"
    answer = await ask(app, "GET", "/api/events", word("viewer"))
    assert (answer.status, answer.header("retry-after")) == (503, "1")
    assert (await ask(app, "GET", "/api/me", word("viewer"))).status == 200


async def test_a_store_that_does_not_answer_makes_the_node_unready(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    house = await make_house()
    app = make(house)
    monkeypatch.setattr("everturn.server.routes.public.READY_TIMEOUT", 0.01)
    monkeypatch.setattr("everturn.server.routes.public.READY_CACHE", 0.0)

    async def never(session: str) -> int:
        await asyncio.Event().wait()
        return 0

    monkeypatch.setattr(house.app.store, "head", never)
    assert (await ask(app, "GET", "/readyz")).code == "busy"

    async def broken(session: str) -> int:
        raise errors.StoreUnavailable("no")

    monkeypatch.setattr(house.app.store, "head", broken)
    assert (await ask(app, "GET", "/readyz")).status == 503


async def test_measures_are_for_operators() -> None:
    app = make(await make_house(), render=lambda: b"up 1\n")
    assert (await ask(app, "GET", "/metrics", word("owner"))).status == 403
    answer = await ask(app, "GET", "/metrics", word("operator"))
    assert (answer.status, answer.body) == (200, b"up 1\n")


async def test_a_tenant_that_asks_too_often_is_told_when_to_come_again() -> None:
    app = make(await make_house(requests=2))
    answers = [await ask(app, "GET", "/api/me", word("viewer")) for _ in range(6)]
    assert answers[0].status == 200
    assert answers[-1].status == 429
    assert int(answers[-1].header("retry-after")) >= 1
    assert (await ask(app, "GET", "/api/me", word("viewer", "theirs"))).status == 200


# Files -----------------------------------------------------------------------------------------------------------------


class Blobs(RecordingHouse):
    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data = data

    def make_access(self) -> Any:
        house = self

        class Files:
            async def read(self, session: str, blob: str) -> bytes:
                return house.data

        class One:
            files = Files()

        return One()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"<html><script>alert(1)</script>", "application/octet-stream"),
        (b"<svg onload=alert(1)>", "application/octet-stream"),
        (b"\x89PNG\r\n\x1a\n<script>", "image/png"),
        (b"%PDF-1.7", "application/octet-stream"),
        (b"x" * 200_000, "application/octet-stream"),
    ],
    ids=["html", "svg", "png", "pdf", "long"],
)
async def test_bytes_of_files_are_saved_and_never_opened(data: bytes, kind: str) -> None:
    answer = await ask(
        make(Blobs(data)), "GET", "/api/sessions/s/blobs/b", word("viewer"), headers={"range": "bytes=0-1,0-1,0-1"}
    )
    assert (answer.status, answer.body) == (200, data)
    assert answer.header("content-type") == kind
    assert answer.header("content-disposition") == "attachment"
    assert answer.header("x-content-type-options") == "nosniff"
    assert "sandbox" in answer.header("content-security-policy")


# Login -----------------------------------------------------------------------------------------------------------------

FORM = {"content-type": "application/x-www-form-urlencoded"}


async def test_a_link_is_used_up_by_a_button_and_not_by_a_look() -> None:
    door = PlainDoor()
    door.links = {"one-time": word("owner")}
    app = make(await make_house(), door)
    for _ in range(3):
        answer = await ask(app, "GET", "/login?token=one-time")
        assert (answer.status, b"one-time" in answer.body) == (200, True)
    answer = await ask(app, "POST", "/login", body=b"token=one-time", headers=FORM)
    assert (answer.status, answer.header("location")) == (303, "/")
    cookie = answer.header("set-cookie")
    assert cookie.startswith(f"everturn-{PORT}={word('owner')}; Path=/; HttpOnly; SameSite=Strict; Max-Age=")
    assert "Secure" not in cookie
    assert (await ask(app, "POST", "/login", body=b"token=one-time", headers=FORM)).status == 401


async def test_behind_https_the_cookie_is_bound_to_its_host() -> None:
    door = PlainDoor()
    door.links = {"one": word("owner")}
    app = make(await make_house(), door, options=ServerOptions(public_url="https://chat.example"))
    answer = await ask(app, "POST", "/login", body=b"token=one", headers=FORM, host="chat.example")
    assert answer.header("set-cookie").startswith("__Host-everturn=")
    assert answer.header("set-cookie").endswith("; Secure")
    assert "Domain" not in answer.header("set-cookie")


async def test_what_is_in_a_link_is_no_html() -> None:
    answer = await ask(make(await make_house()), "GET", "/login?token=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    assert b"<script>" not in answer.body
    policy = answer.header("content-security-policy")
    assert policy.startswith("default-src 'none'")
    assert "script" not in policy


async def test_the_notice_says_who_one_is_and_nothing_to_unknown_clients(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVERTURN_WEB", str(tmp_path))  # where nothing was built
    app = make(await make_house())
    assert b"not logged in" in (await ask(app, "GET", "/")).body
    assert b"<b>owner</b> in <b>ours</b>" in (await ask(app, "GET", "/", cookie=word("owner"))).body


async def test_logging_out_takes_the_cookie_away_and_no_key() -> None:
    app = make(await make_house())
    headers = {"x-csrf-token": f"csrf of {word('owner')}"}
    answer = await ask(app, "POST", "/api/logout", cookie=word("owner"), headers=headers)
    assert answer.status == 204
    assert "Max-Age=0" in answer.header("set-cookie")
    assert (await ask(app, "POST", "/api/logout", word("owner"))).status == 422


async def test_a_login_with_a_provider_goes_there_and_comes_back_with_what_it_was_given() -> None:
    app = make(await make_house())
    out = await ask(app, "GET", "/oidc/login")
    assert (out.status, out.header("location")) == (
        303,
        f"https://id.example/?back=http://127.0.0.1:{PORT}/oidc/callback",
    )
    brought = out.header("set-cookie").partition(";")[0]
    name = brought.partition("=")[0]
    assert name.startswith(f"everturn-{PORT}-oidc-")
    assert out.header("set-cookie").partition("; ")[2] == "Path=/; HttpOnly; SameSite=Lax; Max-Age=600"
    back = "/oidc/callback?code=code&state=state&iss=id"
    assert (await ask(app, "GET", back)).status == 401
    assert (await ask(app, "GET", "/oidc/callback?code=x&state=state", headers={"cookie": brought})).status == 401
    fine = await ask(app, "GET", back, headers={"cookie": brought, "sec-fetch-site": "cross-site"})
    assert fine.status == 200
    assert f"everturn-{PORT}=ours/owner/owner; Path=/; HttpOnly; SameSite=Strict" in fine.header("set-cookie")
    assert f"{name}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0" in fine.header("set-cookie")


async def test_behind_https_the_cookies_of_a_login_with_a_provider_are_secure() -> None:
    app = make(await make_house(), options=ServerOptions(public_url="https://chat.example.com"))
    out = await ask(app, "GET", "/oidc/login", host="chat.example.com")
    cookie = out.header("set-cookie")
    assert cookie.startswith("__Host-everturn-oidc-")
    assert cookie.endswith("; Secure")


# The document ----------------------------------------------------------------------------------------------------------


async def test_the_document_has_every_route_and_every_reference_leads_somewhere() -> None:
    app = make(await make_house())
    document = (await ask(app, "GET", "/openapi.json", word("viewer"))).json
    for route in app.table.routes:
        operation = document["paths"][route.path][route.method.lower()]
        assert (operation["operationId"], operation.get("security") == []) == (route.name, route.needs is None)
        assert str(route.status) in operation["responses"]
    count = sum(len(methods) for methods in document["paths"].values())
    assert count == len(app.table.routes)
    for reference in find_references(document):
        at: Any = document
        for step in reference.removeprefix("#/").split("/"):
            at = at[step]
    assert "LogEvent" not in document["components"]["schemas"]  # a union is written out, with its tags
    item = document["components"]["schemas"]["StreamItem"]
    assert item["properties"]["event"]


async def test_the_document_is_the_same_every_time() -> None:
    house = await make_house()
    first, other = [await ask(make(house), "GET", "/openapi.json", word("viewer")) for _ in range(2)]
    assert first.body == other.body


def test_two_routes_in_one_place_are_a_mistake() -> None:
    route = Route(
        method="GET", path="/api/me", name="other", needs="viewer", about="", handler=api_routes.ROUTES[0].handler
    )
    with pytest.raises(EverturnError, match="two routes"):
        make(RecordingHouse(), extra=[route])


async def test_a_stream_that_is_over_is_no_concern_of_the_application() -> None:
    streams = NoStreams()
    app = make(RecordingHouse(), streams=streams)
    answer = await ask(app, "GET", "/api/sessions/s/events", word("viewer"), headers={"last-event-id": "12:0,3"})
    assert answer.header("content-type").startswith("text/event-stream")
