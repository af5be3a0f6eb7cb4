"""The routes that anybody may ask: health, the way in and out, and a page for whoever comes with a browser."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Generator
from contextlib import contextmanager
from html import escape
from typing import Final, Protocol
from urllib.parse import parse_qs

from starlette.responses import Response

from everturn.access.access import House
from everturn.access.entrance import Entrance
from everturn.config.options import ServerOptions
from everturn.core.accounts import Principal
from everturn.errors import EverturnError, NotRecognised, UnknownSession
from everturn.server import sandbox
from everturn.server.guarding import Names, Scope, cookie_name, cookies_of
from everturn.server.pages import Pages
from everturn.server.problems import Refusal
from everturn.server.routing import Asked, Handler, Param, Route
from everturn.telemetry import metrics

FORM: Final = "application/x-www-form-urlencoded"
HTML: Final = "text/html; charset=utf-8"
STYLE: Final = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.6 system-ui,sans-serif;max-width:44rem;margin:12vh auto 4rem;padding:0 1.25rem}"
    "h1{font-size:1.6rem;margin:0 0 1rem}"
    "code,pre{font:14px/1.6 ui-monospace,monospace}"
    "pre{overflow:auto;padding:.9rem 1rem;border-radius:8px;background:light-dark(#f3f4f6,#26282c)}"
    "button{font:inherit;font-weight:600;padding:.55rem 1.6rem;border:0;border-radius:8px;color:#fff;background:#1f5fd0;"
    "cursor:pointer}button:focus-visible{outline:3px solid #8ab4ff;outline-offset:2px}"
    ".small{font-size:.9rem;opacity:.75}"
)
_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
PAGE_HEADERS: Final = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    # With `no-referrer` a browser says `Origin: null` when the form is sent, and that is nobody's page.
    "referrer-policy": "same-origin",
}
AWAY: Final = 600.0
"""Seconds that somebody may take at the provider."""

READY: Final = 1.0
"""Seconds in which the store must answer."""


class Site(Protocol):
    """What these routes know of the application."""

    house: House
    entrance: Entrance
    options: ServerOptions
    is_leaving: bool

    async def recognise(self, scope: Scope) -> Principal: ...


def page(
    title: str, inner: str, status: int = 200, headers: dict[str, str] | None = None, language: str = "en"
) -> Response:
    """A small page of ours; `inner` is HTML, in which whatever came from outside is escaped."""
    text = (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>{inner}</body></html>"
    )
    return Response(text, status, PAGE_HEADERS | (headers or {}), media_type=HTML)


PROGRAMS: Final = ("/api/", "/v1/", "/auth/")
"""What is below these is asked for by programs, whatever they say they accept."""

NOWHERE: Final = {
    "en": ("Page not found", "There is nothing at this address.", "Go to the start page"),
    "zh": ("找不到页面", "此地址没有内容。", "前往首页"),
}


def is_visit(scope: Scope) -> bool:
    """Whether a person with a browser came to this address: no script and no program asks for HTML first."""
    accepted = _header(scope, b"accept")
    is_html = accepted.partition(",")[0].strip().startswith("text/html")
    return scope["method"] == "GET" and is_html and not f"{scope['path']}/".startswith(PROGRAMS)


def not_found(scope: Scope) -> Response:
    """The page at an address where nothing is: the same for everybody, logged in or not."""
    language = "zh" if _header(scope, b"accept-language").lower().startswith("zh") else "en"
    title, text, way = NOWHERE[language]
    return page(title, f'<p>{text}</p><p><a href="/">{way}</a></p>', 404, language=language)


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for known, value in scope["headers"] if known == name), "")


def cookie(options: ServerOptions, name: str, secret: str, seconds: float, site: str = "Strict") -> str:
    """The header that gives a browser its login, or takes it away again."""
    secure = "; Secure" if options.public_url.startswith("https://") else ""
    return f"{name}={secret}; Path=/; HttpOnly; SameSite={site}; Max-Age={int(seconds)}{secure}"


SPEAKS: Final = (
    "<p>The page to talk on was not built when this was installed. In the checkout, run <code>scripts/web --quick</code> (that "
    "takes Node 20.19 or newer) and install it again; a release has the page. All the rest is here: the API, and OpenAI's protocol under <code>/v1</code>. "
    "To begin a conversation, in a shell, with <code>TOKEN</code> from the token file that <code>everturn serve</code> "
    "names (or a key of <code>everturn keys add</code>):</p>"
)


def _curl(origin: str) -> str:
    """A first request, and how its answer is seen; `origin` is where we are."""
    lines = (
        f"curl -s {origin}/api/sessions \\",
        '  -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\',
        '  -d \'{"text": "What time is it?"}\'',
        "",
        "# SESSION is the id that comes back",
        f"curl -s {origin}/api/sessions/$SESSION/messages \\",
        '  -H "Authorization: Bearer $TOKEN"',
    )
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


@contextmanager
def _counted(carrier: str) -> Generator[None]:
    """Count whether somebody was recognised by what they brought."""
    try:
        yield
    except NotRecognised:
        metrics.count("logins_total", carrier, "refused")
        raise
    metrics.count("logins_total", carrier, "known")


class _People:
    """Handlers of the public routes."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._was_well = -READY  # when
        self.pages = Pages()

    async def alive(self, asked: Asked) -> Response:
        return Response("ok\n", media_type="text/plain")

    async def ready(self, asked: Asked) -> Response:
        if self._site.is_leaving:
            raise Refusal("leaving")
        if time.monotonic() > self._was_well + READY:  # anybody may ask, as often as they like
            await self._look()
            self._was_well = time.monotonic()
        return Response("ok\n", media_type="text/plain")

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(READY):
                await self._site.house.runtime.store.head("readyz")
        except UnknownSession:
            pass  # it has answered
        except (EverturnError, TimeoutError, OSError):
            raise Refusal("busy", "the store does not answer") from None

    async def front(self, asked: Asked) -> Response:
        if self.pages.is_built:
            oidc = self._site.options.oidc
            return self.pages.front(asked, oidc is not None and bool(oidc.client_id))
        try:
            who = await self._site.recognise(asked.request.scope)
        except NotRecognised:
            return page(
                "Everturn", "<p>You are not logged in.</p>" + self._how_in() + SPEAKS + _curl(self._origin(asked))
            )
        said = f"<p>You are logged in: <b>{escape(who.user)}</b> in <b>{escape(who.tenant)}</b>, as {escape(who.role)}.</p>"
        more = '<p class="small">All it can do: <a href="/openapi.json">openapi.json</a></p>'
        return page("Everturn", said + SPEAKS + _curl(self._origin(asked)) + more)

    def _how_in(self) -> str:
        """What whoever is not logged in can do about it."""
        with_provider = ' Or <a href="/oidc/login">log in with your provider</a>.' if self._site.options.oidc else ""
        return (
            "<p>Open the link that <code>everturn serve</code> printed when it started; "
            f"<code>everturn login</code>, on the machine of the server, prints another.{with_provider}</p>"
        )

    async def ask(self, asked: Asked) -> Response:
        """Programs that look at links before people do must not use them up: it takes a button."""
        if "token" not in asked.query:
            return page("This link is not whole", f"<p>The token at its end is missing.</p>{self._how_in()}", 422)
        token = escape(asked.query["token"], quote=True)
        form = (
            f"<p>This logs this browser in to <b>{escape(self._origin(asked))}</b>.</p>"
            '<form method="post" action="/login">'
            f'<input type="hidden" name="token" value="{token}"><button autofocus>Log in</button></form>'
            '<p class="small">The link opens once. Use only one that you asked for: with a link of somebody else you '
            "would be writing where they can read it.</p>"
        )
        return page("Log in to Everturn", form)

    async def log_in(self, asked: Asked) -> Response:
        try:
            token = parse_qs(asked.body.decode("ascii"), max_num_fields=5, strict_parsing=True)["token"][0]
        except (ValueError, KeyError, UnicodeDecodeError):
            raise Refusal("unfit", "this form has a token", "token") from None
        seconds = self._site.options.login
        try:
            with _counted("link"):
                secret, _ = await self._site.entrance.log_in(token[:1000], seconds)
        except NotRecognised:
            text = (
                "<p>It was used before, or is older than ten minutes. <code>everturn login</code>, on the machine of the "
                'server, prints a new one.</p><p>If it was you who used it, <a href="/">go on</a>.</p>'
            )
            return page("This link opens no more", text, 401, {"www-authenticate": "Bearer"})
        headers = {"set-cookie": cookie(self._site.options, self._name(asked), secret, seconds), "location": "/"}
        return Response(status_code=303, headers=headers)

    async def log_out(self, asked: Asked) -> Response:
        if asked.access.principal.kind != "login":
            raise Refusal("unfit", "this logs a browser out; a key is revoked by DELETE /api/keys/{key}")
        await self._site.entrance.log_out(asked.access.principal)
        gone = cookie(self._site.options, self._name(asked), "", 0)
        return Response(status_code=204, headers={"set-cookie": gone})

    # With a provider of OpenID Connect ---------------------------------------------------------------------------

    async def go_out(self, asked: Asked) -> Response:
        """Off to the provider. What is to be brought back comes from another site, so its cookie is not a strict one."""
        flow = await self._site.entrance.begin_oidc(self._back(asked))
        brought = cookie(self._site.options, self._name(asked) + "-oidc", flow.cookie, AWAY, "Lax")
        return Response(status_code=303, headers={"location": flow.url, "set-cookie": brought})

    async def come_back(self, asked: Asked) -> Response:
        name, seconds = self._name(asked), self._site.options.login
        brought = cookies_of(asked.request.scope["headers"], name + "-oidc")
        code, state = asked.query.get("code", ""), asked.query.get("state", "")
        if len(brought) != 1 or not code or not state:
            raise NotRecognised("this login was not begun here")
        with _counted("oidc"):
            secret, _ = await self._site.entrance.finish_oidc(code, state, brought[0], self._back(asked), seconds)
        # A redirect would still be the other site's doing, and a strict cookie does not go along with that.
        inner = '<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Go on</a></p>'
        answer = page("You are logged in", inner)
        answer.headers.append("set-cookie", cookie(self._site.options, name, secret, seconds))
        answer.headers.append("set-cookie", cookie(self._site.options, name + "-oidc", "", 0, "Lax"))
        return answer

    def _back(self, asked: Asked) -> str:
        """Where the provider sends a browser back to."""
        return f"{self._origin(asked)}/oidc/callback"

    def _origin(self, asked: Asked) -> str:
        """Where we are; the Host was checked before anybody came here."""
        options = self._site.options
        return options.public_url.rstrip("/") or Names(options).origin(asked.request.headers["host"])

    def _name(self, asked: Asked) -> str:
        server = asked.request.scope.get("server")
        return cookie_name(self._site.options, server[1] if server else 0)


