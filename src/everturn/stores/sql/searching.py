"""Messages → rows of words, and words → the messages that have them.

`stores.words` makes the words; the databases only keep them. SQLite has them in an FTS5 index that triggers feed from
`lookup`, PostgreSQL in a `tsvector` with a GIN index. Neither gets to see a query as somebody wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable

from everturn.core.messages import Message
from everturn.stores.sql.database import Database, Operation, Query, Statement
from everturn.stores.sql.walls import inside
from everturn.stores.words import asked, words
from everturn.wire import load_message

_INDEX = Statement(
    "index",
    "INSERT INTO lookup (session, message, words) VALUES (?, ?, ?) "
    "ON CONFLICT (session, message) DO UPDATE SET words = excluded.words",
    "INSERT INTO lookup (session, message, words) "
    "SELECT session, message, array_to_tsvector(string_to_array(words, ' ')) "
    "FROM unnest($1::text[], $2::text[], $3::text[]) AS given (session, message, words) "
    "ON CONFLICT (session, message) DO UPDATE SET words = excluded.words",
)


def _search(name: str, sqlite: str, postgres: str, given: str, columns: str) -> Statement:
    """The newest messages that have the words; a condition says whose."""
    return Statement(
        name,
        "SELECT l.session, m.body FROM lookup_words JOIN lookup l ON l.n = lookup_words.rowid "
        "JOIN messages m ON m.session = l.session AND m.id = l.message JOIN sessions s ON s.id = l.session "
        f"WHERE lookup_words MATCH '\"' || replace(?, ' ', '\"* \"') || '\"*' {sqlite}"
        "AND NOT m.is_deleted AND NOT s.erased ORDER BY lookup_words.rowid DESC LIMIT ?",
        f"SELECT given.row, f.session, f.body FROM unnest({given}) WITH ORDINALITY AS given ({columns}, row) "
        "CROSS JOIN LATERAL (SELECT l.n, l.session, m.body FROM lookup l "
        "JOIN messages m ON m.session = l.session AND m.id = l.message JOIN sessions s ON s.id = l.session "
        "WHERE l.words @@ ('''' || replace(given.words, ' ', ''':* & ''') || ''':*')::tsquery "
        f"{postgres}AND NOT m.is_deleted AND NOT s.erased ORDER BY l.n DESC LIMIT given.most) f "
        "ORDER BY given.row, f.n DESC",
        returns=True,
    )


_SEARCH = _search("search", "", "", "$1::text[], $2::bigint[]", "words, most")
_SEARCH_TENANT = _search(
    "search_tenant",
    "AND s.tenant = ? ",
    "AND s.tenant = given.tenant ",
    "$1::text[], $2::text[], $3::bigint[]",
    "words, tenant, most",
)


# Inside the walls of a tenant: see migrations/versions/0002_tenants.py.
_SEARCH_INSIDE = Statement(
    "search_inside",
    "SELECT 1",
    "SELECT given.row, f.session, f.body FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS given (words, most, row) "
    "CROSS JOIN LATERAL everturn_found('''' || replace(given.words, ' ', ''':* & ''') || ''':*', given.most) f "
    "ORDER BY given.row, f.n DESC",
    returns=True,
)


def index(session: str, messages: Iterable[Message]) -> Operation[None]:
    """Let messages be found. One that is hidden, or says nothing, is not."""
    rows = {
        message.id: (session, message.id, " ".join(there))
        for message in messages
        if not message.hidden and (there := words(message.text))
    }
    if rows:
        yield Query(_INDEX, list(rows.values()), many=True)


async def search(
    database: Database, text: str, tenant: str | None = None, limit: int = 50
) -> list[tuple[str, Message]]:
    """The newest messages that have the words of a text, with their sessions; of one tenant, or of all."""
    query = asked(text)
    if not query or limit < 1:
        return []
    wall = inside() if database.dialect == "postgresql" else None
    if wall is not None and tenant not in (None, wall):
        return []
    return await database.read(lambda: _found(" ".join(query), tenant, limit, wall is not None), is_long=True)


def _found(query: str, tenant: str | None, limit: int, is_inside: bool) -> Operation[list[tuple[str, Message]]]:
    if is_inside:
        rows = yield Query(_SEARCH_INSIDE, (query, limit))
    elif tenant is None:
        rows = yield Query(_SEARCH, (query, limit))
    else:
        rows = yield Query(_SEARCH_TENANT, (query, tenant, limit))
    return [(session, load_message(body)) for session, body in rows]
