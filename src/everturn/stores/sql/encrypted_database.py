"""Encrypted database: a `Database` that encrypts what statements write and decrypts what they return.

It wraps another one. An operation is a generator of queries, so its queries and rows can be changed on their way, and no
other module of the store knows of encryption; without encryption this class is not there, and costs nothing.

The key of a tenant may have to be fetched from elsewhere, which an operation cannot wait for. So an operation that needs
a key is ended by `KeyNeeded`, the key is loaded, and it is run again from its beginning, as operations can be.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from everturn.core.tenants.encryption import KeyProvider, is_sealed
from everturn.errors import ConfigError, TenantKeyDestroyed, UnreadableLog
from everturn.stores.encryption.data_keys import DataKeys, KeyNeeded
from everturn.stores.encryption.tenant_cipher import Place, TenantCipher, is_sealed_text
from everturn.stores.sql.accounts import ACCOUNTS_QUEUE, ENCRYPTION_MARKER, create_secret, find_secret
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement
from everturn.stores.sql.sealed_columns import SEALED, SESSION_TENANTS, Ref, SealedColumn, SealedStatement

T = TypeVar("T")

SESSIONS_LIMIT: Final = 65_536
"""Sessions whose tenant is cached: it never changes."""

_TENANT_OF = Statement(
    "tenant_of_session",
    "SELECT tenant FROM sessions WHERE id = ?",
    """SELECT p.n, s.tenant FROM unnest($1::text[]) WITH ORDINALITY AS p(id, n) JOIN sessions s ON s.id = p.id""",
    returns=True,
)


class EncryptedDatabase:
    """A database whose content is encrypted with the keys of its tenants.

    It has no `is_alone`: what is read is decrypted each time, so that nothing outlives its key in a cache.
    """

    is_encrypted = True

    def __init__(self, database: Database, provider: KeyProvider, *, allow_plaintext: bool = False) -> None:
        self._inner, self.keys, self._allows_plaintext = database, DataKeys(provider), allow_plaintext
        self.dialect = database.dialect
        self._tenants: OrderedDict[str, str] = OrderedDict()
        self._is_checked = self._is_marked = False

    async def read(self, operation: Callable[[], Operation[T]], is_long: bool = False) -> T:
        """Run an operation that only reads."""
        return await self._with_keys(lambda: self._inner.read(lambda: self._translate(operation()), is_long))

    async def write(self, operation: Callable[[bool], Operation[T]], session: str, is_long: bool = False) -> T:
        """Run an operation in a transaction and return when the transaction is durable."""

        def translated(again: bool) -> Operation[T]:
            return self._translate(operation(again))

        if not self._is_marked:
            await self.prepare(marks=True)
        return await self._with_keys(lambda: self._inner.write(translated, session, is_long))

    async def hold_driver_lock(self) -> None:
        """Become the only process that drives the sessions of this database, until it is closed."""
        await self._inner.hold_driver_lock()

    async def compact(self, rewrite: bool = False) -> None:
        """Remove deleted data from the disk too."""
        await self._inner.compact(rewrite)

    async def aclose(self) -> None:
        """Close the database, and the key provider."""
        await self._inner.aclose()
        await self.keys.provider.aclose()

    async def cipher(self, tenant: str) -> TenantCipher:
        """Return the cipher of a tenant, for what is not in a statement: blobs.

        Raises:
            TenantKeyDestroyed: its key was destroyed.
        """
        await self.prepare(marks=True)
        await self.keys.load(tenant)
        return self.keys.cipher(tenant)

    async def prepare(self, marks: bool = False) -> None:
        """Check that the keys are those of this database, and every few seconds which were destroyed.

        With `marks`, the database is marked as encrypted with them.

        Raises:
            ConfigError: the database was encrypted with another keyring, or the master key is missing or wrong.
        """
        if not self._is_checked or (marks and not self._is_marked):
            id = await self.keys.provider.id()
            stored = await self._inner.read(lambda: find_secret(ENCRYPTION_MARKER))
            if stored is None and marks:
                stored = await self._inner.write(
                    lambda _: create_secret(ENCRYPTION_MARKER, id.encode()), f"{ACCOUNTS_QUEUE} {ENCRYPTION_MARKER}"
                )
            if stored is not None and stored.decode() != id:
                raise ConfigError(
                    f"this store was encrypted with the keyring {stored.decode()}, and [store.encryption] keyring names "
                    f"{id}: name the one that belongs to the store"
                )
            self._is_checked, self._is_marked = True, stored is not None
        elif self.keys.is_due:
            await self.keys.refresh()

    async def _with_keys(self, run: Callable[[], Awaitable[T]]) -> T:
        if not self._is_checked or self.keys.is_due:
            await self.prepare()
        while True:
            try:
                return await run()
            except KeyNeeded as needed:
                await self.keys.load(needed.tenant)

    # Translation of queries and rows --------------------------------------------------------------------------------

    def _translate(self, operation: Operation[T]) -> Operation[T]:
        """Run an operation with its parameters encrypted and its rows decrypted."""
        try:
            query = next(operation)
            while True:
                name = query.statement.name
                if (sealed := SEALED.get(name)) is None:
                    rows = yield query
                else:
                    rows = yield (yield from self._seal(query, sealed)) if sealed.writes else query
                    if sealed.reads and rows:
                        rows = yield from self._open(query.parameters, rows, sealed)
                if rows and name in SESSION_TENANTS:
                    self._learn(query.parameters, rows[0], *SESSION_TENANTS[name])
                query = operation.send(rows)
        except StopIteration as end:
            return end.value

    def _seal(self, query: Query, sealed: SealedStatement) -> Operation[Query]:
        rows: list[Sequence[Any]] = []
        for parameters in query.parameters if query.many else (query.parameters,):
            if sealed.is_lookup and not (yield from self._tenant(_value(sealed.session, parameters, ()))):
                return query  # there is no such session, and nothing will be found
            cipher = yield from self._cipher(parameters, (), sealed)
            values = list(parameters)
            for column in sealed.writes:
                if values[column.at] is not None:
                    values[column.at] = _seal_value(cipher, values[column.at], column, _place(column, parameters, ()))
            rows.append(values)
        return query._replace(parameters=rows if query.many else rows[0])

    def _open(self, parameters: Sequence[Any], rows: list[Row], sealed: SealedStatement) -> Operation[list[Row]]:
        opened: list[Row] = []
        for row in rows:
            columns = [column for column in sealed.reads if _is_sealed_in(column, row)]
            values = list(row)
            if columns:
                try:
                    cipher = yield from self._cipher(parameters, row, sealed)
                except TenantKeyDestroyed:
                    if sealed.skips:
                        continue
                    if not sealed.blanks:
                        raise
                    for column in columns:
                        values[column.at] = ""
                else:
                    for column in columns:
                        place = _place(column, parameters, row)
                        values[column.at] = self._open_value(cipher, row[column.at], column, place)
            opened.append(values)
        return opened

    def _open_value(self, cipher: TenantCipher, value: Any, column: SealedColumn, place: Place) -> bytes | str:
        if column.kind == "text":
            if self._allows_plaintext and not is_sealed_text(value):
                return value
            return cipher.open_text(value, place)
        data = bytes(value)
        return data if self._allows_plaintext and not is_sealed(data) else cipher.open(data, place)

    def _cipher(self, parameters: Sequence[Any], row: Row, sealed: SealedStatement) -> Operation[TenantCipher]:
        if sealed.tenant is not None:
            return self.keys.cipher(_value(sealed.tenant, parameters, row))
        assert sealed.session is not None
        session: str = _value(sealed.session, parameters, row)
        tenant = yield from self._tenant(session)
        if not tenant:
            raise UnreadableLog(f"there is no session {session!r}, and so no key for what is stored for it")
        return self.keys.cipher(tenant)

    def _tenant(self, session: str) -> Operation[str]:
        """Return the tenant of a session; "" if there is no such session."""
        if (tenant := self._tenants.get(session)) is not None:
            return tenant
        found = yield Query(_TENANT_OF, (session,))
        return self._remember(session, found[0][0]) if found else ""

    def _learn(self, parameters: Sequence[Any], row: Row, session: Ref, tenant: Ref) -> None:
        self._remember(_value(session, parameters, row), _value(tenant, parameters, row))

    def _remember(self, session: str, tenant: str) -> str:
        self._tenants[session] = tenant
        if len(self._tenants) > SESSIONS_LIMIT:
            self._tenants.popitem(last=False)
        return tenant


def _seal_value(cipher: TenantCipher, value: Any, column: SealedColumn, place: Place) -> bytes | str:
    match column.kind:
        case "bytes":
            return cipher.seal(value, place)
        case "text":
            return cipher.seal_text(value, place)
        case "hash":
            return cipher.hash_name(value)
        case "empty":
            return ""


def _is_sealed_in(column: SealedColumn, row: Row) -> bool:
    """Return whether a row has a value in this column that is to be opened."""
    if column.when is not None and row[column.when[0]] != column.when[1]:
        return False
    return row[column.at] is not None and row[column.at] != ""


def _place(column: SealedColumn, parameters: Sequence[Any], row: Row) -> Place:
    return (column.table, column.column, *(_value(ref, parameters, row) for ref in column.ids))


def _value(ref: Ref | None, parameters: Sequence[Any], row: Row) -> Any:
    assert ref is not None
    return parameters[ref.at] if ref.of == "p" else row[ref.at]