def public_routes(site: Site) -> list[Route]:
    """The routes that anybody may ask, and the way out."""
    people = _People(site)
    token = Param("token", {"type": "string", "minLength": 1, "maxLength": 1000})
    back = tuple(Param(name, {"type": "string", "maxLength": 4096}) for name in ("code", "state"))
    return [
        _public("/healthz", "alive", "The process lives.", people.alive, "text/plain"),
        _public("/readyz", "ready", "The node can be sent requests.", people.ready, "text/plain"),
        _public("/", "front", "A page for whoever comes with a browser.", people.front, "text/html"),
        _public("/assets/{name}", "asset", "A file of the page.", people.pages.asset, "*/*"),
        *sandbox.routes(),
        _public("/login", "ask", "A page with a button that uses up a link.", people.ask, "text/html", token),
        _public("/oidc/login", "go_out", "Log in with the provider.", people.go_out, "text/html", status=303),
        _public("/oidc/callback", "come_back", "Back from the provider.", people.come_back, "text/html", *back),
        Route(
            method="POST",
            path="/login",
            name="log_in",
            needs=None,
            about="Use up a link: the browser is logged in.",
            handler=people.log_in,
            takes="bytes",
            gives="none",
            media=(FORM,),
            status=303,
            tag="about",
        ),
        Route(
            method="POST",
            path="/api/logout",
            name="log_out",
            needs="viewer",
            about="Log a browser out: its cookie holds no more.",
            handler=people.log_out,
            status=204,
            tag="about",
        ),
    ]


def _public(path: str, name: str, about: str, handler: Handler, media: str, *query: Param, status: int = 200) -> Route:
    return Route(
        is_cheap=name in ("alive", "ready", "asset"),
        method="GET",
        path=path,
        name=name,
        needs=None,
        about=about,
        handler=handler,
        gives="bytes",
        media=(media,),
        query=query,
        status=status,
        tag="about",
    )
