"""Inbound hook access: the tenant's hooks, without their secrets. Deliveries have a signature, and no login.

What a file defines is fixed. Administrators create others, which start turns with the authority of their creator; they are
settings of the installation (decision 0253), so with several tenants they take an operator.
"""

from __future__ import annotations

import base64
import secrets
from typing import Final

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, is_id
from everturn.access.context.setting_writer import NOT_HERE, SettingWriter
from everturn.access.context.settings_backend import SettingsBackend
from everturn.core.tenants.settings import HookSettings, Setting, decode_body
from everturn.core.webhooks import SECRET_PREFIX
from everturn.errors import ConfigError, Forbidden, UnknownSetting
from everturn.inbound_hooks.hook import InboundHook
from everturn.inbound_hooks.signatures import Scheme, secret_problem

MOST_CALLS: Final = 50  # calls of a hook that are listed
SECRET_BYTES: Final = 32


class HookAccess:
    """Access to inbound hooks."""

    __slots__ = ("_writer", "scope")

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope, self._writer = scope, SettingWriter(scope)

    @needs("owner")
    async def list(self) -> api.HookList:
        """The tenant's inbound hooks, by name, and why the caller can create none."""
        stored = {row.name: row for row in await self._stored()}
        live = self.scope.server_context.inbound_hooks.list(tenant=self._tenant)
        fixed = [hook_view(hook) for hook in live if hook.name not in stored]
        views = [*fixed, *(self._stored_view(row) for row in stored.values())]
        return api.HookList(hooks=sorted(views, key=lambda view: view.name), problem=await self._problem())

    @needs("owner")
    async def calls(self, hook: str, limit: int = MOST_CALLS) -> api.HookCallList:
        """The last calls of a hook, newest first."""
        if not is_id(hook):
            raise UnknownSetting("there is no such hook")
        log = self.scope.server_context.inbound_hooks.calls
        calls = await log.last(hook, self._tenant, max(1, min(limit, MOST_CALLS)))
        return api.HookCallList(
            calls=[
                api.HookCallView(
                    at=call.at,
                    outcome=call.detail.outcome,
                    session=call.detail.session,
                    turn=call.detail.turn,
                    reason=call.detail.reason,
                )
                for call in calls
            ]
        )

    @needs("owner")
    async def put(self, hook: str, request: api.NewHook) -> api.HookWithSecret:
        """Create a hook, or change one. Only this answer contains a secret that was made.

        Raises:
            ConfigError: it is invalid, or a file or another tenant has a hook of this name.
            HashMismatch: another person has changed it meanwhile.
        """
        backend = await self._writer.backend()
        self._writer.require_free(backend, "hook", hook)
        before = await self._writer.find("hook", hook)
        known: HookSettings | None = decode_body(before) if before is not None else None
        if known is not None and known.tenant != self._tenant:
            raise ConfigError("name: this name is taken; choose another one")
        body = HookSettings(
            tenant=self._tenant,
            scheme=request.scheme,
            text=request.text,
            agent=request.agent,
            session=request.session,
            when={path: tuple(values) for path, values in request.when.items()},
            fields=tuple(request.fields),
            by=self.scope.principal.user,
        )
        keeps = known is not None and known.scheme == body.scheme and not request.secret
        made = "" if keeps else request.secret.strip() or _new_secret(body.scheme)
        return await self._save(
            backend, hook, body, request.version, made, before.secret if before and keeps else b"", bool(request.secret)
        )

    @needs("owner")
    async def rotate_secret(self, hook: str, request: api.NewHookSecret) -> api.HookWithSecret:
        """Replace the secret of a hook. From now on, deliveries that are signed with the one before are refused."""
        backend = await self._writer.backend()
        body = await self._own(hook)
        made = request.secret.strip() or _new_secret(body.scheme)
        return await self._save(backend, hook, body, None, made, b"", bool(request.secret))

    @needs("owner")
    async def delete(self, hook: str) -> None:
        """Delete a hook; its URL answers as one that was never there."""
        await self._writer.backend()
        await self._own(hook)
        await self._writer.delete("hook", hook)

    async def _save(
        self,
        backend: SettingsBackend,
        name: str,
        body: HookSettings,
        version: int | None,
        secret: str,
        sealed: bytes,
        is_entered: bool,
    ) -> api.HookWithSecret:
        if secret and (problem := secret_problem(body.scheme, secret)):
            raise ConfigError(f"secret: {problem}")
        saved = await self._writer.save(
            backend, "hook", name, body, version, secret=secret, sealed=sealed, has_new_secret=bool(secret)
        )
        return api.HookWithSecret(hook=self._stored_view(saved), secret="" if is_entered else secret)

    async def _own(self, name: str) -> HookSettings:
        """The stored hook of a name, if it is the tenant's."""
        body: HookSettings = decode_body(await self._writer.get("hook", name))
        if body.tenant != self._tenant:
            raise UnknownSetting("there is no such setting")
        return body

    async def _stored(self) -> list[Setting]:
        """The hooks that administrators of this tenant created; one of a file with the same name takes precedence."""
        backend = self.scope.server_context.settings
        if backend is None:
            return []
        fixed = {row.name for row in backend.fixed() if row.kind == "hook"}
        rows = [row for row in await self._writer.store.current() if row.kind == "hook" and row.name not in fixed]
        return [row for row in rows if decode_body(row).tenant == self._tenant]

    async def _problem(self) -> str:
        backend = self.scope.server_context.settings
        if backend is None or not backend.is_editable:
            return NOT_HERE
        try:
            await self._writer.require_administrator()
        except Forbidden as error:
            return str(error)
        return backend.secret_problem

    def _stored_view(self, row: Setting) -> api.HookView:
        body: HookSettings = decode_body(row)
        backend = self.scope.server_context.settings
        hook = InboundHook(
            name=row.name,
            scheme=body.scheme,
            secrets=(),
            text=body.text,
            agent=body.agent,
            session=body.session,
            when=body.when,
            fields=body.fields,
            by=body.by,
            priority=body.priority,
        )
        problem = backend.problems.get(("hook", row.name), "") if backend is not None else NOT_HERE
        return hook_view(hook, row, problem)

    @property
    def _tenant(self) -> str:
        return self.scope.principal.tenant


def _new_secret(scheme: Scheme) -> str:
    """A secret for the other system.

    Raises:
        ConfigError: the other system makes it.
    """
    if scheme == "slack":
        raise ConfigError("secret: enter the signing secret of your Slack app (Basic Information, App Credentials)")
    if scheme == "standard":
        return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    return secrets.token_hex(SECRET_BYTES)


def hook_view(hook: InboundHook, row: Setting | None = None, problem: str = "") -> api.HookView:
    """A hook, as the API shows it: without its secrets. `row` is the setting of one that an administrator created."""
    return api.HookView(
        name=hook.name,
        path=f"/api/hooks/{hook.name}",
        scheme=hook.scheme,
        action=hook.action,
        agent=hook.agent,
        session=hook.session,
        text=hook.text,
        by=hook.by,
        priority=hook.priority,
        max_bytes=hook.max_bytes,
        origin="config" if row is None else "api",
        when={path: [*values] for path, values in hook.when.items()},
        fields=[*hook.fields],
        version=row.version if row is not None else 0,
        at=row.at if row is not None else 0.0,
        problem=problem,
    )
