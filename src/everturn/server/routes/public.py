"""Public routes: health checks, login and logout, OpenID Connect, and the start page for browsers."""

from __future__ import annotations

import base64
import hashlib
import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from html import escape
from typing import Any, Final, Literal, Protocol
from urllib.parse import parse_qs, quote

from starlette.responses import Response

from everturn.access.auth.authentication import Authenticator
from everturn.access.context.server_context import ServerContext
from everturn.access.push import remove_pushes
from everturn.config.server_options import ServerOptions
from everturn.core.tenants.accounts import Principal
from everturn.errors import NotRecognised
from everturn.localization import Language, load_group
from everturn.server.brand import Branding
from everturn.server.errors import RequestError
from everturn.server.middleware import AllowedHosts, Scope, cookie_name, find_cookie_names, find_cookies
from everturn.server.route import Handler, HttpRequestContext, Param, Route
from everturn.server.routes import js_sandbox
from everturn.server.routes.web_ui import WebAssets
from everturn.telemetry import metrics
from everturn.telemetry.service_gauges import check_services

FORM: Final = "application/x-www-form-urlencoded"
HTML: Final = "text/html; charset=utf-8"
STYLE: Final = (
    ":root{color-scheme:light dark;min-height:100dvh;display:grid;place-items:center;"  # as web/src/app/login.css
    "background:light-dark(#faf9f7,#141517);color:light-dark(#1d1f22,#e8e8e6)}"
    "body{font:16px/1.6 system-ui,sans-serif;box-sizing:border-box;width:min(30rem,100vw - 2.5rem);margin:1.25rem;"
    "padding:1.5rem;border:1px solid light-dark(#e2e0da,#33373d);border-radius:10px;overflow-wrap:anywhere;"
    "background:light-dark(#fff,#1b1d20);box-shadow:0 8px 30px light-dark(#0000001a,#00000066)}"
    ".brand{margin:0 0 .9rem;font-weight:650;color:light-dark(#0f766e,#4fd1c0)}"
    "h1{font-size:1.35rem;line-height:1.2;margin:0 0 .9rem}"
    "a{color:light-dark(#0f766e,#4fd1c0);text-underline-offset:2px}"
    "code,pre{font:14px/1.6 ui-monospace,monospace}"
    "pre{overflow:auto;padding:.9rem 1rem;border-radius:8px;background:light-dark(#f3f4f6,#26282c)}"
    "button{font:inherit;font-weight:600;padding:.55rem 1.6rem;border:0;border-radius:8px;cursor:pointer;"
    "color:light-dark(#fff,#06201d);background:light-dark(#0f766e,#4fd1c0)}"
    "button:focus-visible{outline:3px solid light-dark(#2563eb,#7fb0ff);outline-offset:2px}"
    ".small{font-size:.9rem;opacity:.75}"
)
_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
PAGE_HEADERS: Final = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    # With `no-referrer` a browser sends `Origin: null` with the form, and the middleware refuses that.
    "referrer-policy": "same-origin",
}
OIDC_TIMEOUT: Final = 600.0
"""Seconds that a person may take to log in at the provider."""

OIDC_ATTEMPTS: Final = 8
"""Attempts of a browser at the same time; the oldest is dropped, so that its cookies do not become too long."""

READY_TIMEOUT: Final = 1.0
"""Seconds in which a service must answer."""

READY_CACHE: Final = 1.0
"""Seconds for which the answers of the services are used again."""


class PublicSite(Protocol):
    """The part of the application that these routes use."""

    server_context: ServerContext
    authenticator: Authenticator
    options: ServerOptions
    is_leaving: bool

    async def authenticate(self, scope: Scope) -> Principal: ...


def html_page(
    title: str, inner: str, status: int = 200, headers: dict[str, str] | None = None, language: str = "en"
) -> Response:
    """A small HTML page; `inner` is HTML in which everything from outside is escaped."""
    text = (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(title)}</title>'
        f'<style>{STYLE}</style></head><body><p class="brand">Everturn</p><main><h1>{escape(title)}</h1>{inner}</main></body></html>'
    )
    return Response(text, status, PAGE_HEADERS | (headers or {}), media_type=HTML)


