"""Gate access: gates, their claims, and the grants of a session, as one principal may see and resolve them."""

from __future__ import annotations

import hmac

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, is_id
from everturn.chat.replies import GateReply
from everturn.core.canonical_json import hash_values
from everturn.core.events import GateOpened
from everturn.core.gate_rows import GateRow
from everturn.core.gates import GATE_KINDS_FOR_MEMBERS, Gate, Grant, GrantLimit
from everturn.core.tenants.accounts import Role, is_at_least
from everturn.errors import AnswerUnfit, ConfigError, HashMismatch, UnknownGate, UnknownGrant, UnknownSession


class GateAccess:
    """Access to gates, and to the grants of a session."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("viewer")
    async def page(self, session: str | None = None, limit: int | None = None, after: str = "") -> api.GateList:
        """The open gates of a session and its sub-agents, or of all sessions; with a limit, one page of them.

        An approver sees the gates of all conversations, and of those that are private to others nothing but the gates.
        """
        takes_part = session is None or await self.scope.takes_part(session)
        is_whole = self.scope.is_approver
        cursor, views = _parse_cursor(after), list[api.GateView]()
        while True:
            with self.scope.tenant_scope(is_whole):
                page = await self.scope.store.gate_page(
                    session, tenant=self.scope.principal.tenant, limit=limit, after=cursor
                )
            views += await self._gate_views(page, is_whole)
            if not takes_part and not views:
                raise UnknownSession("there is no such session")
            if limit is None or len(page) < limit:
                return api.GateList(gates=views)
            cursor = (page[-1][1].opened, page[-1][0], page[-1][1].gate.id)
            if views:  # all gates of this page were erased meanwhile: read the next one
                return api.GateList(gates=views, next=f"{cursor[0]!r}~{cursor[2]}~{cursor[1]}")

    async def _gate_views(self, page: list[tuple[str, GateRow]], is_whole: bool) -> list[api.GateView]:
        tops = await self.scope.root_sessions({session for session, _ in page}, is_whole)
        return [
            api.GateView(
                session=where,
                title=tops[where].title,
                opened=row.opened,
                gate=self.scope.redact_gate(row.gate),
                claim=row.claim,
            )
            for where, row in page
            if where in tops
        ]

    async def _gate(self, session: str, gate: str, hash: str, answered: api.AnswerGate | None = None) -> Gate:
        """A gate of this session, or of a sub-agent of it, as it was opened. Admission checks whether it is still open.

        Raises:
            UnknownSession: there is no such session, or it is private to others and has no such gate.
            UnknownGate: there is no such gate.
            Forbidden: the caller's role is not enough for this answer.
            AnswerUnfit: the gate is to be claimed (there is no answer), and is not for clients.
            HashMismatch: the gate shows something else than what the caller has seen.
        """
        takes_part = await self.scope.takes_part(session)
        found = await self._find_opened(session, gate) if is_id(gate) else None
        if found is None:
            raise (UnknownGate if takes_part else UnknownSession)("there is no such gate")
        if not self.scope.is_approver:
            await self.scope.own_session(session, "write")
        # First: the hash covers a result under review, and a caller who may not read that could test guesses against it.
        if answered is not None:
            self.scope.require_role(*_takes(found, answered))
        elif found.kind != "client":
            raise AnswerUnfit(f"only a person can answer a gate of kind {found.kind}; a client cannot claim it")
        # Without naming the gate's hash: a caller who does not see all of the gate could answer with it.
        if not hmac.compare_digest(found.hash.encode(), hash.encode()):
            raise HashMismatch(
                "the hash in this answer is not that of the gate; read the gate again, and answer with its hash"
            )
        return found

    async def _find_opened(self, session: str, gate: str) -> Gate | None:
        is_whole = self.scope.is_approver
        with self.scope.tenant_scope(is_whole):
            own_rows = await self.scope.store.gates(session)
        if (row := _find_gate(own_rows, gate)) is not None:
            return row.gate
        with self.scope.tenant_scope(is_whole):
            below = await self.scope.store.gate_page(session, tenant=self.scope.principal.tenant, limit=None)
        if (row := _find_gate([row for _, row in below], gate)) is not None:
            return row.gate
        with self.scope.tenant_scope(
            is_whole
        ):  # it was answered or closed: an identical answer does nothing, and another one gets the reason
            log = await self.scope.store.indexed_events(session, "gate", gate)
        return next((entry.event.gate for entry in log if isinstance(entry.event, GateOpened)), None)

    @needs("member")
    async def resolve(self, session: str, gate: str, answered: api.AnswerGate) -> None:
        """Answer a gate. A member may answer a form or a client tool's call; the rest needs an approver, and a
        tenant-wide grant an owner.
        """
        found = await self._gate(session, gate, answered.hash, answered)
        if answered.rule is not None and answered.allow != "always":
            raise ConfigError('`rule` is only valid with allow="always"')
        tool = self.scope.server_context.app.find_gate_tool(found)
        if answered.everywhere and tool is not None and "command" in tool.spec.subjects.values():
            raise ConfigError(
                "a shell command can be allowed only in one session, for the user who asked; leave `everywhere` out"
            )
        reply = GateReply(
            allow=answered.rule if answered.rule is not None else answered.allow,
            deny=answered.deny,
            arguments=answered.arguments,
            result=answered.result,
            text=answered.text,
            everywhere=answered.everywhere,
            within=_limit(answered),
            until=answered.until,
            others=answered.others,
            stop=answered.stop,
            failed=answered.failed,
            by=self.scope.principal.user,
            claim=self._claim(answered.claim) if answered.claim else "",
        )
        gate_session = found.session or session
        if not await self.scope.chat(gate_session).answer(found, **reply):
            return  # an identical answer: it was audited the first time
        is_denied = answered.deny is not None and answered.deny is not False
        kind_of_answer = "deny" if is_denied else "result" if answered.result is not None else answered.allow or ""
        await self.scope.audit_action(
            "gate.answer",
            gate,
            session=gate_session,
            kind=found.kind,
            tool=found.tool,
            said=kind_of_answer,
            hash=found.hash,
            edited=answered.arguments is not None or answered.text is not None,
            everywhere=answered.everywhere,
            within=answered.within or ("user" if answered.everywhere else ""),
        )

    @needs("member")
    async def claim(self, session: str, gate: str, claim: api.ClaimGate) -> api.ClaimView:
        """Claim a call of a client tool for a time."""
        found = await self._gate(session, gate, claim.hash)
        claimed = await self.scope.chat(found.session or session).claim(found, self._claim(claim.claim), claim.lease)
        return api.ClaimView(until=claimed.until)

    def _claim(self, claim: str) -> str:
        """A claim as it is stored, visible to all: it names the user, and nothing that another client could answer with."""
        return f"{self.scope.principal.user}~{hash_values(self.scope.principal.user, claim)[:32]}"

    # Grants ------------------------------------------------------------------------------------------------------

    @needs("viewer")
    async def grants(self, session: str) -> api.SessionGrantList:
        """The grants that apply in a session."""
        await self.scope.own_session(session)
        with self.scope.tenant_scope():
            grants = await self.scope.store.grants(session, self.scope.server_context.app.clock.now())
        return api.SessionGrantList(grants=[grant for grant in grants if is_grant_shown(self.scope, grant)])

    @needs("approver")
    async def revoke_grant(self, session: str, grant: str) -> None:
        """Revoke a grant; a tenant-wide one needs an owner."""
        await self.scope.own_session(session, "write")
        await revoke_checked(self.scope, session, grant)


def is_grant_shown(scope: ScopedAccess, grant: Grant) -> bool:
    """Whether a grant that holds in many sessions is shown to the caller: not the one of another user."""
    is_owner = is_at_least(scope.principal.role, "owner")
    return bool(grant.session) or is_owner or grant.asker in ("", scope.principal.user)


async def revoke_checked(scope: ScopedAccess, session: str, grant: str) -> None:
    """Revoke a grant that holds in a session, after the session was checked; a tenant-wide one needs an owner."""
    with scope.tenant_scope(whole=True):
        grants = await scope.store.grants(session, scope.server_context.app.clock.now())
    row = next((row for row in grants if row.id == grant), None)
    if row is None:
        raise UnknownGrant("there is no such grant")
    if not row.session:
        scope.require_role("owner", "what holds everywhere")
    await scope.chat(session).revoke(row, by=scope.principal.user)
    await scope.audit_action("grant.revoke", grant, session=session, everywhere=not row.session)


def _limit(answered: api.AnswerGate) -> GrantLimit:
    """The turns that a grant covers: everywhere is the person who asked, unless the answer says `tenant`."""
    if answered.within == "tenant":
        return ""
    return "user" if answered.everywhere and not answered.within else answered.within


def _takes(gate: Gate, answered: api.AnswerGate) -> tuple[Role, str]:
    """The role that an answer needs, and the description of the action."""
    if answered.everywhere:
        return "owner", "to allow something everywhere"
    if gate.kind in GATE_KINDS_FOR_MEMBERS and answered.allow != "always" and not answered.others:
        return "member", "to answer this"
    return "approver", "to answer this"


def _parse_cursor(after: str) -> tuple[float, str, str] | None:
    """Parse the cursor of a page of gates: `next` of the page before."""
    if not after:
        return None
    opened, _, rest = after.partition("~")
    gate, _, session = rest.partition("~")
    try:
        at = float(opened)
    except ValueError:
        at = float("nan")
    if not abs(at) < 1e15 or not is_id(gate) or not is_id(session):
        raise ConfigError("after: pass `next` of the previous page unchanged")
    return at, session, gate


def _find_gate(rows: list[GateRow], gate: str) -> GateRow | None:
    return next((row for row in rows if row.gate.id == gate), None)
