"""SQL implementation of the `Store` port: each method runs an operation on a database.

The store caches the projections of the sessions that it writes to, so that an append need not read anything. A
projection is taken out during an append and put back when that is committed; after any error in between, the next
append reads it from the database again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING

from msgspec import Struct

from everturn.core.commands import AnyCommand
from everturn.core.events import Entry, Event
from everturn.core.gate_rows import GateRow
from everturn.core.gates import Grant
from everturn.core.messages import Message
from everturn.core.options import Spent
from everturn.core.parts import Usage
from everturn.core.projections.event_index import EventIndex
from everturn.core.store_ports import (
    ANY_SESSION,
    Receipt,
    SessionClaim,
    SessionFilter,
    SessionInfo,
    StoreCounts,
    TurnSnapshot,
    UsageRecord,
)
from everturn.core.tenants.encryption import KeyProvider
from everturn.core.tenants.sharing import Reader
from everturn.core.tree import MessageTree
from everturn.errors import ConfigError, SessionQuarantined
from everturn.stores.signing_keys import CachedSigningKeys
from everturn.stores.sql import append, grants, owner_erasure, queries, retention, row_security, search, usage
from everturn.stores.sql.accounts import ENCRYPTION_MARKER, SqlAccounts
from everturn.stores.sql.admission import admit
from everturn.stores.sql.blobs import SqlBlobs
from everturn.stores.sql.database import Database, Operation
from everturn.stores.sql.projections import SessionProjection
from everturn.stores.sql.rate_limits import SqlRateLimits
from everturn.stores.sql.schedules import SqlSchedules
from everturn.stores.sql.settings import SqlSettings
from everturn.stores.sql.sharing import SqlSharing
from everturn.stores.sql.signing_keys import SqlKeyTable
from everturn.stores.sql.user_memory import SqlUserMemory
from everturn.stores.sql.webhooks import SqlWebhooks

if TYPE_CHECKING:
    from everturn.stores.sql.encrypted_blobs import EncryptedBlobs
    from everturn.stores.sql.encrypted_database import EncryptedDatabase
    from everturn.stores.sql.owner_erasure import ErasureReport
    from everturn.stores.sql.retention import RetentionResult

RECENT_EVENTS = 512  # events of a session that are cached for its readers
PROJECTIONS_LIMIT = 4096  # sessions; an idle one is a few hundred bytes
SHORT_READ = 500  # events that are read on the event loop; the rest of a longer log is a long read


class _Recent(Struct):
    """The cached end of a session's log: readers at the live edge request it again and again."""

    begin: int  # the position before the first entry
    entries: list[Entry]

    def since(self, after: int, turn: str | None) -> list[Entry]:
        entries = self.entries[after - self.begin :]
        return entries if turn is None else [entry for entry in entries if getattr(entry.event, "turn", None) == turn]