log = logging.getLogger("everturn.server")
API_PREFIXES: Final = ("/api/", "/v1/", "/auth/")
"""Paths for programs: an error below these is never an HTML page, whatever the client accepts."""


def is_browser_visit(scope: Scope) -> bool:
    """Whether a person opened this address in a browser: no script and no program asks for HTML first."""
    accepted = _header(scope, b"accept")
    is_html = accepted.partition(",")[0].strip().startswith("text/html")
    return scope["method"] == "GET" and is_html and not f"{scope['path']}/".startswith(API_PREFIXES)


def page_language(scope: Scope) -> Language:
    """The language of a browser, of those that there are texts in."""
    return "zh" if _header(scope, b"accept-language").lower().startswith("zh") else "en"


def not_found_page(scope: Scope) -> Response:
    """The 404 page: the same for all callers, logged in or not."""
    language = page_language(scope)
    texts = load_group("server.not_found", language)
    inner = f'<p>{texts["text"]}</p><p><a href="/">{texts["link"]}</a></p>'
    return html_page(texts["title"], inner, 404, language=language)


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for header, value in scope["headers"] if header == name), "")


def login_cookie(options: ServerOptions, name: str, secret: str, seconds: float) -> str:
    """The Set-Cookie header that logs a browser in, or out with `seconds` 0."""
    return _cookie(options, f"{name}={secret}; Path=/; HttpOnly; SameSite=Strict", seconds)


def attempt_cookie(options: ServerOptions, name: str, text: str, seconds: float) -> str:
    """The Set-Cookie header of one attempt to log in with the provider. Its redirect back is cross-site, so this cookie
    cannot be strict.
    """
    return _cookie(options, f"{name}={text}; Path=/; HttpOnly; SameSite=Lax", seconds)


def _cookie(options: ServerOptions, text: str, seconds: float) -> str:
    return f"{text}; Max-Age={int(seconds)}{'; Secure' if options.public_url.startswith('https://') else ''}"


NOT_BUILT_NOTICE: Final = (
    "<p>The page to talk on was not built when this was installed. In the checkout, run <code>scripts/web "
    "--quick</code> (that "
    "takes Node 20.19 or newer) and install it again; a release has the page. All the rest is here: the API, and "
    "OpenAI's protocol under <code>/v1</code>. "
    "To begin a conversation, in a shell, with <code>TOKEN</code> from the token file that <code>everturn serve</code> "
    "names (or a key of <code>everturn keys add</code>):</p>"
)


def _curl(origin: str) -> str:
    """A first request with curl, and how to read its answer; `origin` is the URL of this server."""
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
def count_login(carrier: str) -> Generator[None]:
    """Count whether the login succeeded."""
    try:
        yield
    except NotRecognised:
        metrics.count("logins_total", carrier, "refused")
        raise
    metrics.count("logins_total", carrier, "known")


def _attempt_name(prefix: str, state: str) -> str:
    return prefix + hashlib.sha256(state.encode("utf-8", "replace")).hexdigest()[:24]


