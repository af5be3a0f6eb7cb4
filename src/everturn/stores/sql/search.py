"""Full-text search over messages: stores the terms of each message, and finds messages by the terms of a query.

`core.memory.search_terms` makes the terms; the databases only store them. SQLite has them in an FTS5 index that triggers
feed from `lookup`, PostgreSQL in a `tsvector` with a GIN index. Neither database gets a query as the user wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everturn.core.memory.search_terms import query_terms, text_terms
from everturn.core.messages import Message
from everturn.core.tenants.sharing import Reader
from everturn.stores.sql.body_compression import decompress_message
from everturn.stores.sql.database import Database, Operation, Query, Statement
from everturn.stores.sql.row_security import current_tenant, restrict_to_tenant
from everturn.wire import load_message

# On PostgreSQL each term of a message begins with the hash of its tenant. So the GIN index is in effect one index per
# tenant: other tenants' messages do not slow a search down. An index over two columns, one of them no `tsvector`, would
# need an extension that not every server has. Two tenants may share a hash; the row's tenant tells them apart.
_PREFIX = "left(md5({tenant}), 8)"


def _query(words: str, tenant: str) -> str:
    """Return the SQL of a prefix query for a tenant's terms: `'hashlun':* & 'hashnoo':*`."""
    prefix = _PREFIX.format(tenant=tenant)
    return f"""('''' || {prefix} || replace({words}, ' ', ''':* & ''' || {prefix}) || ''':*')"""


_INDEX = Statement(
    "index",
    "INSERT INTO lookup (session, message, words, tenant) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (session, message) DO UPDATE SET words = excluded.words",
    "INSERT INTO lookup (session, message, words, tenant) SELECT given.session, given.message, "
    f"array_to_tsvector(string_to_array({_PREFIX.format(tenant='given.tenant')} || "
    f"replace(given.words, ' ', ' ' || {_PREFIX.format(tenant='given.tenant')}), ' ')), given.tenant "
    "FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS given (session, message, words, tenant) "
    "ON CONFLICT (session, message) DO UPDATE SET words = excluded.words",
)


_FORGET = Statement(
    "forget",
    "DELETE FROM lookup WHERE session = ? AND message = ?",
    "DELETE FROM lookup l USING unnest($1::text[], $2::text[]) AS given (session, message) "
    "WHERE l.session = given.session AND l.message = given.message",
)


def _sqlite(condition: str) -> str:
    """Return the SQLite query for the newest matches: FTS5 returns them in this order, and stops at the limit."""
    return (
        "SELECT l.session, m.body FROM lookup_words JOIN lookup l ON l.n = lookup_words.rowid "
        "JOIN messages m ON m.session = l.session AND m.id = l.message JOIN sessions s ON s.id = l.session "
        f"WHERE lookup_words MATCH '\"' || replace(?, ' ', '\"* \"') || '\"*' {condition}"
        "AND NOT m.is_deleted AND NOT s.erased ORDER BY lookup_words.rowid DESC LIMIT ?"
    )


def _postgres(tenant: str, words: str, most: str) -> str:
    """Return the PostgreSQL query for the newest matches, by the index.

    Because of the LIMIT, PostgreSQL would otherwise read all messages from the newest on: MATERIALIZED prevents that,
    and OFFSET 0 prevents that it reads more messages than it returns.
    """
    return (
        f"WITH hits AS MATERIALIZED (SELECT l.n, l.session, l.message, l.tenant FROM lookup l "
        f"WHERE l.words @@ {_query(words, tenant)}::tsquery) "
        f"SELECT h.n, h.session, b.body FROM (SELECT * FROM hits WHERE hits.tenant = {tenant} ORDER BY hits.n DESC) h "
        "CROSS JOIN LATERAL (SELECT m.body FROM messages m JOIN sessions s ON s.id = m.session "
        "WHERE m.session = h.session AND m.id = h.message AND NOT m.is_deleted AND NOT s.erased OFFSET 0) b "
        f"ORDER BY h.n DESC LIMIT {most}"
    )


