"""Tenants, audit log, quarantined sessions and the first-run setup."""

from __future__ import annotations

from typing import Literal

from everturn.api.base import Body, Name, View
from everturn.core.tenants.accounts import AuditRecord


class PutTenant(Body, frozen=True, kw_only=True):
    """Create or update a tenant."""

    name: Name = ""
    is_active: bool = True


class QuarantinedSession(View, frozen=True, kw_only=True):
    """A quarantined session: no title and no text, because it may be private."""

    id: str
    by: str
    agent: str
    created: float
    updated: float
    reason: str
    open_turns: int


class QuarantineList(View, frozen=True, kw_only=True):
    """Quarantined sessions, oldest first, and how long sessions are kept."""

    sessions: list[QuarantinedSession]
    retention_days: float  # days after which an idle session is erased; 0: never
    temporary_hours: float  # after which a temporary chat is erased


class CancelledSession(View, frozen=True, kw_only=True):
    """How many open turns of a session are being cancelled."""

    turns: int


class TenantView(View, frozen=True, kw_only=True):
    """A tenant."""

    id: str
    name: str
    is_active: bool


class TenantList(View, frozen=True, kw_only=True):
    """Tenants, by id."""

    tenants: list[TenantView]


class AuditPage(View, frozen=True, kw_only=True):
    """Audit records, oldest first."""

    records: list[AuditRecord]


class ModelSource(View, frozen=True, kw_only=True):
    """An available model source: an API key in the environment, or a model server on this machine."""

    kind: Literal["key", "server"]
    name: str  # of the variable, or of the server
    address: str  # of the server
    models: list[str]  # its models; for a vendor, one to start with
    toml: str  # the configuration for the first of them
    needs_restart: bool


class SetupView(View, frozen=True, kw_only=True):
    """The configured model, and the other available model sources."""

    agent: str
    model: str
    is_offline: bool
    file: str  # the configuration that is, or would be, read
    has_file: bool
    has_agent: bool  # whether the agent has a table there already
    options: list[ModelSource]
