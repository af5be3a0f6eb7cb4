"""Somebody who was let in: what all that they may do is built on. Every id from outside is held against their tenant here."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from everturn.access.below import is_for_all
from everturn.access.needs import refuse_less
from everturn.access.veiling import veil_messages
from everturn.chat import Chat
from everturn.core.accounts import AuditRecord, Principal, is_at_least
from everturn.core.canonical import canonical, digest
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.ports import SessionInfo, Store
from everturn.errors import ConfigError, Forbidden, KeyConflict, UnknownSession
from everturn.stores.taming import SIGNED

if TYPE_CHECKING:
    from everturn.access.access import House

LONGEST_ID: Final = 1000  # characters; the name of a sub-turn's session has those of all above it
LONGEST_NAME: Final = 200
SAME_KEY: Final = "this Idempotency-Key was used before, for something else; take another"


class Inside:
    """One principal in a house. Nothing here tells what is another tenant's from what is not there."""

    def __init__(self, house: House, principal: Principal) -> None:
        self.house, self.principal = house, principal

    @property
    def store(self) -> Store:
        """Where everything is kept."""
        return self.house.runtime.store

    @property
    def is_veiled(self) -> bool:
        """Whether results that wait for a review, and private values, are hidden from this one."""
        return not is_at_least(self.principal.role, "approver")

    def shown(self, messages: list[Message]) -> list[Message]:
        """Messages as this one may see them."""
        return veil_messages(messages) if self.is_veiled else messages

    def within(self) -> AbstractContextManager[Any]:
        """Read inside of the tenant only, where the store can see to that by itself.

        Only around reads: what a command sets going would inherit it.
        """
        within = getattr(self.store, "within", None)
        return nullcontext() if within is None else within(self.principal.tenant)

    async def own(self, session: str) -> SessionInfo:
        """A session of this tenant; the one place where that is found out.

        Raises:
            UnknownSession: it is not there, was erased, or is another tenant's.
        """
        if not is_id(session):
            raise UnknownSession("there is no such session")
        with self.within():
            info = await self.store.info(session)
        if info.tenant != self.principal.tenant:
            raise UnknownSession("there is no such session")
        return info

    async def readable(self, session: str) -> SessionInfo:
        """A session of this tenant that this one may read.

        Raises:
            UnknownSession: it is not there, or theirs, or what is said in it is the result of a call that others review.
        """
        info = found = await self.own(session)
        while found.above and self.is_veiled:
            above = await self.own(found.above)
            with self.within():
                log = await self.store.events(above.id)
            if not is_for_all((entry.event for entry in log), found.id, self._reviewed()):
                raise UnknownSession("there is no such session")
            found = above
        return info

    def _reviewed(self) -> set[str]:
        """The tools whose results a person reads first, whatever the turn."""
        registry, agents = self.house.runtime.registry, self.house.agents.all
        looks = [registry.enabled(), *(registry.enabled(agent.options.tools) for agent in agents)]
        return {name for look in looks for name, tool in look.items() if tool.spec.result != "auto"}

    async def own_top(self, session: str) -> SessionInfo:
        """A session of this tenant in which somebody may do something; that of a sub-turn is only read.

        Raises:
            UnknownSession: it is not there, or theirs.
            Forbidden: it is that of a sub-turn, which may do no more than the turn above it.
        """
        info = await self.own(session)
        if info.above:
            raise Forbidden("this is the session of a sub-turn, and can only be read; ask in the session above it")
        return info

    def chat(self, session: str, options: TurnOptions | None = None) -> Chat:
        """A session, for whatever is asked of it in the name of this tenant."""
        options = options or TurnOptions()
        return Chat(
            options.model, runtime=self.house.runtime, session=session, options=options, tenant=self.principal.tenant
        )

    def key(self, key: str) -> str | None:
        """An idempotency key as it is kept: nobody else's, and none that the runtime makes for itself."""
        return f"api.{digest(self.principal.user, key)[:40]}" if key else None

    async def fresh_session(self, key: str) -> str:
        """The name of a new session: one that nobody can guess, and the same again for the same key."""
        if not key:
            return f"session_{secrets.token_hex(16)}"
        secret = await self.house.secret("sessions")
        said = canonical([self.principal.tenant, self.principal.user, key]).encode()
        return f"session_{hmac.digest(secret, said, sha256).hex()[:32]}"

    async def named_session(self, name: str) -> str:
        """The session that a face calls by a name of its own. Once one was erased, the name is that of the next."""
        last, first = 0, 1  # the last generation that is known to be erased, and one behind it
        while await self._was_erased(await self.fresh_session(_generation(name, first))):
            last, first = first, first * 2
        while first - last > 1:
            middle = (first + last) // 2
            is_erased = await self._was_erased(await self.fresh_session(_generation(name, middle)))
            last, first = (middle, first) if is_erased else (last, middle)
        return await self.fresh_session(_generation(name, first))

    async def _was_erased(self, session: str) -> bool:
        try:
            with self.within():
                await self.store.info(session)
        except UnknownSession as error:
            return error.is_erased
        return False

    @contextmanager
    def keyed(self, key: str) -> Generator[None]:
        """Say of a key that was used before what its sender knows of it: not what it is called here."""
        try:
            yield
        except KeyConflict as error:
            raise KeyConflict(SAME_KEY) if key else error from None

    async def note(self, did: str, on: str = "", **detail: Any) -> None:
        """Write down what was done."""
        by = self.principal
        await self.house.accounts.note(
            AuditRecord(
                tenant=by.tenant,
                at=self.house.runtime.clock.now(),
                by=by.user,
                credential=by.credential,
                did=did,
                on=on,
                detail=canonical(detail) if detail else "",
            )
        )

    def refuse_less(self, role: Any, what: str) -> None:
        """Refuse this one unless they have a role."""
        refuse_less(self.principal, role, what)


def _generation(name: str, n: int) -> str:
    return name if n == 1 else canonical([name, n])


def is_id(text: str) -> bool:
    """Whether something may be an id at all. Others are nobody's, and no store is asked about them."""
    return 0 < len(text) <= LONGEST_ID and text.isprintable()


def checked_name(text: str, what: str) -> str:
    """The id of a user, as it is kept and signed with.

    Raises:
        ConfigError: it would be taken for something else.
    """
    if not 0 < len(text) <= LONGEST_NAME or not text.isprintable() or text != text.strip():
        raise ConfigError(f"{what}: up to {LONGEST_NAME} characters that can be seen, with no space around them")
    if text == "everturn" or text.startswith(("plugin:", SIGNED)):
        raise ConfigError(f"{what}: {text!r} is how the runtime, its plugins and imported sessions sign")
    return text