SEARCH_TENANT = Statement(
    "search_tenant",
    _sqlite("AND l.tenant = ? "),
    "SELECT given.row, f.session, f.body FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY "
    "AS given (words, tenant, most, row) "
    f"CROSS JOIN LATERAL ({_postgres('given.tenant', 'given.words', 'given.most')}) f ORDER BY given.row, f.n DESC",
    returns=True,
)
# Of one user: in the sessions that the user started, without those of sub-agents. A tenant's hits are read from the index
# and compared with the user's sessions.
_NOT_TEMPORARY = "AND NOT EXISTS (SELECT 1 FROM temporary_sessions t WHERE t.session = s.id) "
_SEARCH_USER = Statement(
    "search_user",
    _sqlite(f"AND l.tenant = ? AND s.creator = ? AND s.parent = '' {_NOT_TEMPORARY}"),
    "SELECT given.row, f.session, f.body FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY "
    "AS given (words, tenant, creator, most, row) CROSS JOIN LATERAL ("
    "WITH hits AS MATERIALIZED (SELECT l.n, l.session, l.message, l.tenant FROM lookup l "
    f"WHERE l.words @@ {_query('given.words', 'given.tenant')}::tsquery) "
    "SELECT h.n, h.session, m.body FROM hits h JOIN sessions s ON s.id = h.session "
    "JOIN messages m ON m.session = h.session AND m.id = h.message "
    "WHERE h.tenant = given.tenant AND s.tenant = given.tenant AND s.creator = given.creator AND s.parent = '' "
    f"AND NOT m.is_deleted AND NOT s.erased {_NOT_TEMPORARY}"
    "ORDER BY h.n DESC LIMIT given.most) f ORDER BY given.row, f.n DESC",
    returns=True,
)
# For one reader: in the sessions that they may see; that of a sub-agent run follows its root session. PostgreSQL has the
# reader in the settings of its connection (row_security.py).
_FOR_READER = f"""AND l.tenant = ? {_NOT_TEMPORARY} AND EXISTS (
    WITH RECURSIVE up(id, parent, creator) AS (
        SELECT s.id, s.parent, s.creator
        UNION SELECT p.id, p.parent, p.creator FROM up
        JOIN sessions p ON p.id = up.parent AND up.parent != '' AND p.tenant = s.tenant)
    SELECT 1 FROM up WHERE up.parent = '' AND NOT EXISTS (
        SELECT 1 FROM temporary_sessions t WHERE t.session = up.id)
    AND (up.creator IN (SELECT value FROM json_each(?, '$.creators')) OR EXISTS (
        SELECT 1 FROM session_shares h WHERE h.session = up.id AND h.kind != 'link' AND h.revoked = 0
        AND (h.expires = 0 OR h.expires > ?) AND h.subject IN (
            SELECT value FROM json_each(?, '$.subjects'))))) """
_SEARCH_READER = Statement(
    "search_reader",
    _sqlite(_FOR_READER),
    "",  # on PostgreSQL, row security does this
    returns=True,
)
# Over all tenants, one after the other: their names come from an index, each once.
_SEARCH = Statement(
    "search",
    _sqlite(""),
    """WITH RECURSIVE tenant_ids(tenant) AS (
        SELECT min(tenant) FROM sessions WHERE NOT erased AND parent = ''
        UNION ALL SELECT (SELECT min(s.tenant) FROM sessions s WHERE s.tenant > w.tenant AND NOT s.erased AND s.parent = '')
        FROM tenant_ids w WHERE w.tenant IS NOT NULL)
    SELECT given.row, f.session, f.body FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS given (words, most, row)
    CROSS JOIN LATERAL (SELECT one.* FROM tenant_ids """
    f"CROSS JOIN LATERAL ({_postgres('tenant_ids.tenant', 'given.words', 'given.most')}) one "
    "WHERE tenant_ids.tenant IS NOT NULL ORDER BY one.n DESC LIMIT given.most) f ORDER BY given.row, f.n DESC",
    returns=True,
)
# A frequent term is found faster among the newest messages than by sorting all its matches from the index.
# A range of one tenant, in the order of its index: otherwise PostgreSQL might scan the messages of all tenants. With the tenant
# in the order, rows come as the index has them and the scan ends at the limit; without it, every match would be read and sorted.
NEWEST = 1000  # messages of a tenant
WIDER = 10  # times as many, if as many times the matches in the first range would be enough
SEARCH_NEWEST = Statement(
    "search_newest",
    "SELECT 1",
    "SELECT given.row, f.session, f.body FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) "
    "WITH ORDINALITY AS given (words, tenant, newest, most, row) "
    "CROSS JOIN LATERAL (SELECT l.n, l.session, m.body FROM (SELECT n, session, message, words, tenant FROM lookup "
    "WHERE tenant >= given.tenant AND tenant <= given.tenant ORDER BY tenant DESC, n DESC LIMIT given.newest) l "
    "JOIN messages m ON m.session = l.session AND m.id = l.message JOIN sessions s ON s.id = l.session "
    # A query in a query is made once, and not for each row.
    f"WHERE l.words @@ (SELECT {_query('given.words', 'given.tenant')}::tsquery) AND NOT m.is_deleted AND NOT s.erased "
    "ORDER BY l.tenant DESC, l.n DESC LIMIT given.most) f ORDER BY given.row, f.n DESC",
    returns=True,
)
# Under row-level security the policies would look up the session of each row that is read: see tools/migrations/versions, 0014.
_SEARCH_NEWEST_INSIDE = Statement(
    "search_newest_inside",
    "SELECT 1",
    "SELECT given.row, f.session, f.body FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) "
    "WITH ORDINALITY AS given (words, tenant, newest, most, row) "
    f"CROSS JOIN LATERAL everturn_newest({_query('given.words', 'given.tenant')}, given.newest, given.most) f "
    "ORDER BY given.row, f.n DESC",
    returns=True,
)
_SEARCH_INSIDE = Statement(
    "search_inside",
    "SELECT 1",
    "SELECT given.row, f.session, f.body FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY "
    "AS given (words, tenant, most, row) "
    f"CROSS JOIN LATERAL everturn_found({_query('given.words', 'given.tenant')}, given.most) f "
    "ORDER BY given.row, f.n DESC",
    returns=True,
)


