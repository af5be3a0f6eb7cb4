"""Roles of users, and records of the audit log."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Role = Literal["viewer", "member", "approver", "owner", "operator"]
"""Roles, each of which includes the ones before it: viewer (read), member (send and cancel), approver (resolve gates),
owner (manage users, keys and tenant-wide grants), operator (manage the processes of the whole installation)."""


class AuditRecord(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """An audit log record: an action, done or refused.

    `hash` covers it and the record before, so removing one shows.
    """

    tenant: str
    at: float
    by: str  # the user
    credential: str
    did: str  # "session.erase", "gate.answer", "key.create", "auth.refused", …
    on: str = ""  # the id it was done to
    detail: str = ""  # JSON; never a secret, never the content of a conversation
    n: int = 0  # its number in the tenant, from 1
    hash: str = ""
