"""Turns and the questions they ask, as one principal may see and answer them."""

from __future__ import annotations

import hmac

from everturn import api
from everturn.access.inside import Inside, is_id
from everturn.access.needs import needs
from everturn.access.veiling import veil, veil_problem
from everturn.chat.answering import Reply
from everturn.core.accounts import Role
from everturn.core.asking import Gate
from everturn.core.canonical import digest
from everturn.core.commands import Send
from everturn.core.events import FilesChanged, FilesReverted, GateOpened, Problem
from everturn.core.gates import GateRow
from everturn.core.parts import FilesPart
from everturn.core.ports import SessionInfo
from everturn.core.state import Phase, TurnState, fold
from everturn.errors import (
    AnswerUnfit,
    ConfigError,
    HashMismatch,
    UnknownFile,
    UnknownGate,
    UnknownGrant,
    UnknownTurn,
)

FOR_MEMBERS = ("form", "client")
DEEPEST = 32  # sub-turns of sub-turns; a chain that is longer is none


class Gating(Inside):
    """What somebody may see of turns and gates, and answer."""

    @needs("viewer")
    async def turn(self, session: str, turn: str) -> api.TurnView:
        """A turn as its log tells it; idle while it is only asked for."""
        await self.readable(session)
        state = await self._state(session, turn)
        waiting = [gate for name, gate in state.asked.items() if state.gates[name] is None]
        return api.TurnView(
            session=session,
            turn=turn,
            phase=state.phase,
            step=state.step.number if state.step is not None else 0,
            messages=self.shown(list(state.messages.values())),
            gates=[self._seen(gate) for gate in waiting],
            usage=state.usage,
            problem=self._trouble(state.ending.problem if state.ending is not None else None),
        )

    def _trouble(self, problem: Problem | None) -> Problem | None:
        return veil_problem(problem) if self.is_veiled and problem is not None else problem

    async def _state(self, session: str, turn: str) -> TurnState:
        if not is_id(turn):
            raise UnknownTurn("there is no such turn")
        with self.within():
            # The inbox first: what is acted on between the two looks is then in the log.
            inbox = await self.store.inbox(session)
            log = await self.store.events(session, turn=turn)
        if log:
            return fold(entry.event for entry in log)
        state = TurnState(turn)
        if not any(isinstance(command, Send) and command.turn == turn for command in inbox):
            with self.within():
                if not await self.store.asked_for(session, turn):
                    raise UnknownTurn("there is no such turn")
            state.phase = Phase.CANCELLED  # before it could begin
        return state

    @needs("member")
    async def cancel(self, session: str, turn: str, cancelled: api.Cancelled, key: str = "") -> None:
        """End a turn; `hard` ends its tools as well."""
        await self.own(session)
        if not is_id(turn):
            raise UnknownTurn("there is no such turn")
        with self.keyed(key):
            await self.chat(session).turn(turn).cancel(hard=cancelled.hard, key=self.key(key))

    # Gates -------------------------------------------------------------------------------------------------------

    @needs("viewer")
    async def gates(self, session: str | None = None, limit: int | None = None, after: str = "") -> api.GateList:
        """What stands open: in a session and its sub-turns, or in all of the tenant's; with a limit, a page of it."""
        if session is not None:
            await self.own(session)
        place, views = _behind(after), list[api.GateView]()
        while True:
            with self.within():
                page = await self.store.gate_page(session, tenant=self.principal.tenant, limit=limit, after=place)
            views += await self._viewed(page)
            if limit is None or len(page) < limit:
                return api.GateList(gates=views)
            place = (page[-1][1].opened, page[-1][0], page[-1][1].gate.id)
            if views:  # a page of gates that were all erased meanwhile is none
                return api.GateList(gates=views, next=f"{place[0]!r}~{place[2]}~{place[1]}")

    async def open_gates(self, session: str | None = None) -> list[api.GateView]:
        """Open gates with the titles of their sessions, oldest first."""
        return (await self.gates(session)).gates

    async def _viewed(self, page: list[tuple[str, GateRow]]) -> list[api.GateView]:
        tops = await self._tops({session for session, _ in page})
        return [
            api.GateView(
                session=where, title=tops[where].title, opened=row.opened, gate=self._seen(row.gate), claim=row.claim
            )
            for where, row in page
            if where in tops
        ]

    async def _tops(self, sessions: set[str]) -> dict[str, SessionInfo]:
        """For each of these sessions the one that a person began; those that are not the tenant's are left out.

        One query for each generation, however many sessions there are.
        """
        known: dict[str, SessionInfo] = {}
        wanted = sessions
        for _ in range(DEEPEST):
            if not wanted:
                break
            with self.within():
                found = await self.store.infos(sorted(wanted))
            known |= {name: info for name, info in found.items() if info.tenant == self.principal.tenant}
            wanted = {info.above for info in found.values() if info.above} - known.keys()
        tops: dict[str, SessionInfo] = {}
        for session in sessions:
            info = known.get(session)
            for _ in range(DEEPEST):
                if info is None or not info.above:
                    break
                info = known.get(info.above)
            if info is not None and not info.above:
                tops[session] = info
        return tops

    def _seen(self, gate: Gate) -> Gate:
        return veil(gate) if self.is_veiled else gate

    async def _gate(self, session: str, gate: str, hash: str, answered: api.Answered | None = None) -> Gate:
        """A gate of this session, or of a sub-turn of it, as it was opened; whether it is still open is for the door.

        Raises:
            UnknownGate: there is none.
            Forbidden: it is not for this one to give such an answer.
            AnswerUnfit: it is to be claimed (no answer is given), and is not for clients.
            HashMismatch: it shows something else than what was seen.
        """
        await self.own(session)
        found = await self._opened(session, gate) if is_id(gate) else None
        if found is None:
            raise UnknownGate("there is no such gate")
        # First: the hash covers a result that waits for a review, and whoever may not read that could try guesses.
        if answered is not None:
            self.refuse_less(*_takes(found, answered))
        elif found.kind != "client":
            raise AnswerUnfit(f"this is about a {found.kind}: it is for a person, no client can claim it")
        # Without saying the hash that it has: whoever does not see all of the gate could answer with that.
        if not hmac.compare_digest(found.hash.encode(), hash.encode()):
            raise HashMismatch("this answer is for something else than what the gate shows; look at it again")
        return found

    async def _opened(self, session: str, gate: str) -> Gate | None:
        with self.within():
            here = await self.store.gates(session)
        if (row := _named(here, gate)) is not None:
            return row.gate
        with self.within():
            below = await self.store.gate_page(session, tenant=self.principal.tenant, limit=None)
        if (row := _named([row for _, row in below], gate)) is not None:
            return row.gate
        with self.within():  # it was answered, or is closed: the same answer again is no news, and another is told so
            log = await self.store.events(session)
        opened = (entry.event.gate for entry in log if isinstance(entry.event, GateOpened))
        return next((one for one in opened if one.id == gate), None)

    @needs("member")
    async def answer(self, session: str, gate: str, answered: api.Answered) -> None:
        """Answer a gate. A member may answer what a form or a client asks; the rest takes an approver, and what is to
        hold everywhere an owner.
        """
        found = await self._gate(session, gate, answered.hash, answered)
        if answered.rule is not None and answered.allow != "always":
            raise ConfigError('a rule says what is remembered, and goes with allow="always"')
        tool = self.house.runtime.tools.get(found.tool)
        if answered.everywhere and tool is not None and "command" in tool.spec.subjects.values():
            raise ConfigError(
                "a command is allowed in one session, to the user who asked there; leave out `everywhere`"
            )
        reply = Reply(
            allow=answered.rule if answered.rule is not None else answered.allow,
            deny=answered.deny,
            arguments=answered.arguments,
            result=answered.result,
            text=answered.text,
            everywhere=answered.everywhere,
            until=answered.until,
            others=answered.others,
            failed=answered.failed,
            by=self.principal.user,
            claim=self._claim(answered.claim) if answered.claim else "",
        )
        where = found.session or session
        if not await self.chat(where).answer(found, **reply):
            return  # the same again: it was noted when it was news
        is_denied = answered.deny is not None and answered.deny is not False
        said = "deny" if is_denied else "result" if answered.result is not None else answered.allow or ""
        await self.note(
            "gate.answer",
            gate,
            session=where,
            kind=found.kind,
            tool=found.tool,
            said=said,
            hash=found.hash,
            edited=answered.arguments is not None or answered.text is not None,
            everywhere=answered.everywhere,
        )

    @needs("member")
    async def claim(self, session: str, gate: str, claim: api.Claim) -> api.ClaimView:
        """Take a call that is for a client upon oneself, for a time."""
        found = await self._gate(session, gate, claim.hash)
        claimed = await self.chat(found.session or session).claim(found, self._claim(claim.claim), claim.lease)
        return api.ClaimView(until=claimed.until)

    def _claim(self, claim: str) -> str:
        """A claim as it is kept, for all to see: whose it is, and nothing that another could answer with."""
        return f"{self.principal.user}~{digest(self.principal.user, claim)[:32]}"

    # What is allowed from then on, and files ---------------------------------------------------------------------

    @needs("viewer")
    async def grants(self, session: str) -> api.GrantList:
        """What people have allowed from then on, and holds in a session."""
        await self.own(session)
        with self.within():
            found = await self.store.grants(session, self.house.runtime.clock.now())
        return api.GrantList(grants=found)

    @needs("approver")
    async def revoke_grant(self, session: str, grant: str) -> None:
        """Let a remembered answer hold no more; one that holds everywhere takes an owner."""
        await self.own(session)
        with self.within():
            found = await self.store.grants(session, self.house.runtime.clock.now())
        one = next((one for one in found if one.id == grant), None)
        if one is None:
            raise UnknownGrant("there is no such grant")
        if not one.session:
            self.refuse_less("owner", "what holds everywhere")
        await self.chat(session).revoke(one, by=self.principal.user)
        await self.note("grant.revoke", grant, session=session, everywhere=not one.session)

    @needs("approver")
    async def revert(self, session: str, reverted: api.Reverted) -> api.RevertView:
        """Let files be what they were. Only a tree will do that was recorded in this session, for this root."""
        await self.own_top(session)
        with self.within():
            log = await self.store.events(session)
        trees = {
            tree
            for entry in log
            if isinstance(entry.event, FilesChanged | FilesReverted) and entry.event.root == reverted.root
            for tree in (entry.event.before, entry.event.after)
        }
        if reverted.tree not in trees or (reverted.root and not reverted.tree):
            raise UnknownFile("these files were never recorded here")
        files = FilesPart(0, before=reverted.tree, after="", root=reverted.root)
        done = await self.chat(session).revert(files, by=self.principal.user)
        await self.note("files.revert", session, root=reverted.root, tree=reverted.tree)
        return api.RevertView(reverted=done)


def _takes(gate: Gate, answered: api.Answered) -> tuple[Role, str]:
    """Who may give an answer, and what it is that takes them."""
    if answered.everywhere:
        return "owner", "to allow something everywhere"
    if gate.kind in FOR_MEMBERS and answered.allow != "always" and not answered.others:
        return "member", "to answer this"
    return "approver", "to answer this"


def _behind(after: str) -> tuple[float, str, str] | None:
    """Where a page of gates goes on: `next` of the one before."""
    if not after:
        return None
    opened, _, rest = after.partition("~")
    gate, _, session = rest.partition("~")
    try:
        at = float(opened)
    except ValueError:
        at = float("nan")
    if not abs(at) < 1e15 or not is_id(gate) or not is_id(session):
        raise ConfigError("after: say `next` of the page before, as it is")
    return at, session, gate


def _named(rows: list[GateRow], gate: str) -> GateRow | None:
    return next((row for row in rows if row.gate.id == gate), None)
