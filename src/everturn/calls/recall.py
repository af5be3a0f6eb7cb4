"""Recall: earlier messages of a branch, and of the user's other sessions, as a running tool reads them."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.calls.results import load_results
from everturn.core.memory.recall import RecalledMessage, excerpt_of, messages_around, recall_messages
from everturn.core.memory.search_terms import query_terms
from everturn.core.tenants.accounts import LOCAL
from everturn.errors import ToolError, UnknownMessage, UnknownSession
from everturn.running.active_turn import ActiveTurn

NO_USER = (
    "this turn has no user, so it is not known whose {what} these would be; a turn has one if it was sent by a user of "
    'the server, or with send(…, by="ada")'
)


def owner_of(run: ActiveTurn, feature: str) -> tuple[str, str]:
    """The tenant and the user of a turn. Only in the local tenant may a turn have no user.

    Raises:
        ToolError: nobody knows who the user is.
    """
    tenant, user = run.ledger.tenant, run.state.options.by
    if not user and tenant != LOCAL:
        raise ToolError(NO_USER.format(what=feature))
    return tenant, user


class TurnRecall:
    """The earlier messages that the tools of a turn may read."""

    def __init__(self, run: ActiveTurn) -> None:
        self._run = run

    async def branch(self) -> Sequence[RecalledMessage]:
        """All messages of the present branch, oldest first."""
        run = self._run
        results = await load_results(run)
        return recall_messages([*await run.read_whole_history(), *run.state.messages.values()], results)

    async def search_sessions(self, query: str, limit: int) -> Sequence[RecalledMessage]:
        """Messages in the other sessions of the user, newest first."""
        run, terms = self._run, query_terms(query)
        tenant, user = owner_of(run, "sessions")
        hits = await run.setup.store.search(query, tenant, 2 * limit, by=user)
        found: list[RecalledMessage] = []
        for session, message in hits:
            if session == run.session or len(found) == limit:
                continue
            path = recall_messages(await run.setup.store.path(session, message.id), session=session)
            found += [excerpt_of(other, terms) for other in messages_around(path, message.id, 0)]
        return found

    async def session_branch(self, session: str, message: str) -> Sequence[RecalledMessage]:
        """The branch of a session of that user: the messages up to this one, and those below it on the same branch."""
        run, store = self._run, self._run.setup.store
        tenant, user = owner_of(run, "sessions")
        if session == run.session:
            return await self.branch()
        missing = ToolError(f"there is no message {message[:80]!r} in a session {session[:80]!r} of this user")
        try:
            info = await store.info(session)
            if info.tenant != tenant or info.by != user or info.parent:
                raise missing
            for leaf in dict.fromkeys((info.leaf, message)):
                path = await store.path(session, leaf)
                if any(other.id == message for other in path):
                    return recall_messages(path, session=session)
        except (UnknownSession, UnknownMessage):
            raise missing from None
        raise missing