# With encryption there is no index: the terms are not stored, and the newest messages are read and compared here.
SCANNED = 2000  # messages of a tenant, or of all
_SCAN = Statement(
    "newest_messages",
    "SELECT l.session, l.message, m.body, l.tenant FROM lookup l "
    "JOIN messages m ON m.session = l.session AND m.id = l.message JOIN sessions s ON s.id = l.session "
    f"WHERE (?1 IS NULL OR l.tenant = ?1) AND (?2 IS NULL OR (s.creator = ?2 AND s.parent = '' {_NOT_TEMPORARY})) "
    "AND NOT m.is_deleted AND NOT s.erased ORDER BY l.n DESC LIMIT ?3",
    "SELECT given.row, f.session, f.message, f.body, f.tenant FROM unnest($1::text[], $2::text[], $3::bigint[]) "
    "WITH ORDINALITY AS given (tenant, creator, most, row) "
    "CROSS JOIN LATERAL (SELECT l.n, l.session, l.message, m.body, l.tenant FROM lookup l "
    "JOIN messages m ON m.session = l.session AND m.id = l.message JOIN sessions s ON s.id = l.session "
    "WHERE (given.tenant IS NULL OR l.tenant = given.tenant) "
    f"AND (given.creator IS NULL OR (s.creator = given.creator AND s.parent = '' {_NOT_TEMPORARY})) "
    "AND (coalesce(current_setting('everturn.viewer', true), '') = '' OR (everturn_is_readable(s.id) "
    "AND NOT EXISTS (SELECT 1 FROM temporary_sessions t WHERE t.session IN (s.id, split_part(s.id, '-', 1))))) "
    "AND NOT m.is_deleted AND NOT s.erased ORDER BY l.n DESC LIMIT given.most) f ORDER BY given.row, f.n DESC",
    returns=True,
)
_SCAN_READER = Statement(
    "newest_messages_reader",
    "SELECT l.session, l.message, m.body, l.tenant FROM lookup l "
    "JOIN messages m ON m.session = l.session AND m.id = l.message JOIN sessions s ON s.id = l.session "
    f"WHERE NOT m.is_deleted AND NOT s.erased {_FOR_READER} ORDER BY l.n DESC LIMIT ?",
    "",  # on PostgreSQL, row security does this
    returns=True,
)


def index_messages(session: str, tenant: str, messages: Iterable[Message]) -> Operation[None]:
    """Add messages to the search index, except hidden, refused and empty ones."""
    rows = {
        message.id: (session, message.id, " ".join(terms), tenant)
        for message in messages
        if not message.hidden and not message.refused and (terms := text_terms(message.text))
    }
    if rows:
        yield Query(_INDEX, list(rows.values()), many=True)


def forget_messages(session: str, messages: Iterable[str]) -> Operation[None]:
    """Remove messages from the search index."""
    yield Query(_FORGET, [(session, message) for message in messages], many=True)


