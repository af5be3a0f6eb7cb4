"""Grants and usage totals of the reference store, read off the logs of all sessions.

Usage outlives its session: it stays when the session is erased. Both are updated after an append has succeeded, so they
never need to be rolled back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from everturn.core.events import (
    AnswerStarted,
    CallStarted,
    CompactionFailed,
    CompactionFinished,
    Event,
    GateResolved,
    GrantRevoked,
    StepFinished,
    StepInterrupted,
    TitleSet,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from everturn.core.gates import Grant
from everturn.core.options import Spent
from everturn.core.store_ports import UsageRecord
from everturn.errors import UnknownGrant

USAGE_EVENTS: frozenset[type[Event]] = frozenset(
    (
        TurnStarted,
        AnswerStarted,
        StepFinished,
        StepInterrupted,
        CompactionFinished,
        CompactionFailed,
        TitleSet,
        CallStarted,
        TurnCompleted,
        TurnFailed,
        TurnCancelled,
    )
)
"""The events that change how much a turn has used, or when it last did."""

DAY = 86_400
USAGE_TIME_STEP = 60.0  # seconds


def usage_time(before: float, now: float) -> float:
    """Return the time of a turn's usage after an event at `now`: it moves by minutes, and at midnight (UTC).

    Three indexes have this time: if every step changed it, each would write to all of them.
    """
    return now if not 0 <= now - before < USAGE_TIME_STEP or now // DAY != before // DAY else before


class TurnUsage(Struct):
    """What a turn has used, and on which account: its own session's, or that of the root turn."""

    tenant: str
    home: str  # the root session; its own if the turn has no parent
    top: str = ""  # the root turn
    at: float = 0.0  # when its last step, or the turn itself, ended; see `usage_time`
    spent: Spent = Spent()
    agent: str = ""
    by: str = ""  # the user who started it
    model: str = ""  # of its last step


