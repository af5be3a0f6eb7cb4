"""Call log of inbound hooks: what became of deliveries, in the audit log, where the last ones of a hook are found.

A delivery that did something has a record of its own. Anyone can send requests that are refused, and a sender may
repeat or send what a hook ignores thousands of times: of these, a process records one a minute for each hook.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import encode_canonical
from everturn.core.tenants.audit import AuditRecord
from everturn.core.tenants.user_records import AuditFilter
from everturn.errors import EverturnError
from everturn.inbound_hooks.hook import InboundHook

if TYPE_CHECKING:
    from everturn.base_app import BaseApp

CallOutcome = Literal["started", "completed", "answered", "ignored", "repeated", "refused"]
DID: Final = "hook.receive"
PAUSE: Final = 60.0  # seconds between two records of calls that did nothing
MAX_REASON: Final = 300  # characters


class CallDetail(Struct, frozen=True, omit_defaults=True):
    """The detail of an audit record of a call: ids and a reason, nothing of the payload."""

    outcome: CallOutcome
    session: str = ""
    turn: str = ""
    reason: str = ""


class HookCall(Struct, frozen=True):
    """A call of a hook, and when it was."""

    at: float
    detail: CallDetail


class CallLog:
    """Records the calls of hooks, and finds the last ones."""

    def __init__(self, app: BaseApp) -> None:
        self._app = app
        self._recorded: dict[tuple[str, CallOutcome], float] = {}

    async def record(self, hook: InboundHook, outcome: str, session: str, turn: str, is_new: bool) -> None:
        """Record a delivery that was accepted."""
        match outcome:
            case "started" | "completed" | "answered" if is_new:
                await self._append(hook, CallDetail(outcome, session, turn))
            case "ignored":
                await self._append_rarely(hook, CallDetail("ignored"))
            case "started" | "completed" | "answered":
                await self._append_rarely(hook, CallDetail("repeated", session, turn))
            case _:  # the check of the address by Slack
                pass

    async def record_refusal(self, hook: InboundHook, reason: str) -> None:
        """Record a delivery that was refused. The sender is told of the refusal whether this succeeds or not."""
        with suppress(EverturnError):
            await self._append_rarely(hook, CallDetail("refused", reason=reason[:MAX_REASON]))

    async def last(self, hook: str, tenant: str, limit: int) -> list[HookCall]:
        """The last calls of a hook, newest first."""
        records = self._app.store.accounts.records
        found = await records.search_audit(tenant, AuditFilter("", DID, hook), 0, limit)
        return [HookCall(row.at, msgspec.json.decode(row.detail, type=CallDetail)) for row in found]

    async def _append_rarely(self, hook: InboundHook, detail: CallDetail) -> None:
        now = self._app.clock.now()
        place: tuple[str, CallOutcome] = (hook.name, detail.outcome)
        if now - self._recorded.get(place, -PAUSE) >= PAUSE:
            self._recorded[place] = now
            await self._append(hook, detail)

    async def _append(self, hook: InboundHook, detail: CallDetail) -> None:
        shown = encode_canonical(msgspec.to_builtins(detail))
        record = AuditRecord(hook.tenant, self._app.clock.now(), hook.by, f"hook:{hook.name}", DID, hook.name, shown)
        await self._app.store.accounts.append_audit(record)
