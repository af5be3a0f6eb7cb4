"""Connections to the databases of cells, and to that of the routing table."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from everturn.errors import ConfigError, EverturnError
from everturn.postgres.address import parse_address

CONNECT_TIMEOUT: Final = 10.0  # seconds
_SETTINGS: Final = {
    "application_name": "everturn cells",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "row_security": "off",  # a role that may not see all rows is refused, instead of given a part of them
}


async def connect(url: str) -> Any:
    """Open a connection; asyncpg has no types.

    Raises:
        ConfigError: asyncpg is not installed, or this is not the URL of a PostgreSQL database.
        StoreUnavailable: the database does not answer.
    """
    try:
        import asyncpg  # pyright: ignore[reportMissingTypeStubs]
    except ModuleNotFoundError as error:
        raise ConfigError("asyncpg is not installed: `pip install 'everturn[postgres]'`") from error
    from everturn.stores.sql.errors import translate_error

    address, schema = parse_address(url)
    settings = dict(_SETTINGS) if schema is None else {**_SETTINGS, "search_path": f'"{schema}"'}
    opening: Any = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
    try:
        return await opening(address, timeout=CONNECT_TIMEOUT, statement_cache_size=0, server_settings=settings)
    except Exception as error:
        raise translate_error(error) from error


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Any]:
    """A connection for a block; errors of the database are translated into ours."""
    from everturn.stores.sql.errors import translate_error

    connection = await connect(url)
    try:
        yield connection
    except EverturnError:
        raise
    except Exception as error:
        raise translate_error(error) from error
    finally:
        await connection.close()