class SqlStore:
    """A store in a SQL database: in a file on this machine, or on a PostgreSQL server that many processes share."""

    def __init__(self, database: Database, folder: Path | None = None) -> None:
        self._blob_rows = SqlBlobs(database, folder, time.time)
        self._blobs: SqlBlobs | EncryptedBlobs = self._blob_rows
        self.rate_limits = SqlRateLimits(database)
        self._encrypted: EncryptedDatabase | None = None
        self._database = database
        self._accounts = SqlAccounts(database, CachedSigningKeys(SqlKeyTable(database)))
        self._user_memory = SqlUserMemory(database)
        self._schedules = SqlSchedules(database)
        self._sharing = SqlSharing(database)
        self._webhooks = SqlWebhooks(database)
        self._settings = SqlSettings(database)
        self._projections: dict[str, SessionProjection] = {}  # least recently used first
        self._snapshots: dict[str, list[TurnSnapshot]] = {}  # to be written with the next append
        self._recent: dict[str, _Recent] = {}
        self._appending: set[str] = set()  # sessions whose database may be ahead of the cache
        self._name, self._numbers = token_urlsafe(6), count(1)

    @classmethod
    def sqlite(cls, path: str | Path) -> SqlStore:
        """Return a store in a file, created or upgraded on first use. ":memory:" stores nothing on disk."""
        from everturn.stores.sql.sqlite import Sqlite

        if str(path) == ":memory:":
            return cls(Sqlite(path))
        # By its real path: through a symlink, another process would lock another file, and look for blobs elsewhere.
        path = os.path.realpath(path)
        return cls(Sqlite(path), Path(f"{path}-blobs"))

    @classmethod
    def postgres(cls, url: str, schema: str | None = None) -> SqlStore:
        """Return a store in a PostgreSQL database, or in a schema of it; created or upgraded on first use."""
        from everturn.stores.sql.postgres import Postgres

        return cls(Postgres(url, schema))

    def encrypt(self, keys: KeyProvider, *, allow_plaintext: bool = False) -> SqlStore:
        """Encrypt content with the keys of its tenants, and return this store; to be called before it is used.

        Args:
            keys: where the keys are, such as `everturn.stores.open_keyring(…)`.
            allow_plaintext: read also what was written before encryption was turned on.

        Raises:
            ConfigError: a package that encryption needs is not installed.
        """
        try:
            from everturn.stores.sql.encrypted_blobs import EncryptedBlobs
            from everturn.stores.sql.encrypted_database import EncryptedDatabase
        except ModuleNotFoundError as error:
            raise ConfigError(f"{error.name} is not installed; `pip install 'everturn[encryption]'`") from error
        database = EncryptedDatabase(self._database, keys, allow_plaintext=allow_plaintext)
        self._encrypted, self._blobs = database, EncryptedBlobs(database, self._blob_rows)
        self._database = database
        for part in (self._accounts, self._user_memory, self._schedules, self._webhooks, self._settings):
            part.use_database(database)  # in place: others may have them already
        return self

    async def check_encryption(self) -> None:
        """Check that the configured keys are those of this store, or that it is not encrypted.

        Raises:
            ConfigError: it is encrypted with other keys than the configured ones, or none are; the text names the setting.
        """
        if self._encrypted is not None:
            await self._encrypted.prepare()
        elif await self._accounts.has_secret(ENCRYPTION_MARKER):
            raise ConfigError(
                "this store is encrypted, and the configuration has no [store.encryption]: name its keyring and master_keys "
                "there"
            )

    @property
    def key_provider(self) -> KeyProvider | None:
        """Where the keys of tenants are; None without encryption."""
        return None if self._encrypted is None else self._encrypted.keys.provider

    async def destroy_key(self, tenant: str) -> bool:
        """Destroy the key of a tenant for good, and remove its schedules and webhooks; False if it was destroyed before.

        Nothing of the tenant can be read any more, in this store or in a backup of it. Other processes notice within
        ten seconds.

        Raises:
            ConfigError: the store is not encrypted.
        """
        if self._encrypted is None:
            raise ConfigError("the store is not encrypted: there is no key to destroy; see [store.encryption]")
        await self._encrypted.prepare()
        is_new = await self._encrypted.keys.destroy(tenant, time.time())
        self._projections.clear()
        await self._database.write(lambda _: owner_erasure.erase_tenant_work(tenant), owner_erasure.QUEUE, is_long=True)
        return is_new

    # Admission --------------------------------------------------------------------------------------------------

    async def admit(self, command: AnyCommand) -> Receipt:
        """Check a command, and store it in the inbox or raise what is wrong with it."""
        return await self._database.write(lambda again: admit(command, again), command.session)

    async def inbox(self, session: str) -> list[AnyCommand]:
        """Return the admitted commands that no event has handled yet, oldest first."""
        return await self._database.read(lambda: queries.inbox(session))

    # Claims -----------------------------------------------------------------------------------------------------

    async def lock_for_process(self) -> None:
        """Become the only process that drives the sessions of this database, until it is closed."""
        await self._database.hold_driver_lock()

    async def claim(self, session: str, now: float) -> SessionClaim | None:
        """Claim a session for a driver; None when it has no work."""
        claimed = await self._database.write(lambda _: append.claim(session, now), session)
        if isinstance(claimed, SessionQuarantined):
            raise claimed
        if claimed is None:
            return None
        self._keep(session, claimed[1])
        recent = self._recent.get(session)
        if recent is not None and recent.begin + len(recent.entries) != claimed[0].head:
            del self._recent[session]  # another process has written to it meanwhile
        return claimed[0]

    async def release(self, session: str, epoch: int, tries: int = 0, awaited_agent: str = "") -> None:
        """Record that a driver which wrote nothing has ended normally."""
        await self._database.write(lambda _: append.release(session, epoch, tries, awaited_agent), session)

    async def overdue(self, before: float, now: float) -> list[str]:
        """Return sessions with work that no driver has touched since `before`; each is returned to one caller only."""
        return await self._database.write(lambda _: append.overdue(before, now), "")

    # The log ----------------------------------------------------------------------------------------------------

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Append events after position `after`, all or none, and return the new position."""
        token, snapshots = self._token(), self._snapshots.pop(session, ())

        def operation(_: bool) -> Operation[tuple[int, SessionProjection | None]]:
            projection = self._projections.pop(session, None)
            return append.append(projection, session, after, events, epoch, token, snapshots)

        # Until it is cached as well, the log is read from the database: a reader that saw the head there must find all.
        self._appending.add(session)
        try:
            head, projection = await self._database.write(operation, session)
            if projection is not None:
                self._keep(session, projection)
                if getattr(self._database, "is_alone", False):  # no other process writes to it
                    self._remember(session, after, events)
        except BaseException:
            self._recent.pop(session, None)
            raise
        finally:
            self._appending.discard(session)
        return head

    def keep_snapshot(self, session: str, snapshot: TurnSnapshot) -> None:
        """Write the snapshot of a turn with the next append, if that reaches its position."""
        self._snapshots.setdefault(session, []).append(snapshot)

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        """Return the log after `after`: all of it, or one turn's."""
        recent = self._recent.get(session) if session not in self._appending else None
        if recent is not None and recent.begin <= after and getattr(self._database, "is_alone", False):
            return recent.since(after, turn)
        if turn is not None:
            return await self._database.read(lambda: queries.events(session, after, turn))
        entries = await self._database.read(lambda: queries.events(session, after, None, SHORT_READ))
        if len(entries) == SHORT_READ:
            last = entries[-1].seq
            entries += await self._database.read(lambda: queries.events(session, last, None), is_long=True)
        return entries

    async def event_page(self, session: str, after: int, most: int) -> list[Entry]:
        """Return at most `most` entries of the log after `after`."""
        return await self._database.read(lambda: queries.events(session, after, None, most))

    async def indexed_events(
        self, session: str, index: EventIndex, key: str | None = None, limit: int | None = None
    ) -> list[Entry]:
        """Return the events of an index with this key, or all of them, oldest first."""
        return await self._database.read(lambda: queries.indexed_events(session, index, key, limit))

    async def head(self, session: str) -> int:
        """Return the position of the last event; 0 before the first."""
        return await self._database.read(lambda: queries.head(session))

    async def heads(self, sessions: Sequence[str]) -> dict[str, int]:
        """Return the positions of many sessions in one query; unknown sessions are left out."""
        return await self._database.read(lambda: queries.heads(sessions))

    async def restore(self, session: str, tenant: str, events: Sequence[Event]) -> None:
        """Create a session from the log of another."""
        token = self._token()
        await self._database.write(lambda _: append.restore(session, tenant, events, token), session, is_long=True)

    # Projections ------------------------------------------------------------------------------------------------

    async def open_turns(self, session: str) -> list[str]:
        """Return the turns that are not over, oldest first."""
        return await self._database.read(lambda: queries.open_turns(session))

    async def turn_starts(self, session: str, before: int, limit: int) -> list[tuple[int, str]]:
        """Return the last turns that started before a position, newest first."""
        return await self._database.read(lambda: queries.turn_starts(session, before, limit))

    async def turn_of_command(self, session: str, key: str) -> str:
        """Return the turn that a command requested, or is about; "" if there is none."""
        return await self._database.read(lambda: queries.turn_of_command(session, key))

    async def has_turn_command(self, session: str, turn: str) -> bool:
        """Return whether a turn was requested."""
        return await self._database.read(lambda: queries.is_turn_requested(session, turn))

    async def count_active_turns(self, tenant: str) -> int:
        """Count the turns of a tenant that run or are in an inbox."""
        return await self._database.read(lambda: queries.count_active_turns(tenant))

    async def path(self, session: str, leaf: str | None, limit: int | None = None) -> list[Message]:
        """Return the branch that ends at `leaf`, oldest first; with a limit, the end of it."""
        return await self._database.read(lambda: queries.path(session, leaf, limit))

    async def tree(self, session: str) -> MessageTree:
        """Return all messages of a session."""
        return await self._database.read(lambda: queries.tree(session), is_long=True)

    async def gates(self, session: str | None = None, *, tenant: str | None = None) -> list[GateRow]:
        """Return the open gates of a session, of a tenant, or of the whole store."""
        return await self._database.read(lambda: queries.gates(session, tenant), is_long=session is None)

    async def gate_page(
        self,
        session: str | None = None,
        *,
        tenant: str | None = None,
        limit: int | None = 200,
        after: tuple[float, str, str] | None = None,
    ) -> list[tuple[str, GateRow]]:
        """Return a page of open gates, oldest first, each with its session."""
        is_long = limit is None or limit > SHORT_READ
        return await self._database.read(lambda: queries.gate_page(session, tenant, limit, after), is_long=is_long)

    async def sessions_with_open_gates(self, sessions: Sequence[str]) -> set[str]:
        """Return those of the sessions that have an open gate, in them or in a sub-agent run of theirs."""
        return await self._database.read(lambda: queries.sessions_with_open_gates(sessions)) if sessions else set()

    async def sessions_with_events(self, sessions: Sequence[str], index: EventIndex) -> set[str]:
        """Return those of the sessions, and of their sub-agent runs, that have an event in an index."""
        if not sessions:
            return set()
        return await self._database.read(lambda: queries.sessions_with_events(sessions, index), is_long=True)

    async def count_all(self) -> StoreCounts:
        """Return the counts over the whole store."""
        return await self._database.read(queries.count_all)

    async def grants(self, session: str, now: float) -> list[Grant]:
        """Return the grants that are valid in a session, oldest first."""
        return await self._database.read(lambda: grants.grants(session, now))

    async def tenant_grants(self, tenant: str, now: float, limit: int = 200) -> list[tuple[str, Grant]]:
        """Return a tenant's valid grants with their sessions, newest first."""
        return await self._database.read(lambda: grants.tenant_grants(tenant, now, limit))

    async def spent(self, *, session: str = "", top: str = "", tenant: str = "", since: float = 0.0) -> Spent:
        """Return the usage of a session with its sub-agent runs, of turn `top`'s sub-agent runs, or of a tenant.

        The calls of the current step are counted when the next one ends, or the turn does.
        """
        return await self._database.read(lambda: usage.spent(session, top, tenant, since))

    async def recorded_trees(self, session: str) -> dict[str, str]:
        """Return the tree that was last recorded for each root."""
        return await self._database.read(lambda: queries.roots(session))

    async def sessions(
        self,
        awake: bool = False,
        *,
        quarantined: bool = False,
        limit: int | None = None,
        after: tuple[float, str] | None = None,
    ) -> list[SessionInfo]:
        """Return the sessions, oldest first; only those with work (`awake`), or quarantined ones (`quarantined`)."""
        return await self._database.read(lambda: queries.sessions(awake, quarantined, limit, after), is_long=True)

    async def session_page(
        self,
        tenant: str,
        *,
        limit: int = 50,
        before: tuple[float, str] | None = None,
        since: float = 0.0,
        where: SessionFilter = ANY_SESSION,
        reader: Reader | None = None,
    ) -> list[SessionInfo]:
        """Return a page of a tenant's sessions, last touched first, without those of sub-agent runs."""
        if limit < 1:
            return []
        return await self._database.read(
            lambda: queries.list_sessions(tenant, limit, before, since, where, reader), is_long=limit > SHORT_READ
        )

    async def usage_by_day(self, tenant: str, since: float = 0.0) -> list[tuple[int, str, Spent]]:
        """Return the usage of a tenant's turns by day (since 1970, UTC) and agent, oldest first."""
        return await self._database.read(lambda: usage.usage_by_day(tenant, since), is_long=True)

    async def usage_by_user(self, tenant: str, since: float = 0.0) -> list[tuple[str, str, str, Spent]]:
        """Return the usage of a tenant's turns by user, model and agent."""
        return await self._database.read(lambda: usage.usage_by_user(tenant, since), is_long=True)

    async def record_usage(self, record: UsageRecord) -> None:
        """Count what a request outside of a turn used."""
        await self._database.write(lambda _: usage.record_usage(record), f"usage {record.tenant}")

    async def user_spent(self, tenant: str, user: str, since: float = 0.0) -> Spent:
        """Return the usage of the turns that a user started."""
        return await self._database.read(lambda: usage.user_spent(tenant, user, since))

    async def refers_to_blob(self, session: str, blob: str) -> bool:
        """Return whether a session, or a session of its sub-agent runs, references a blob."""
        return await self._database.read(lambda: queries.references_blob(session, blob))

    async def info(self, session: str) -> SessionInfo:
        """Return the info of a session."""
        return await self._database.read(lambda: queries.info(session))

    async def infos(self, sessions: Sequence[str]) -> dict[str, SessionInfo]:
        """Return the infos of those sessions that exist."""
        return await self._database.read(lambda: queries.infos(sessions)) if sessions else {}

    async def usage(self, session: str | None = None, *, tenant: str = "local", since: float = 0.0) -> Usage:
        """Return the total usage of a session's turns, or of a tenant's since a time."""
        return await self._database.read(lambda: usage.usage(session, tenant, since))

    async def search(
        self,
        text: str,
        tenant: str | None = None,
        limit: int = 50,
        *,
        by: str | None = None,
        reader: Reader | None = None,
    ) -> list[tuple[str, Message]]:
        """Return messages with these terms and their sessions, newest first; answers only after their turn is over."""
        return await search.search(self._database, text, tenant, limit, by, reader)

    # Blobs, erasure and retention ----------------------------------------------------------------------------------

    async def put_blob(self, data: bytes) -> str:
        """Store bytes under their hash."""
        return await self._blobs.put(data)

    async def blob(self, name: str) -> bytes:
        """Return the bytes of a hash."""
        return await self._blobs.get(name)

    async def erase(self, session: str) -> None:
        """Erase a session and the sessions of its sub-agent runs; only their names stay taken."""
        self._forget(session)
        for name in await retention.erase(self._database, session):
            self._forget(name)

    async def erase_owner(self, tenant: str, user: str | None = None) -> ErasureReport:
        """Erase a user of a tenant, or the whole tenant: sessions, also with open turns, blobs, memory and accounts.

        Only the names of sessions, numbers of usage and the audit log stay. On SQLite the file is rewritten.
        """
        sessions, report = await owner_erasure.erase_owner(self._database, self._blob_rows, tenant, user)
        for session in sessions:
            self._forget(session)
        await self.run_maintenance(time.time())
        return report

    async def sessions_of(self, tenant: str, user: str | None = None) -> list[str]:
        """Return the sessions of a user, also those that they only wrote or answered in; or of a whole tenant."""
        return [session async for session in owner_erasure.sessions_of(self._database, tenant, user)]

    async def retry(self, session: str) -> bool:
        """Let a quarantined session be claimed again at once; False if it was not quarantined, and had no failed tries."""
        return await self._database.write(lambda _: append.retry(session), session)

    async def run_maintenance(
        self, now: float, idle: float | None = None, orphans: float = 86_400.0
    ) -> RetentionResult:
        """Run the maintenance job: remove data that is no longer needed."""
        try:
            return await retention.run_maintenance(self._database, self._blob_rows, now, idle, orphans)
        finally:
            self._projections.clear()  # some of the sessions may be erased now
            self._recent.clear()

    # Tenants ------------------------------------------------------------------------------------------------------

    @property
    def accounts(self) -> SqlAccounts:
        """The accounts in the same database."""
        return self._accounts

    @property
    def user_memory(self) -> SqlUserMemory:
        """The memory files of users in the same database."""
        return self._user_memory

    @property
    def schedules(self) -> SqlSchedules:
        """The schedules in the same database."""
        return self._schedules

    @property
    def webhooks(self) -> SqlWebhooks:
        """The webhooks and their outbox in the same database."""
        return self._webhooks

    @property
    def settings(self) -> SqlSettings:
        """The settings that administrators change, in the same database."""
        return self._settings

    @property
    def sharing(self) -> SqlSharing:
        """The shares of conversations in the same database."""
        return self._sharing

    def restrict_to_tenant(self, tenant: str, reader: Reader | None = None) -> AbstractContextManager[None]:
        """Restrict reads to this tenant and reader: on PostgreSQL, by row-level security (row_security.py)."""
        return row_security.restrict_to_tenant(tenant, reader)

    async def aclose(self) -> None:
        """Close the database. Acknowledged writes are durable."""
        await self._database.aclose()

    def _token(self) -> str:
        return f"{self._name}{next(self._numbers):06x}"  # of one length: a value that grows moves what is behind it

    def _keep(self, session: str, projection: SessionProjection) -> None:
        self._projections[session] = projection
        if len(self._projections) > PROJECTIONS_LIMIT:
            self._forget(next(iter(self._projections)))

    def _remember(self, session: str, after: int, events: Sequence[Event]) -> None:
        recent = self._recent.get(session)
        if recent is None or recent.begin + len(recent.entries) != after:
            recent = self._recent[session] = _Recent(after, [])
        recent.entries += [Entry(seq, event) for seq, event in enumerate(events, after + 1)]
        if len(recent.entries) > 2 * RECENT_EVENTS:
            recent.begin += len(recent.entries) - RECENT_EVENTS
            del recent.entries[:-RECENT_EVENTS]

    def _forget(self, session: str) -> None:
        self._projections.pop(session, None)
        self._recent.pop(session, None)
