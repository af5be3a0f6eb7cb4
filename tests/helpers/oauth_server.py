"""A server that wants a token, and another one that gives them out: strict, and with a count of everything."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from aiohttp import web


class Authority:
    """Gives out tokens for codes, with PKCE, and renews them; what was used once is used up."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.clients: dict[str, list[str]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.access: set[str] = set()
        self.accounts: dict[str, str] = {}  # token -> whose it is
        self.revoked: list[str] = []
        self.refresh: set[str] = set()
        self.secrets: set[str] = set()  # all that nobody may read in a log
        self.lasts = 3600
        self.refuses = self.is_garbled = self.is_down = False
        self.base = self.resource = self.issuer = ""

    async def metadata(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.issuer or self.base,
                "authorization_endpoint": f"{self.base}/away/authorize",
                "token_endpoint": f"{self.base}/away/token",
                "revocation_endpoint": f"{self.base}/away/revoke",
                "registration_endpoint": f"{self.base}/away/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
        )

    async def register(self, request: web.Request) -> web.Response:
        self.seen["register"] += 1
        registration = await request.json()
        client = f"client-{len(self.clients)}"
        self.clients[client] = registration["redirect_uris"]
        return web.json_response(
            {**registration, "client_id": client, "token_endpoint_auth_method": "none"}, status=201
        )

    async def authorize(self, request: web.Request) -> web.Response:
        self.seen["authorize"] += 1
        query = dict(request.query)
        if query["redirect_uri"] not in self.clients[query["client_id"]] or query["code_challenge_method"] != "S256":
            return web.Response(status=400)
        if self.refuses:
            back = {"error": "access_denied", "state": query["state"]}
        else:
            code = secrets.token_hex(16)
            self.secrets.add(code)
            # The account that this browser is logged in to there.
            self.codes[code] = {**query, "account": request.headers.get("x-account", "")}
            back = {"code": code, "state": query["state"]}
        raise web.HTTPFound(f"{query['redirect_uri']}?{urlencode(back)}")

    async def token(self, request: web.Request) -> web.Response:
        form: Any = await request.post()
        self.seen[form["grant_type"]] += 1
        if self.is_down:
            return web.Response(status=503)
        if form["grant_type"] == "authorization_code":
            authorization = self.codes.pop(form["code"], None)
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            is_right = authorization is not None and authorization["code_challenge"] == proof
            if not is_right or authorization is None or authorization["redirect_uri"] != form["redirect_uri"]:
                return web.json_response({"error": "invalid_grant"}, status=400)
            self.seen["proven"] += 1
            account = authorization["account"]
        elif form["refresh_token"] not in self.refresh:
            return web.json_response({"error": "invalid_grant"}, status=400)
        else:
            self.refresh.discard(form["refresh_token"])
            account = self.accounts[form["refresh_token"]]
        return web.json_response(self._tokens(account))

    async def revoke(self, request: web.Request) -> web.Response:
        token = str((await request.post())["token"])
        self.revoked.append(self.accounts.get(token, "?"))
        account = self.accounts.get(token)
        for known in (self.access, self.refresh):
            known -= {other for other in known if self.accounts.get(other) == account}
        return web.Response()

    def _tokens(self, account: str) -> dict[str, Any]:
        access, refresh = f"access-{secrets.token_hex(12)}", f"refresh-{secrets.token_hex(12)}"
        self.secrets |= {access, refresh}
        self.access.add(access)
        self.refresh.add(refresh)
        self.accounts |= {access: account, refresh: account}
        if self.is_garbled:
            return {"access_token": [access], "refresh_token": refresh, "token_type": "Bearer"}
        return {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": self.lasts}

    async def serve(self, request: web.Request) -> web.Response:
        self.seen["request"] += 1
        if request.headers.get("Authorization", "").removeprefix("Bearer ") in self.access:
            return web.json_response({"jsonrpc": "2.0", "id": 0, "result": {}})
        where = f'Bearer resource_metadata="{self.resource}/.well-known/oauth-protected-resource/mcp"'
        return web.Response(status=401, headers={"WWW-Authenticate": where})

    async def about(self, request: web.Request) -> web.Response:
        return web.json_response({"resource": f"{self.resource}/mcp", "authorization_servers": [self.base]})


@asynccontextmanager
async def authority() -> AsyncGenerator[Authority]:
    """Both servers, on ports of their own."""
    oauth_server = Authority()
    giving, serving = web.Application(), web.Application()
    giving.router.add_get("/.well-known/oauth-authorization-server", oauth_server.metadata)
    giving.router.add_post("/away/register", oauth_server.register)
    giving.router.add_get("/away/authorize", oauth_server.authorize)
    giving.router.add_post("/away/token", oauth_server.token)
    giving.router.add_post("/away/revoke", oauth_server.revoke)
    serving.router.add_post("/mcp", oauth_server.serve)
    serving.router.add_get("/.well-known/oauth-protected-resource/mcp", oauth_server.about)
    runners = [web.AppRunner(app, access_log=None) for app in (giving, serving)]
    try:
        places: list[str] = []
        for runner in runners:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            places.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        oauth_server.base, oauth_server.resource = places
        yield oauth_server
    finally:
        for runner in runners:
            await runner.cleanup()
