"""Store registry: returns the store for a file name or database URL."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from everturn.core.store_ports import Store, TurnStore
from everturn.entry_points import names_in, open_by_name
from everturn.errors import ConfigError
from everturn.stores.memory import MemoryStore
from everturn.stores.partial import complete_store

_PASSWORD = re.compile(r"(://[^:/@\s]*):[^\s]*@")
SUFFIXES = (".db", ".sqlite", ".sqlite3")


def get_store(name: str) -> Store:
    """Return a store by its name: `talks.db` (a file), `postgresql://user@host/database`, or `memory`.

    Other schemes are looked up among the entry points `everturn.stores` of installed packages.

    Raises:
        ConfigError: the name is of no store, or a package that it needs is not installed.
    """
    try:
        url = urlsplit(name)
        _ = url.port if "," not in url.netloc else 0  # raises if it is not a number
    except ValueError as error:
        raise ConfigError(f"{without_password(name)!r} names no store: {error}") from None
    scheme = url.scheme
    if name == "memory":
        return MemoryStore()
    try:
        if scheme in ("postgresql", "postgres"):
            if not url.path.strip("/"):
                raise ConfigError(
                    f"{without_password(name)!r} does not name a database; write postgresql://user@host/database"
                )
            from everturn.stores.sql.store import SqlStore

            return SqlStore.postgres(name)
        if scheme == "sqlite" or Path(name).suffix in SUFFIXES:
            from everturn.stores.sql.store import SqlStore

            file = name.removeprefix("sqlite:").removeprefix("///").removeprefix("//")
            if not file:
                raise ConfigError("`sqlite:` names no file; write sqlite:talks.db, or just talks.db")
            return SqlStore.sqlite(file)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed; `pip install 'everturn[postgres]'`") from error
    provided: TurnStore | None = open_by_name("everturn.stores", scheme, name) if scheme else None
    if provided is not None:
        return complete_store(provided)
    others = "".join(f", {other}://…" for other in names_in("everturn.stores"))
    driver = (
        "; write postgresql:// alone: Everturn has a driver" if scheme.startswith(("postgresql+", "postgres+")) else ""
    )
    raise ConfigError(
        f"{without_password(name)!r} is not a store{driver}; there are: a file such as talks.db, "
        f"postgresql://user@host/database, memory{others}"
    )


def without_password(name: str) -> str:
    """Return the name of a store with its password hidden, also if the URL is malformed."""
    return _PASSWORD.sub(r"\1:...@", name)
