"""Scope of a principal: checks every id from outside against its tenant and against the shares of its conversation, and
redacts what it may not see.

All resources of an `Access` share one.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from hashlib import sha256
from typing import Any, Final

from everturn.access.context.role_redaction import redact_gate, redact_messages
from everturn.access.context.roles import require_role
from everturn.access.context.server_context import ServerContext
from everturn.access.context.subagent_visibility import is_visible_to_all
from everturn.chat import Chat
from everturn.core.canonical_json import encode_canonical, hash_values
from everturn.core.events import Entry, Event, SubagentStarted
from everturn.core.gates import Gate
from everturn.core.memory.user_memory import OWNER_PREFIXES
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.store_ports import SessionInfo, Store
from everturn.core.tenants.accounts import AuditRecord, Principal, is_at_least
from everturn.core.tenants.sharing import Reader, SessionLevel, is_level, level_of, reader_of
from everturn.errors import ConfigError, Forbidden, KeyConflict, UnknownSession
from everturn.stores.import_sanitize import IMPORTED_USER_PREFIX

LONGEST_ID: Final = 1000  # characters; the session id of a sub-agent contains those of all its parents
LONGEST_NAME: Final = 200
DEEPEST: Final = 32  # levels of sub-agents; a longer chain is invalid
READ_ONLY: Final = "this conversation is shared with you to read; its author can let you write in it"
SUBAGENT_SESSION: Final = "this is the session of a sub-agent run, and can only be read; ask in the session above it"
NOT_YOURS: Final = "only the author of a conversation can do this"
KEY_REUSED: Final = "this Idempotency-Key was used before, for something else; take another"


class ScopedAccess:
    """The scope of one principal. Nothing here distinguishes another tenant's objects, or conversations that are private to
    others, from absent ones.
    """

    __slots__ = ("principal", "server_context")

    def __init__(self, server_context: ServerContext, principal: Principal) -> None:
        self.server_context, self.principal = server_context, principal

    @property
    def store(self) -> Store:
        """The store."""
        return self.server_context.app.store

    @property
    def is_redacted(self) -> bool:
        """Whether results under review and private values are redacted for this principal."""
        return not is_at_least(self.principal.role, "approver")

    def redact_messages(self, messages: list[Message]) -> list[Message]:
        """Messages as this principal may see them."""
        return redact_messages(messages) if self.is_redacted else messages

    def redact_gate(self, gate: Gate) -> Gate:
        """A gate as this principal may see it."""
        return redact_gate(gate) if self.is_redacted else gate

    @property
    def reader(self) -> Reader:
        """This principal, as far as it matters for what they may read now."""
        return reader_of(self.principal, self.server_context.app.clock.now())

    @property
    def is_approver(self) -> bool:
        """Whether this principal may see the open gates of all conversations of the tenant."""
        return is_at_least(self.principal.role, "approver")

    def tenant_scope(self, whole: bool = False) -> AbstractContextManager[Any]:
        """Restrict reads to what this principal may see of the tenant, where the store supports that (row-level security).

        With `whole`, to the tenant. Only around reads: what a command sets going would inherit it.
        """
        within = getattr(self.store, "restrict_to_tenant", None)
        return nullcontext() if within is None else within(self.principal.tenant, None if whole else self.reader)

    async def own_session(self, session: str, level: SessionLevel = "read") -> SessionInfo:
        """A session that this principal may see; the one place where that is checked.

        Raises:
            UnknownSession: the session is absent, erased, another tenant's, or private to others.
            Forbidden: this principal may see it, and not do more.
        """
        if not is_id(session):
            raise UnknownSession("there is no such session")
        with self.tenant_scope():
            info = await self.store.info(session)
        if info.tenant != self.principal.tenant:
            raise UnknownSession("there is no such session")
        found = await self.session_level(info)
        if found is None:
            raise UnknownSession("there is no such session")
        if not is_level(found, level):
            raise Forbidden(NOT_YOURS if level == "manage" else READ_ONLY)
        return info

    async def session_level(self, info: SessionInfo) -> SessionLevel | None:
        """What this principal may do in a session of the tenant; that of a sub-agent follows its root session."""
        root = info
        for _ in range(DEEPEST):
            if not root.parent:
                break
            with self.tenant_scope(whole=True):
                root = await self.store.info(root.parent)
        if root.parent or root.tenant != self.principal.tenant:
            return None
        reader = self.reader
        if root.by in reader.creators:
            return "manage"
        with self.tenant_scope(whole=True):
            shares = await self.store.sharing.shares([root.id])
        return level_of(reader, root.by, shares)

    async def takes_part(self, session: str) -> bool:
        """Whether this principal may see a session; False for an approver who may see its open gates only.

        Raises:
            UnknownSession: there is no such session, or it is private to others and this principal is no approver.
        """
        try:
            await self.own_session(session)
        except UnknownSession:
            if not self.is_approver or not is_id(session):
                raise
            await self.tenant_session(session)
            return False
        return True

    async def tenant_session(self, session: str) -> SessionInfo:
        """A session of the tenant, private or not."""
        with self.tenant_scope(whole=True):
            info = await self.store.info(session)
        if info.tenant != self.principal.tenant:
            raise UnknownSession("there is no such session")
        return info

    async def private_root_session(self, session: str) -> SessionInfo:
        """A root session that this principal may erase or open without seeing it: of a member the own one, of an owner any
        session of the tenant.

        Raises:
            UnknownSession: there is no such session, or it is private to others and the principal is no owner.
            Forbidden: it is shared with the principal, or a sub-agent's.
        """
        if not is_at_least(self.principal.role, "owner"):
            return await self.own_root_session(session, "manage")
        if not is_id(session):
            raise UnknownSession("there is no such session")
        info = await self.tenant_session(session)
        if info.parent:
            raise Forbidden(SUBAGENT_SESSION)
        return info

    async def readable_session(self, session: str) -> SessionInfo:
        """A session of this tenant that this principal may read.

        Raises:
            UnknownSession: the tenant has no such session, or it is a sub-agent's whose result is under review.
        """
        info = found = await self.own_session(session)
        while found.parent and self.is_redacted:
            parent = await self.own_session(found.parent)
            if not is_visible_to_all(await self._turns_that_started(parent.id, found.id), found.id, self._reviewed()):
                raise UnknownSession("there is no such session")
            found = parent
        return info

    async def _turns_that_started(self, session: str, child: str) -> list[Event]:
        """The events of the turns of a session whose calls started a sub-agent's session."""
        with self.tenant_scope():
            events = [entry.event for entry in await self.store.indexed_events(session, "subagent", child)]
            turns = dict.fromkeys(event.turn for event in events if isinstance(event, SubagentStarted))
            logs = [await self.store.events(session, turn=turn) for turn in turns]
        return [entry.event for log in logs for entry in log]

    async def readable_events(self, session: str) -> list[Entry]:
        """The log of a session; empty if this principal may not read it. A log may name any session as a child."""
        try:
            await self.readable_session(session)
            with self.tenant_scope():
                return await self.store.events(session)
        except UnknownSession:
            return []

    def _reviewed(self) -> set[str]:
        """The tools whose results are always reviewed, in any turn."""
        app, agents = self.server_context.app, self.server_context.agents.all
        enabled = [
            app.registry.enabled(),
            *(app.registry_of(agent.name).enabled(agent.options.tools) for agent in agents),
        ]
        enabled += [app.registry_of(name).tools for name in app.agents]
        return {name for tools in enabled for name, tool in tools.items() if tool.spec.review != "never"}

    async def own_root_session(self, session: str, level: SessionLevel = "write") -> SessionInfo:
        """A session that this principal may change; that of a sub-agent is read-only.

        Raises:
            UnknownSession: there is no such session for this principal.
            Forbidden: it is shared to be read, or a sub-agent's, which may do no more than its parent.
        """
        info = await self.own_session(session, level)
        if info.parent:
            raise Forbidden(SUBAGENT_SESSION)
        return info

    async def root_sessions(self, sessions: set[str], whole: bool = False) -> dict[str, SessionInfo]:
        """The root session of each of these sessions, the one that a person began; without those of other tenants and,
        unless it is for the `whole` tenant, those that are private to others.

        One query per level, however many sessions there are.
        """
        known: dict[str, SessionInfo] = {}
        wanted = sessions
        for _ in range(DEEPEST):
            if not wanted:
                break
            with self.tenant_scope(whole=True):
                found = await self.store.infos(sorted(wanted))
            known |= {name: info for name, info in found.items() if info.tenant == self.principal.tenant}
            wanted = {info.parent for info in found.values() if info.parent} - known.keys()
        roots: dict[str, SessionInfo] = {}
        for session in sessions:
            info = known.get(session)
            for _ in range(DEEPEST):
                if info is None or not info.parent:
                    break
                info = known.get(info.parent)
            if info is not None and not info.parent:
                roots[session] = info
        return roots if whole else await self._readable_roots(roots)

    async def _readable_roots(self, roots: dict[str, SessionInfo]) -> dict[str, SessionInfo]:
        reader = self.reader
        others = {info.id for info in roots.values() if info.by not in reader.creators}
        with self.tenant_scope(whole=True):
            shares = await self.store.sharing.shares(sorted(others)) if others else []
        return {
            session: info
            for session, info in roots.items()
            if level_of(reader, info.by, [share for share in shares if share.session == info.id]) is not None
        }

    def chat(self, session: str, options: TurnOptions | None = None) -> Chat:
        """A session as a `Chat`, in the name of this tenant."""
        options = options or TurnOptions()
        return Chat(
            options.model,
            app=self.server_context.app,
            session=session,
            options=options,
            tenant=self.principal.tenant,
        )

    def stored_key(self, key: str) -> str | None:
        """An idempotency key as it is stored: distinct from other users' keys and from those of the runtime."""
        return f"api.{hash_values(self.principal.user, key)[:40]}" if key else None

    async def new_session_id(self, key: str) -> str:
        """The id of a new session: unguessable, and the same again for the same key."""
        if not key:
            return f"session_{secrets.token_hex(16)}"
        secret = await self.server_context.secret("sessions")
        data = encode_canonical([self.principal.tenant, self.principal.user, key]).encode()
        return f"session_{hmac.digest(secret, data, sha256).hex()[:32]}"

    async def named_session(self, name: str) -> str:
        """The session that a client calls by a name of its own. After it was erased, the name stands for a new one."""
        last, first = 0, 1  # the last generation that is known to be erased, and one that is not
        while await self._was_erased(await self.new_session_id(_generation(name, first))):
            last, first = first, first * 2
        while first - last > 1:
            middle = (first + last) // 2
            is_erased = await self._was_erased(await self.new_session_id(_generation(name, middle)))
            last, first = (middle, first) if is_erased else (last, middle)
        return await self.new_session_id(_generation(name, first))

    async def _was_erased(self, session: str) -> bool:
        try:
            with self.tenant_scope(whole=True):  # an erased session has no author any more
                await self.store.info(session)
        except UnknownSession as error:
            return error.is_erased
        return False

    @contextmanager
    def key_conflicts(self, key: str) -> Generator[None]:
        """Replace the text of a `KeyConflict` by one about the caller's key, not about the stored one."""
        try:
            yield
        except KeyConflict as error:
            raise KeyConflict(KEY_REUSED) if key else error from None

    async def audit_action(self, did: str, on: str = "", **detail: Any) -> None:
        """Write an audit record."""
        principal = self.principal
        await self.server_context.accounts.append_audit(
            AuditRecord(
                tenant=principal.tenant,
                at=self.server_context.app.clock.now(),
                by=principal.user,
                credential=principal.credential,
                did=did,
                on=on,
                detail=encode_canonical(detail) if detail else "",
            )
        )

    def require_role(self, role: Any, action: str) -> None:
        """Refuse this principal if its role is lower."""
        require_role(self.principal, role, action)


def _generation(name: str, n: int) -> str:
    return name if n == 1 else encode_canonical([name, n])


def is_id(text: str) -> bool:
    """Whether a text can be an id at all. If not, no store is queried."""
    return 0 < len(text) <= LONGEST_ID and text.isprintable()


def check_user_id(text: str, field: str) -> str:
    """Check the id of a user.

    Raises:
        ConfigError: the id is invalid, or reserved.
    """
    if not 0 < len(text) <= LONGEST_NAME or not text.isprintable() or text != text.strip():
        raise ConfigError(f"{field}: up to {LONGEST_NAME} visible characters, without spaces around them")
    if text == "everturn" or text.startswith(("plugin:", IMPORTED_USER_PREFIX, *OWNER_PREFIXES)):
        raise ConfigError(
            f"{field}: {text!r} is reserved for the runtime, plugins, saved prompts, logins and imported sessions"
        )
    return text
