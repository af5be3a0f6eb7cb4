"""Settings access: models and their keys, and agents that an administrator changes at run time.

All tenants of an installation share models and agents. With one tenant, its owners change them; with several, only an
operator does. What a file defines is fixed. Every change is a version with its author, and is audited; a secret is in no
answer, no audit record and no error.
"""

from __future__ import annotations

import hashlib
from typing import Final

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess
from everturn.access.context.setting_writer import NOT_HERE, SettingWriter
from everturn.access.context.settings_backend import SettingsBackend
from everturn.access.mcp.settings import NO_MCP, mcp_view
from everturn.core.tenants.settings import (
    AgentSettings,
    KeySettings,
    ModelSettings,
    Setting,
    decode_body,
)
from everturn.errors import ConfigError, UnknownSetting

SHOWN_FROM: Final = 16  # characters of a key of which the last four are shown


class SettingsAccess:
    """Access to settings."""

    __slots__ = ("_writer", "scope")

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope, self._writer = scope, SettingWriter(scope)

    @needs("owner")
    async def list(self) -> api.SettingsView:
        """All settings, and what files and the environment define. Never a secret."""
        await self._writer.require_administrator()
        backend = self.scope.server_context.settings
        if backend is None or not backend.is_editable:
            return api.SettingsView(is_editable=False, problem=NOT_HERE)
        rows = await self._writer.store.current()
        return api.SettingsView(
            is_editable=True,
            secret_problem=backend.secret_problem,
            vendors=backend.vendors(),
            fixed=[
                api.FixedSettingView(kind=row.kind, name=row.name, value=row.value, where=row.where)
                for row in backend.fixed()
            ],
            keys=[_key_view(row, backend) for row in rows if row.kind == "key"],
            models=[_model_view(row, backend) for row in rows if row.kind == "model"],
            agents=[_agent_view(row, backend) for row in rows if row.kind == "agent"],
            mcp=[await mcp_view(row, backend, self.scope) for row in rows if row.kind == "mcp"],
            programs=[
                api.ProgramView(name=name, variables=list(variables)) for name, variables in backend.programs().items()
            ],
            mcp_problem="" if backend.servers is not None else NO_MCP,
        )

    # Keys --------------------------------------------------------------------------------------------------------------

    @needs("owner")
    async def put_key(self, vendor: str, request: api.NewModelKey) -> api.ModelKeyView:
        """Store the API key of a vendor, instead of the one before. No answer ever contains it.

        Raises:
            ConfigError: the vendor has no keys, the environment has one already, or it cannot be encrypted.
        """
        backend = await self._writer.backend()
        if vendor not in backend.vendors():
            raise ConfigError(
                f"there is no vendor {vendor[:40]!r} with a key; there are {', '.join(backend.vendors())}"
            )
        self._writer.require_free(backend, "key", vendor)
        shown = _shown_key(request.key)
        setting = await self._writer.save(
            backend, "key", vendor, shown, secret=request.key, fingerprint=shown.fingerprint
        )
        return _key_view(setting, backend)

    @needs("owner")
    async def delete_key(self, vendor: str) -> None:
        """Delete a key, from all versions. Models that need it fail from the next request on."""
        await self._writer.delete("key", vendor)

    @needs("owner")
    async def test_key(self, vendor: str) -> api.KeyTestView:
        """Ask a vendor for its models with the stored key."""
        backend = await self._writer.backend()
        setting = await self._writer.get("key", vendor)
        tested = await backend.test_key(setting)
        await self.scope.audit_action("setting.test", f"key:{vendor}", version=setting.version)
        return api.KeyTestView(models=list(tested.models), problem=tested.problem, is_refused=tested.is_refused)

    # Models ------------------------------------------------------------------------------------------------------------

    @needs("owner")
    async def put_model(self, model: str, request: api.NewModelSettings) -> api.ModelSettingsView:
        """Offer a model, or change one.

        Raises:
            ConfigError: it is invalid, its key is missing, or a file has a model of this name.
            HashMismatch: another person has changed it meanwhile.
        """
        backend = await self._writer.backend()
        self._writer.require_free(backend, "model", model)
        settings = request.settings
        if request.key and not settings.base_url:
            raise ConfigError("only a model with a base_url can have its own key; store the key of a vendor under Keys")
        before = await self._writer.find("model", model)
        known: ModelSettings | None = decode_body(before) if before is not None else None
        keeps_secret = known is not None and known.base_url == settings.base_url and not request.key
        shown = _shown_key(request.key) if request.key else known.key if known is not None and keeps_secret else None
        body = ModelSettings(
            settings.model, settings.base_url, settings.window, settings.tool_format, settings.offered, shown
        )
        sealed = before.secret if before is not None and keeps_secret else b""
        detail = {"model": body.model, "base_url": body.base_url}
        saved = await self._writer.save(
            backend, "model", model, body, request.version, secret=request.key, sealed=sealed, **detail
        )
        return _model_view(saved, backend)

    @needs("owner")
    async def delete_model(self, model: str) -> None:
        """Delete a model.

        Raises:
            ConfigError: an agent uses it.
        """
        await self._writer.delete("model", model)

    # Agents ------------------------------------------------------------------------------------------------------------

    @needs("owner")
    async def put_agent(self, agent: str, request: api.NewAgentSettings) -> api.AgentSettingsView:
        """Create an agent, or change one: turns that start later have the new version.

        Raises:
            ConfigError: it is invalid, or a file has an agent of this name.
            HashMismatch: another person has changed it meanwhile.
        """
        backend = await self._writer.backend()
        self._writer.require_free(backend, "agent", agent)
        return _agent_view(await self._writer.save(backend, "agent", agent, request.settings, request.version), backend)

    @needs("owner")
    async def agent_versions(self, agent: str) -> api.AgentVersionList:
        """All versions of an agent, newest first."""
        backend = await self._writer.backend()
        rows = await self._writer.store.versions("agent", agent)
        if not rows:
            raise UnknownSetting("there is no such setting")
        return api.AgentVersionList(versions=[_agent_view(row, backend) for row in rows])

    @needs("owner")
    async def restore_agent(self, agent: str, request: api.RestoreVersion) -> api.AgentSettingsView:
        """Make an older version of an agent the newest one; a deleted agent comes back."""
        backend = await self._writer.backend()
        self._writer.require_free(backend, "agent", agent)
        rows = await self._writer.store.versions("agent", agent)
        old = next((row for row in rows if row.version == request.version and not row.is_deleted), None)
        if old is None:
            raise UnknownSetting("there is no such setting")
        body: AgentSettings = decode_body(old)
        saved = await self._writer.save(backend, "agent", agent, body, rows[0].version, restored=request.version)
        return _agent_view(saved, backend)

    @needs("owner")
    async def delete_agent(self, agent: str) -> None:
        """Delete an agent; its versions stay, and it can be restored.

        Raises:
            ConfigError: another agent needs it.
        """
        await self._writer.delete("agent", agent)


