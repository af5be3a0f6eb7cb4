"""A text → the store it names: a file, or a database."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from everturn.core.ports import Store
from everturn.errors import ConfigError
from everturn.stores.memory import MemoryStore

_PASSWORD = re.compile(r"(://[^:/@\s]*):[^\s]*@")
SUFFIXES = (".db", ".sqlite", ".sqlite3")


def named_store(name: str) -> Store:
    """A store by its name: `talks.db` (a file), `postgresql://user@host/database`, or `memory`.

    Raises:
        ConfigError: it names none, or what it needs is not installed.
    """
    try:
        url = urlsplit(name)
        _ = url.port if "," not in url.netloc else 0  # which raises for what is no number
    except ValueError as error:
        raise ConfigError(f"{without_password(name)!r} names no store: {error}") from None
    scheme = url.scheme
    if name == "memory":
        return MemoryStore()
    try:
        if scheme in ("postgresql", "postgres"):
            if not url.path.strip("/"):
                raise ConfigError(
                    f"{without_password(name)!r} names no database; write postgresql://user@host/database"
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
    raise ConfigError(
        f"{without_password(name)!r} names no store; there are: a file such as talks.db, postgresql://user@host/database, memory"
    )


def without_password(name: str) -> str:
    """A store as it may be shown, however it is written."""
    return _PASSWORD.sub(r"\1:...@", name)