class _PublicHandlers:
    """Handlers of the public routes."""

    def __init__(self, site: PublicSite) -> None:
        self._site = site
        self._checked_at = -READY_CACHE
        self._services: dict[str, bool] = {}  # which of them answered then
        self.branding = Branding(site.options)
        self.pages = WebAssets(self.branding)

    async def alive(self, context: HttpRequestContext) -> Response:
        return Response("ok\n", media_type="text/plain")

    async def ready(self, context: HttpRequestContext) -> Response:
        if self._site.is_leaving:
            raise RequestError("leaving")
        if time.monotonic() > self._checked_at + READY_CACHE:  # callers are anonymous and not rate limited
            self._services = await check_services(self._site.server_context.app, READY_TIMEOUT)
            self._checked_at = time.monotonic()
        needed = {"store", *context.query.get("require", "").split(",")}
        if missing := [name for name, answers in self._services.items() if name in needed and not answers]:
            raise RequestError("busy", "; ".join(f"the {name} does not answer" for name in missing))
        lines = [f"{name}: {'ok' if answers else 'does not answer'}\n" for name, answers in self._services.items()]
        return Response("".join(["ok\n", *lines]), media_type="text/plain")

    async def start_page(self, context: HttpRequestContext) -> Response:
        if self.pages.is_built:
            oidc = self._site.options.oidc
            has_provider = oidc is not None and bool(oidc.client_id)
            passwords = self._site.server_context.password_support
            return self.pages.front(context, has_provider, passwords, is_anonymous=self._is_anonymous(context))
        try:
            principal = await self._site.authenticate(context.request.scope)
        except NotRecognised:
            return html_page(
                "Everturn",
                "<p>You are not logged in.</p>" + self._login_hint() + NOT_BUILT_NOTICE + _curl(self._origin(context)),
            )
        login = f"<p>You are logged in: <b>{escape(principal.user)}</b> in <b>{escape(principal.tenant)}</b>, as {escape(principal.role)}.</p>"
        more = '<p class="small">All it can do: <a href="/openapi.json">openapi.json</a></p>'
        return html_page("Everturn", login + NOT_BUILT_NOTICE + _curl(self._origin(context)) + more)

    def _is_anonymous(self, context: HttpRequestContext) -> bool:
        """Whether this browser is certainly not logged in. A cross-site navigation carries no cookie of a login, so it does
        not tell.
        """
        headers = context.request.headers
        has_credential = "authorization" in headers or find_cookies(
            context.request.scope["headers"], self._cookie_name(context)
        )
        return not has_credential and headers.get("sec-fetch-site") in ("none", "same-origin")

    def _login_hint(self) -> str:
        """HTML that says how to log in."""
        with_provider = ' Or <a href="/oidc/login">log in with your provider</a>.' if self._site.options.oidc else ""
        return (
            "<p>Open the link that <code>everturn serve</code> printed when it started; "
            f"<code>everturn login</code>, on the server, prints another.{with_provider}</p>"
        )

    async def login_page(self, context: HttpRequestContext) -> Response:
        """The login page. It has a button, because programs that preview links must not use up the link."""
        if "token" not in context.query:
            return html_page(
                "This link is not whole", f"<p>The token at its end is missing.</p>{self._login_hint()}", 422
            )
        token = escape(context.query["token"], quote=True)
        language = page_language(context.request.scope)
        texts = load_group("server.login", language)
        form = (
            f"<p>{texts['what']} <b>{escape(self._origin(context))}</b></p>"
            '<form method="post" action="/login">'
            f'<input type="hidden" name="token" value="{token}"><button autofocus>{texts["button"]}</button></form>'
            f'<p class="small">{texts["once"]}</p>'
        )
        return html_page(texts["title"], form, language=language)

    async def log_in(self, context: HttpRequestContext) -> Response:
        try:
            token = parse_qs(context.body.decode("ascii"), max_num_fields=5, strict_parsing=True)["token"][0]
        except (ValueError, KeyError, UnicodeDecodeError):
            raise RequestError("unfit", "the form needs a token", "token") from None
        seconds = self._site.options.login
        try:
            with count_login("link"):
                secret, _ = await self._site.authenticator.log_in(token[:1000], seconds)
        except NotRecognised:
            language = page_language(context.request.scope)
            texts = load_group("server.login", language)
            text = (
                f"<p>{texts['expired_why']} <code>everturn login</code></p>"
                f'<p>{texts["expired_used"]} <a href="/">{texts["continue"]}</a></p>'
            )
            return html_page(texts["expired"], text, 401, {"www-authenticate": "Bearer"}, language)
        headers = {
            "set-cookie": login_cookie(self._site.options, self._cookie_name(context), secret, seconds),
            "location": "/",
        }
        return Response(status_code=303, headers=headers)

    async def log_out(self, context: HttpRequestContext) -> Response:
        if context.access.principal.kind != "login":
            raise RequestError(
                "unfit", "only browser logins can log out; revoke an API key with DELETE /api/keys/{key}"
            )
        principal = context.access.principal
        await self._site.authenticator.log_out(principal)
        await remove_pushes(context.access.scope, principal.user, principal.credential)
        expired = login_cookie(self._site.options, self._cookie_name(context), "", 0)
        return Response(status_code=204, headers={"set-cookie": expired})

    # OpenID Connect ----------------------------------------------------------------------------------------------

    async def start_oidc(self, context: HttpRequestContext) -> Response:
        """Redirect to the provider. Each attempt has its cookie, so that two tabs can log in at the same time."""
        try:
            flow = await self._site.authenticator.begin_oidc(self._callback_url(context))
        except NotRecognised as error:
            log.warning("a login with the provider could not be started: %s", error)
            return self._failed_oidc(context, "away")
        answer = Response(status_code=303, headers={"location": flow.url})
        options, prefix = self._site.options, self._attempt_prefix(context)
        open_attempts = find_cookie_names(context.request.scope["headers"], prefix)
        for name in open_attempts[: max(0, len(open_attempts) - OIDC_ATTEMPTS + 1)]:
            answer.headers.append("set-cookie", attempt_cookie(options, name, "", 0))
        name = _attempt_name(prefix, flow.state)
        answer.headers.append("set-cookie", attempt_cookie(options, name, flow.cookie, OIDC_TIMEOUT))
        return answer

    async def finish_oidc(self, context: HttpRequestContext) -> Response:
        """Log the browser in that started the attempt. Its cookie is used up, whatever comes of it."""
        options, code, state = self._site.options, context.query.get("code", ""), context.query.get("state", "")
        name = _attempt_name(self._attempt_prefix(context), state)
        cookies = find_cookies(context.request.scope["headers"], name)
        try:
            with count_login("oidc"):
                if len(cookies) != 1 or not code or not state:
                    raise NotRecognised("this login was not started in this browser")
                secret, _ = await self._site.authenticator.finish_oidc(
                    code, state, cookies[0], self._callback_url(context), options.login
                )
        except NotRecognised:
            answer = self._failed_oidc(context, "failed")
        else:
            # A redirect would still count as cross-site, and the browser would not send a strict cookie with it.
            language = page_language(context.request.scope)
            texts = load_group("server.login", language)
            body = f'<meta http-equiv="refresh" content="0;url=/"><p><a href="/">{texts["continue"]}</a></p>'
            answer = html_page(texts["done"], body, language=language)
            login = login_cookie(options, self._cookie_name(context), secret, options.login)
            answer.headers.append("set-cookie", login)
        if cookies:
            answer.headers.append("set-cookie", attempt_cookie(options, name, "", 0))
        return answer

    def _failed_oidc(self, context: HttpRequestContext, why: Literal["away", "failed"]) -> Response:
        """The page of a login with the provider that could not be started, or did not succeed."""
        language = page_language(context.request.scope)
        texts = load_group("server.login", language)
        inner = f'<p>{texts[f"{why}_why"]}</p><p><a href="/oidc/login">{texts["again"]}</a></p>'
        return html_page(texts[why], inner, 401, {"www-authenticate": "Bearer"}, language)

    async def mcp_login_page(self, context: HttpRequestContext) -> Response:
        """Hand what the authorization server of an MCP server answered to the web UI, which delivers it as the user.

        A redirect would still count as cross-site, and the browser would not send a strict cookie with it.
        """
        texts = load_group("server.mcp_login", page_language(context.request.scope))
        parts = (quote(context.query.get(name, ""), safe="") for name in ("state", "code", "error", "iss"))
        target = escape(f"/#/mcp/{'/'.join(parts)}")
        inner = f'<meta http-equiv="refresh" content="0;url={target}"><p><a href="{target}">{texts["link"]}</a></p>'
        return html_page(texts["title"], inner, language=page_language(context.request.scope))

    def _callback_url(self, context: HttpRequestContext) -> str:
        """The URL to which the provider redirects the browser."""
        return f"{self._origin(context)}/oidc/callback"

    def _origin(self, context: HttpRequestContext) -> str:
        """The URL of this server; the middleware has checked the Host."""
        options = self._site.options
        return options.public_url.rstrip("/") or AllowedHosts(options).origin(context.request.headers["host"])

    def _attempt_prefix(self, context: HttpRequestContext) -> str:
        # Over https it begins with `__Host-`: a sibling domain cannot plant an attempt of its own, and log a person in as
        # somebody else. That prefix takes no narrower path.
        return self._cookie_name(context) + "-oidc-"

    def _cookie_name(self, context: HttpRequestContext) -> str:
        server = context.request.scope.get("server")
        return cookie_name(self._site.options, server[1] if server else 0)


