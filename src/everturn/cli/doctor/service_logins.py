"""Logins of the service check: whether a service that answers also lets us in, and has what we need of it.

Each function returns what is wrong, or "" if nothing is, or if it could not be tried. Texts of servers are cut, and passwords
are never in them.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import SplitResult, unquote

from everturn.cli.doctor.checks import make_printable

PATIENCE: Final = 0.9  # seconds for each answer
LINE_LIMIT: Final = 65_536
POOLED: Final = "accepts LISTEN and delivers nothing: a pooler in transaction mode?"
NO_JETSTREAM: Final = "has no JetStream, which keeps live text for late readers"


def nats_problem(address: SplitResult, connect: Callable[[], socket.socket]) -> str:
    """Log in to NATS over a connection of its own: CONNECT, PING, and PONG or an error."""
    try:
        with connect() as connection:
            connection.settimeout(PATIENCE)
            lines = connection.makefile("rb")
            info: dict[str, Any] = json.loads(lines.readline(LINE_LIMIT).removeprefix(b"INFO "))
            options: dict[str, Any] = {
                "verbose": False,
                "pedantic": False,
                "lang": "doctor",
                "version": "1",
                "protocol": 1,
            }
            if address.username and address.password is None:
                options["auth_token"] = unquote(address.username)
            elif address.username:
                options |= {"user": unquote(address.username), "pass": unquote(address.password or "")}
            connection.sendall(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
            answer = lines.readline(LINE_LIMIT).decode(errors="replace").strip()
    except (
        OSError,
        ValueError,
        AttributeError,
    ):  # it needs TLS, or is too slow: the server reports that when it starts
        return ""
    if answer.startswith("-ERR"):
        return f"refuses the login: {make_printable(answer.removeprefix('-ERR').strip(chr(39) + ' '))}"
    return "" if answer != "PONG" or info.get("jetstream") else NO_JETSTREAM


def postgres_problem(address: str) -> str:
    """Log in to PostgreSQL, and listen to a notification of one's own.

    PgBouncer in transaction mode accepts a LISTEN and never delivers anything. Engine and bus would wait for ever.
    """
    try:
        import asyncpg  # pyright: ignore[reportMissingTypeStubs] - only with the extra `postgres`
    except ImportError:
        return ""
    from everturn.postgres.address import parse_address

    connect: Any = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
    refused: Any = getattr(asyncpg, "PostgresError")  # noqa: B009

    async def listen() -> str:
        try:
            connection = await connect(parse_address(address)[0], timeout=PATIENCE, statement_cache_size=0)
        except refused as error:
            return f"refuses the login: {make_printable(str(error))}"
        try:
            received, channel = asyncio.Event(), f"everturn_doctor_{os.getpid()}"

            def hear(_connection: object, _pid: int, _channel: str, _payload: str) -> None:
                received.set()

            await connection.add_listener(channel, hear)
            await connection.execute(f"NOTIFY {channel}")
            async with asyncio.timeout(PATIENCE):
                await received.wait()
            return ""
        except TimeoutError:
            return POOLED
        finally:
            connection.terminate()

    async def listen_in_time() -> str:
        try:
            async with asyncio.timeout(3 * PATIENCE):
                return await listen()
        except Exception:  # reported by the store, which logs in as well
            return ""

    return asyncio.run(listen_in_time())
