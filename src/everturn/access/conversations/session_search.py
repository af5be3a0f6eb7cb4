"""Search in the conversations that a caller may see, and the filter of their lists."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.context.scope import ScopedAccess
from everturn.core.canonical_json import replace_surrogates
from everturn.core.store_ports import SessionFilter, SessionInfo
from everturn.errors import UnknownSession

ARCHIVED: Final[dict[api.Archived, bool | None]] = {"exclude": False, "include": None, "only": True}
SEARCH_LIMIT: Final = 200
SEARCH_FILTERED: Final = 1000  # messages that are looked at for a search with filters
LONGEST_SEARCH: Final = 1000  # characters


def session_filter(archived: api.Archived, label: str, agent: str) -> SessionFilter:
    """The filter of a list or a search; "" does not filter."""
    return SessionFilter(archived=ARCHIVED[archived], label=label, agent=agent)


async def search_messages(
    scope: ScopedAccess, text: str, limit: int, where: SessionFilter, since: float = 0.0, until: float = 0.0
) -> api.SearchResults:
    """Messages with these words, in the sessions that the caller may see, that fit a filter and changed in a time."""
    text, limit = replace_surrogates(text)[:LONGEST_SEARCH].replace("\0", " "), max(1, min(limit, SEARCH_LIMIT))
    is_filtered = where != SessionFilter() or bool(since or until)
    with scope.tenant_scope():
        most = SEARCH_FILTERED if is_filtered else limit
        matches = await scope.store.search(text, scope.principal.tenant, most, reader=scope.reader)
    hidden = await _hidden(scope, {session for session, _ in matches})
    matches = [(session, message) for session, message in matches if session not in hidden]
    if is_filtered:
        roots = await scope.root_sessions({session for session, _ in matches})
        fitting = {name for name, info in roots.items() if _fits(info, where, since, until)}
        matches = [(session, message) for session, message in matches if session in fitting][:limit]
    shown = scope.redact_messages([message for _, message in matches])
    found = await scope.root_sessions({session for session, _ in matches})
    titles = {session: info.title for session, info in found.items()}
    times = {session: info.touched for session, info in found.items()}
    return api.SearchResults(
        results=[
            api.SearchHit(
                session=session, message=message, title=titles.get(session, ""), updated=times.get(session, 0.0)
            )
            for (session, _), message in zip(matches, shown, strict=True)
        ]
    )


async def _hidden(scope: ScopedAccess, sessions: set[str]) -> set[str]:
    """The sessions that the caller may not read. Those of sub-agents have a "-" in their names."""
    hidden: set[str] = set()
    for session in sessions if scope.is_redacted else ():
        try:
            if "-" in session:
                await scope.readable_session(session)
        except UnknownSession:
            hidden.add(session)
    return hidden


def _fits(info: SessionInfo, where: SessionFilter, since: float, until: float) -> bool:
    """Whether a session fits a filter, and something last happened in it between two times; `until` 0: now."""
    return (
        where.archived in (None, info.archived)
        and (not where.label or where.label in info.labels)
        and where.agent in ("", info.agent)
        and since <= info.touched
        and (not until or info.touched < until)
    )