def public_routes(site: PublicSite) -> list[Route]:
    """The public routes, and logout."""
    handlers = _PublicHandlers(site)
    required = Param(
        "require",
        {"type": "string", "pattern": r"^(store|engine|bus)(,(store|engine|bus)){0,2}$"},
        "services without which the node is not ready, beside the store: engine, bus",
    )
    token = Param("token", {"type": "string", "minLength": 1, "maxLength": 1000})
    back = tuple(Param(name, {"type": "string", "maxLength": 4096}) for name in ("code", "state"))
    return [
        _public("/healthz", "alive", "Liveness: the process runs.", handlers.alive, "text/plain"),
        _public("/readyz", "ready", "Readiness: the node accepts requests.", handlers.ready, "text/plain", required),
        _public("/", "front", "The web UI.", handlers.start_page, "text/html"),
        _public("/assets/{name}", "asset", "A file of the web UI.", handlers.pages.asset, "*/*"),
        _public(
            "/push-worker.js",
            "push_worker",
            "The service worker that shows push notifications.",
            handlers.pages.push_worker,
            "text/javascript",
        ),
        _public("/branding.css", "branding_style", "The colours of the web UI.", handlers.branding.style, "text/css"),
        _public("/branding/logo", "branding_logo", "The logo of the web UI.", handlers.branding.logo, "*/*"),
        Route(
            method="GET",
            path="/manifest.webmanifest",
            name="manifest",
            needs=None,
            about="The web app manifest, with which browsers install the web UI.",
            handler=handlers.branding.manifest,
            answer=dict[str, Any],
            tag="about",
        ),
        *js_sandbox.sandbox_routes(),
        _public(
            "/login",
            "ask",
            "A page with a button that logs the browser in with a one-time link.",
            handlers.login_page,
            "text/html",
            token,
        ),
        _public(
            "/oidc/login",
            "go_out",
            "Log in with the OpenID Connect provider.",
            handlers.start_oidc,
            "text/html",
            status=303,
        ),
        _public(
            "/oidc/callback",
            "come_back",
            "Callback of the OpenID Connect provider.",
            handlers.finish_oidc,
            "text/html",
            *back,
        ),
        _public(
            "/mcp/login",
            "mcp_login_page",
            "The page to which a browser comes back from the login to an MCP server.",
            handlers.mcp_login_page,
            "text/html",
            *back,
            *(Param(name, {"type": "string", "maxLength": 2000}) for name in ("error", "iss")),
        ),
        Route(
            method="POST",
            path="/login",
            name="log_in",
            needs=None,
            about="Log the browser in with a one-time link.",
            handler=handlers.log_in,
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
            about="Log out: the cookie of the browser becomes invalid.",
            handler=handlers.log_out,
            status=204,
            tag="about",
        ),
    ]


def _public(path: str, name: str, about: str, handler: Handler, media: str, *query: Param, status: int = 200) -> Route:
    return Route(
        is_cheap=name in ("alive", "ready", "asset", "push_worker"),
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