class UsageTotals:
    """Grants and usage of all sessions. An imported log adds neither grants nor usage."""

    def __init__(self) -> None:
        self._grants: dict[tuple[str, str], tuple[str, Grant]] = {}  # origin, id -> tenant, grant
        self._used: dict[tuple[str, str], TurnUsage] = {}  # session, turn

    def take(self, session: str, tenant: str, events: Iterable[Event], is_restored: bool = False) -> None:
        """Record the events that were appended to a session."""
        for event in events:
            kind = type(event)
            if kind in USAGE_EVENTS:
                self._count(session, tenant, event, is_restored)
            elif is_restored:  # an imported log is untrusted: it must not grant anything
                continue
            elif isinstance(event, GateResolved) and event.grant is not None:
                self._grants[session, event.grant.id] = (tenant, event.grant)
            elif isinstance(event, GrantRevoked):
                self._revoke(session, tenant, event.grant)

    # Grants -----------------------------------------------------------------------------------------------------------

    def grants(self, session: str, tenant: str, now: float) -> list[Grant]:
        """Return the grants that are valid in a session, oldest first."""
        valid = [
            grant
            for owner, grant in self._grants.values()
            if owner == tenant and grant.session in ("", session) and (not grant.expires or now < grant.expires)
        ]
        return sorted(valid, key=lambda grant: (grant.at, grant.id))

    def tenant_grants(self, tenant: str, now: float) -> list[tuple[str, Grant]]:
        """Return a tenant's valid grants with the sessions they were made in, newest first."""
        valid = [
            (origin, grant)
            for (origin, _), (owner, grant) in self._grants.items()
            if owner == tenant and (not grant.expires or now < grant.expires)
        ]
        return sorted(valid, key=lambda pair: (-pair[1].at, pair[1].id, pair[0]))

    def revoke(self, session: str, tenant: str, grant: str) -> None:
        """Revoke a grant that was made in this session, or is valid in it.

        Raises:
            UnknownGrant: there is no such grant, or it was revoked before.
        """
        if not self._revoke(session, tenant, grant):
            raise UnknownGrant(f"there is no grant {grant!r} in this session")

    def _revoke(self, session: str, tenant: str, grant: str) -> bool:
        revoked = [
            (origin, name)
            for (origin, name), (owner, held) in self._grants.items()
            if name == grant and owner == tenant
            if origin == session or held.session in ("", session)
        ]
        for key in revoked:
            del self._grants[key]
        return bool(revoked)

    def erase(self, session: str) -> None:
        """Remove the grants that were made in a session or are valid in it. Its usage stays."""
        self._grants = {key: held for key, held in self._grants.items() if session not in (key[0], held[1].session)}

    # Spending ---------------------------------------------------------------------------------------------------------

    def below(self, session: str) -> list[str]:
        """Return the sessions of its sub-agent runs, as recorded at their start: no log can forge that."""
        homes = {(used.tenant, used.home) for (name, _), used in self._used.items() if name == session}
        return sorted({name for (name, _), used in self._used.items() if (used.tenant, used.home) in homes} - {session})

    def spent(self, *, session: str = "", top: str = "", tenant: str = "", since: float = 0.0) -> Spent:
        """Return the usage of an account."""
        column = account_column(session, top, tenant)
        used = (row for row in self._used.values() if getattr(row, column) == (session or top or tenant))
        return sum((row.spent for row in used if not tenant or row.at >= since), Spent())

    def usage_by_day(self, tenant: str, since: float) -> list[tuple[int, str, Spent]]:
        """Return the usage of a tenant by day and agent."""
        totals: dict[tuple[int, str], Spent] = {}
        for row in self._used.values():
            if row.tenant == tenant and row.at >= since:
                key = (int(row.at // DAY), row.agent)
                totals[key] = totals.get(key, Spent()) + row.spent
        return [(day, agent, spent) for (day, agent), spent in sorted(totals.items()) if spent != Spent()]

    def usage_by_user(self, tenant: str, since: float) -> list[tuple[str, str, str, Spent]]:
        """Return the usage of a tenant by user, model and agent."""
        totals: dict[tuple[str, str, str], Spent] = {}
        for row in self._used.values():
            if row.tenant == tenant and row.at >= since:
                key = (row.by, row.model, row.agent)
                totals[key] = totals.get(key, Spent()) + row.spent
        return [(*key, spent) for key, spent in sorted(totals.items()) if spent != Spent()]

    def record(self, record: UsageRecord) -> None:
        """Count what a request outside of a turn used."""
        self._used["", record.id] = TurnUsage(
            record.tenant, "", "", record.at, record.spent, by=record.user, model=record.model
        )

    def user_spent(self, tenant: str, user: str, since: float) -> Spent:
        """Return the usage of the turns that a user started."""
        used = (
            row for row in self._used.values() if user and (row.tenant, row.by) == (tenant, user) and row.at >= since
        )
        return sum((row.spent for row in used), Spent())

    def _count(self, session: str, tenant: str, event: Any, is_restored: bool) -> None:
        if type(event) is TurnStarted:
            parent = None if is_restored else event.options.lineage
            home, top = (session, "") if parent is None else (parent.session, parent.turn)
            by = "" if is_restored else event.options.by
            self._used[session, event.turn] = TurnUsage(tenant, home, top, event.at, agent=event.options.agent, by=by)
            return
        used = self._used.get((session, event.turn))
        if used is None or is_restored:  # an imported log is untrusted: it could claim negative usage
            return
        if type(event) is AnswerStarted:
            used.model = event.message.by
            return
        if type(event) is CallStarted:
            used.spent = Spent(used.spent.steps, used.spent.calls + 1, used.spent.usage)
            return
        if type(event) is TitleSet and not event.model:  # it is the first message
            return
        used.at = usage_time(used.at, event.at)
        if type(event) in (StepFinished, StepInterrupted):
            used.spent += Spent(steps=1, usage=event.usage)
            used.model = getattr(event, "model", "") or used.model  # a fallback
        elif type(event) in (CompactionFinished, CompactionFailed, TitleSet):
            used.spent += Spent(usage=event.usage)


def account_column(session: str, top: str, tenant: str) -> str:
    """Return the column to sum by: the root session, the root turn, or the tenant.

    Raises:
        TypeError: not exactly one of them was given.
    """
    columns = [name for name, value in (("home", session), ("top", top), ("tenant", tenant)) if value]
    if len(columns) != 1:
        raise TypeError("spent needs an owner: spent(session=…), spent(top=…), or spent(tenant=…, since=…)")
    return columns[0]