async def search(
    database: Database,
    text: str,
    tenant: str | None = None,
    limit: int = 50,
    by: str | None = None,
    reader: Reader | None = None,
) -> list[tuple[str, Message]]:
    """Return the newest messages that have the terms of a text, with their sessions; of a user, a tenant, or of all.

    Raises:
        ValueError: a user without a tenant.
    """
    query = query_terms(text)
    if not query or limit < 1:
        return []
    if by is not None and tenant is None:
        raise ValueError("a user belongs to a tenant")
    if reader is not None and tenant is None:
        raise ValueError("a reader belongs to a tenant")
    if reader is not None and tenant is not None and database.dialect == "postgresql":
        with restrict_to_tenant(tenant, reader):
            return await search(database, text, tenant, limit, by)
    if getattr(database, "is_encrypted", False):
        return (await _search_encrypted(database, query, tenant, by, reader))[:limit]
    words = " ".join(query)
    if by is not None and tenant is not None:
        return await database.read(lambda: _of_user(words, tenant, by, limit), is_long=True)
    if reader is not None and tenant is not None:
        return await database.read(lambda: _for_reader(words, tenant, reader, limit), is_long=True)
    return await _search_index(database, words, tenant, limit)


async def _search_index(database: Database, words: str, tenant: str | None, limit: int) -> list[tuple[str, Message]]:
    if database.dialect != "postgresql":
        return await database.read(lambda: _found(words, tenant, limit), is_long=True)
    restricted_to = current_tenant()
    if restricted_to is not None and tenant not in (None, restricted_to):
        return []
    owner, is_inside = tenant or restricted_to, restricted_to is not None
    if owner is not None:
        newest = await database.read(lambda: _newest(words, owner, limit, NEWEST, is_inside), is_long=True)
        if len(newest) < limit <= len(newest) * WIDER:
            newest = await database.read(lambda: _newest(words, owner, limit, NEWEST * WIDER, is_inside), is_long=True)
        if len(newest) == limit:
            return newest
    return await database.read(lambda: _found(words, owner, limit, is_inside), is_long=True)


async def _search_encrypted(
    database: Database, query: Sequence[str], tenant: str | None, by: str | None, reader: Reader | None
) -> list[tuple[str, Message]]:
    owner = tenant or current_tenant()
    if current_tenant() not in (None, owner):
        return []
    if reader is None:
        scan = Query(_SCAN, (owner, by, SCANNED))
    else:
        reader_json = reader.as_json()
        scan = Query(_SCAN_READER, (owner, reader_json, reader.now, reader_json, SCANNED))
    return await database.read(lambda: _scan(query, scan), is_long=True)


def _scan(query: Sequence[str], scan: Query) -> Operation[list[tuple[str, Message]]]:
    found: list[tuple[str, Message]] = []
    for session, _, body, _ in (yield scan):
        message = load_message(decompress_message(body))
        terms = text_terms(message.text)
        if all(any(term.startswith(prefix) for term in terms) for prefix in query):
            found.append((session, message))
    return found


def _of_user(words: str, tenant: str, user: str, limit: int) -> Operation[list[tuple[str, Message]]]:
    rows = yield Query(_SEARCH_USER, (words, tenant, user, limit))
    return [(session, load_message(decompress_message(body))) for session, body in rows]


def _for_reader(words: str, tenant: str, reader: Reader, limit: int) -> Operation[list[tuple[str, Message]]]:
    reader_json = reader.as_json()
    rows = yield Query(_SEARCH_READER, (words, tenant, reader_json, reader.now, reader_json, limit))
    return [(session, load_message(decompress_message(body))) for session, body in rows]


def _newest(words: str, tenant: str, limit: int, newest: int, is_inside: bool) -> Operation[list[tuple[str, Message]]]:
    statement = _SEARCH_NEWEST_INSIDE if is_inside else SEARCH_NEWEST
    rows = yield Query(statement, (words, tenant, newest, limit))
    return [(session, load_message(decompress_message(body))) for session, body in rows]


def _found(words: str, tenant: str | None, limit: int, is_inside: bool = False) -> Operation[list[tuple[str, Message]]]:
    if tenant is None:
        rows = yield Query(_SEARCH, (words, limit))
    elif is_inside:
        rows = yield Query(_SEARCH_INSIDE, (words, tenant, limit))
    else:
        rows = yield Query(SEARCH_TENANT, (words, tenant, limit))
    return [(session, load_message(decompress_message(body))) for session, body in rows]
