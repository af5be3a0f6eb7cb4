"""Setting writer: what all changes of settings share. It checks, audits, stores and applies a new version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from everturn.access.context.scope import ScopedAccess
from everturn.access.context.settings_backend import SettingsBackend
from everturn.core.tenants.settings import (
    INSTALLATION,
    Setting,
    SettingBody,
    SettingKind,
    SettingStore,
    check_setting_name,
    encode_body,
)
from everturn.errors import ConfigError, HashMismatch, UnknownSetting

MAX_SETTINGS: Final = 200  # of one kind
MAX_SECRET: Final = 4096  # characters
NOT_HERE: Final = (
    "settings cannot be changed here: `editable` under [settings] is false, or this server has no store for them"
)


class SettingWriter:
    """Reads and writes settings for a caller who is an administrator."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @property
    def store(self) -> SettingStore:
        """The store of the settings."""
        return self.scope.store.settings

    async def has_several_tenants(self) -> bool:
        """Whether the installation has more than one active tenant."""
        return sum(tenant.is_active for tenant in await self.scope.server_context.accounts.tenants()) > 1

    async def require_administrator(self) -> None:
        """With several tenants, settings of the installation take an operator."""
        if await self.has_several_tenants():
            self.scope.require_role("operator", "what all tenants share")

    async def backend(self) -> SettingsBackend:
        """The configuration, for a caller who may change it.

        Raises:
            ConfigError: settings are off here.
        """
        await self.require_administrator()
        return self.backend_of_tenant()

    def backend_of_tenant(self) -> SettingsBackend:
        """The configuration, for an owner who changes settings of the own tenant only.

        Raises:
            ConfigError: settings are off here.
        """
        backend = self.scope.server_context.settings
        if backend is None or not backend.is_editable:
            raise ConfigError(NOT_HERE)
        return backend

    def require_free(self, backend: SettingsBackend, kind: SettingKind, name: str) -> None:
        """Refuse a name that a file has taken."""
        fixed = next((row for row in backend.fixed() if (row.kind, row.name) == (kind, name)), None)
        if fixed is not None:
            raise ConfigError(
                f"{kind} {name!r} is set in {fixed.where}, which takes precedence; change it there, or choose "
                "another name"
            )

    async def find(self, kind: SettingKind, name: str, scope: str = INSTALLATION) -> Setting | None:
        """The newest version of a setting, unless it is deleted."""
        rows = await self.store.versions(kind, name, scope)
        return rows[0] if rows and not rows[0].is_deleted else None

    async def get(self, kind: SettingKind, name: str) -> Setting:
        """The newest version of a setting.

        Raises:
            UnknownSetting: there is none.
        """
        found = await self.find(kind, name)
        if found is None:
            raise UnknownSetting("there is no such setting")
        return found

    async def save(
        self,
        backend: SettingsBackend,
        kind: SettingKind,
        name: str,
        body: SettingBody,
        expected: int | None = None,
        *,
        secret: str = "",
        sealed: bytes = b"",
        scope: str = INSTALLATION,
        **detail: Any,
    ) -> Setting:
        """Check, audit, store and apply a new version. `expected` is the version that the caller has seen.

        The caller has checked a setting of a tenant: the configuration is that of the installation.
        """
        check_setting_name(name)
        rows = await self.store.versions(kind, name, scope)
        number = rows[0].version if rows else 0
        if expected is not None and expected != (
            0 if not rows or (rows[0].is_deleted and "restored" not in detail) else number
        ):
            raise HashMismatch("this was changed in the meantime; reload it")
        if len(secret) > MAX_SECRET:
            raise ConfigError(f"a key has at most {MAX_SECRET} characters")
        setting = replace(self._version(kind, name, number + 1, encode_body(body), sealed), scope=scope)
        if secret:
            setting = backend.seal(setting, secret)
        current = await self.store.current(scope)
        if number == 0 and sum(row.kind == kind for row in current) >= MAX_SETTINGS:
            raise ConfigError(f"there are at most {MAX_SETTINGS} settings of this kind; delete one")
        if scope == INSTALLATION:
            await backend.check(_with(current, setting))
        await self._add(setting, detail)
        await backend.changed()
        return setting

    async def delete(self, kind: SettingKind, name: str) -> None:
        """Delete a setting; its versions stay."""
        backend = await self.backend()
        before = await self.get(kind, name)
        setting = self._version(kind, name, before.version + 1, before.body, b"", is_deleted=True)
        if kind != "key":  # a key that leaked is deleted, whatever needs it
            await backend.check([row for row in await self.store.current() if (row.kind, row.name) != (kind, name)])
        await self._add(setting, {})
        await backend.changed()

    def _version(
        self, kind: SettingKind, name: str, version: int, body: bytes, secret: bytes, is_deleted: bool = False
    ) -> Setting:
        return Setting(
            kind=kind,
            name=name,
            version=version,
            body=body,
            secret=secret,
            is_deleted=is_deleted,
            by=self.scope.principal.user,
            at=self.scope.server_context.app.clock.now(),
        )

    async def _add(self, setting: Setting, detail: dict[str, Any]) -> None:
        did = "setting.delete" if setting.is_deleted else "setting.put"
        if setting.scope != INSTALLATION:
            detail = {"scope": "tenant", **detail}
        await self.scope.audit_action(did, f"{setting.kind}:{setting.name}", version=setting.version, **detail)
        if not await self.store.add(setting):
            raise HashMismatch("this was changed in the meantime; reload it")


def _with(rows: Sequence[Setting], setting: Setting) -> list[Setting]:
    is_new = all((row.kind, row.name) != (setting.kind, setting.name) for row in rows)
    changed = [setting if (row.kind, row.name) == (setting.kind, setting.name) else row for row in rows]
    return [*changed, setting] if is_new else changed
