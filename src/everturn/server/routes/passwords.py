"""Password routes: log in with a password, change it, and accept an invitation. They set the cookie of a new login."""

from __future__ import annotations

from functools import cached_property

import msgspec
from starlette.responses import Response

from everturn import api
from everturn.access.auth.passwords import MIN_LENGTH, PasswordLogins
from everturn.core.tenants.accounts import Principal
from everturn.server.middleware import cookie_name, find_cookies
from everturn.server.rate_limit import client_address
from everturn.server.route import HttpRequestContext, Route
from everturn.server.routes.public import PublicSite, count_login, login_cookie


class _PasswordHandlers:
    """Handlers of the password routes."""

    def __init__(self, site: PublicSite) -> None:
        self._site = site

    @cached_property
    def _logins(self) -> PasswordLogins:
        context = self._site.server_context
        return PasswordLogins(context.accounts, context.app.clock, self._site.authenticator, context.password_support)

    async def log_in(self, context: HttpRequestContext) -> Response:
        body: api.PasswordLogin = context.body
        address = client_address(context.request.scope)
        with count_login("password"):
            made = await self._logins.log_in(
                body.tenant, body.user, body.password, address, self._cookie(context), self._site.options.login
            )
        return self._logged_in(context, *made)

    async def change(self, context: HttpRequestContext) -> Response:
        body: api.ChangePassword = context.body
        principal = context.access.principal
        return self._logged_in(
            context, *await self._logins.change(principal, body.current, body.new, self._site.options.login)
        )

    async def open_invitation(self, context: HttpRequestContext) -> api.OpenedInvitation:
        found = await self._logins.find_invitation(context.body.token)
        return api.OpenedInvitation(
            kind=found.kind,
            tenant=found.tenant,
            user=found.user,
            name=found.name,
            passwords=self._logins.support,
            min_length=MIN_LENGTH,
        )

    async def accept(self, context: HttpRequestContext) -> Response:
        body: api.AcceptInvitation = context.body
        with count_login("invitation"):
            made = await self._logins.accept(body.token, body.password, self._cookie(context), self._site.options.login)
        return self._logged_in(context, *made)

    def _cookie(self, context: HttpRequestContext) -> str | None:
        found = find_cookies(context.request.scope["headers"], self._cookie_name(context))
        return found[0] if len(found) == 1 else None

    def _logged_in(self, context: HttpRequestContext, secret: str, principal: Principal) -> Response:
        view = api.LoggedIn(tenant=principal.tenant, user=principal.user)
        cookie = login_cookie(self._site.options, self._cookie_name(context), secret, self._site.options.login)
        return Response(msgspec.json.encode(view), headers={"set-cookie": cookie}, media_type="application/json")

    def _cookie_name(self, context: HttpRequestContext) -> str:
        server = context.request.scope.get("server")
        return cookie_name(self._site.options, server[1] if server else 0)


def password_routes(site: PublicSite) -> list[Route]:
    """The password routes. All but the change of a password are public."""
    handlers = _PasswordHandlers(site)
    return [
        Route(
            method="POST",
            path="/api/login",
            name="password_login",
            needs=None,
            about="Log the browser in with a password.",
            handler=handlers.log_in,
            body=api.PasswordLogin,
            answer=api.LoggedIn,
            tag="about",
            is_secret=True,
        ),
        Route(
            method="POST",
            path="/api/password",
            name="change_password",
            needs="viewer",
            about="Change the caller's password. All other logins of the caller end.",
            handler=handlers.change,
            body=api.ChangePassword,
            answer=api.LoggedIn,
            tag="about",
            is_secret=True,
        ),
        Route(
            method="POST",
            path="/api/invitations/open",
            name="open_invitation",
            needs=None,
            about="Look at an invitation, or at a link that resets a password, before it is used.",
            handler=handlers.open_invitation,
            body=api.OpenInvitation,
            answer=api.OpenedInvitation,
            tag="about",
        ),
        Route(
            method="POST",
            path="/api/invitations/accept",
            name="accept_invitation",
            needs=None,
            about="Use an invitation, or a link that resets a password, and log the browser in.",
            handler=handlers.accept,
            body=api.AcceptInvitation,
            answer=api.LoggedIn,
            tag="about",
            is_secret=True,
        ),
    ]