def _shown_key(key: str) -> KeySettings:
    """What of a key is shown: a fingerprint, and its last four characters if it has many more."""
    key = key.strip()
    return KeySettings(key[-4:] if len(key) >= SHOWN_FROM else "", hashlib.sha256(key.encode()).hexdigest()[:12])


def _key_view(row: Setting, backend: SettingsBackend) -> api.ModelKeyView:
    shown: KeySettings = decode_body(row)
    return api.ModelKeyView(
        vendor=row.name,
        last_four=shown.last_four,
        fingerprint=shown.fingerprint,
        by=row.by,
        at=row.at,
        problem=backend.problems.get(("key", row.name), ""),
    )


def _model_view(row: Setting, backend: SettingsBackend) -> api.ModelSettingsView:
    return api.ModelSettingsView(
        name=row.name,
        version=row.version,
        by=row.by,
        at=row.at,
        problem=backend.problems.get(("model", row.name), ""),
        settings=decode_body(row),
    )


def _agent_view(row: Setting, backend: SettingsBackend) -> api.AgentSettingsView:
    return api.AgentSettingsView(
        name=row.name,
        version=row.version,
        by=row.by,
        at=row.at,
        problem=backend.problems.get(("agent", row.name), ""),
        is_deleted=row.is_deleted,
        settings=decode_body(row),
    )
