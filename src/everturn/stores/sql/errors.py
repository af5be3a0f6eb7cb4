"""Database errors: classifies an error of asyncpg (retry, reconnect, or report) and translates it into one of ours."""

from __future__ import annotations

import enum

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from everturn.errors import ConfigError, EverturnError, StoreUnavailable, TenantMoving


class ErrorAction(enum.Enum):
    """How to respond to an error."""

    OWN_ERROR = "an error of the operation itself: report it to the caller"
    CONFLICT = "a conflict with another transaction: retry alone"
    LOST = "the connection is lost: retry on another one"
    FINAL = "a permanent error: report it to the caller and the operator"


_LOST_STATES = frozenset(("25006", "25P03", "53300", "57P01", "57P02", "57P03", "57P04", "57P05"))
_CONFLICT_STATES = frozenset(("23505", "40001", "40P01", "53200", "55P03", "57014"))


def classify_error(error: BaseException) -> ErrorAction:
    """Return how to respond to an error, for the transaction it occurred in."""
    if isinstance(error, EverturnError):
        return ErrorAction.OWN_ERROR
    if isinstance(error, asyncpg.PostgresError):
        state = getattr(error, "sqlstate", None) or ""
        if state in _CONFLICT_STATES:
            return ErrorAction.CONFLICT
        return ErrorAction.LOST if state in _LOST_STATES or state.startswith("08") else ErrorAction.FINAL
    if isinstance(error, asyncpg.ClientConfigurationError):
        return ErrorAction.FINAL
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError | OSError | TimeoutError):
        return ErrorAction.LOST
    return ErrorAction.OWN_ERROR


def is_server_error(error: BaseException) -> bool:
    """Return whether the server itself reported the error: then the outcome of a COMMIT is known."""
    return isinstance(error, asyncpg.PostgresError) and classify_error(error) is not ErrorAction.LOST


def is_connection_closed(error: BaseException) -> bool:
    """Return whether the server closed the connection, so that a new one may work.

    Between the server's last message on an idle connection and its close, asyncpg reports that "another operation (2)
    is in progress": it still waits for the end of that unsolicited message.
    """
    return classify_error(error) is ErrorAction.LOST and not isinstance(error, TimeoutError)


def is_lock_timeout(error: BaseException) -> bool:
    """Return whether another transaction holds a row lock, perhaps until its timeout."""
    return getattr(error, "sqlstate", None) == "55P03"


def is_fence_failure(error: BaseException) -> bool:
    """Return whether a merged statement was refused because one of its fences failed (division by zero)."""
    return getattr(error, "sqlstate", None) == "22012"


_HINTS = {
    "3D000": "; create it with `createdb NAME`, or name another database in the address",
    "28000": "; name a role in the address that may log in: postgresql://ROLE@host/database",
    "28P01": "; check the role and the password in the address",
}
"""What the operator can do next, by SQLSTATE."""


MOVING_STATE = "ET001"
"""SQLSTATE of a write that the fence of a moving tenant refuses (cells/fence.py)."""


def translate_error(error: BaseException) -> BaseException:
    """Translate a driver error into the error that the caller gets."""
    response = classify_error(error)
    if response is ErrorAction.OWN_ERROR:
        return error
    state = getattr(error, "sqlstate", None) or ""
    text = f"{str(error) or type(error).__name__}{f' ({state})' if state else ''}"
    if state == MOVING_STATE:
        return TenantMoving(str(error))
    if state.startswith(("22", "54")):  # invalid or too much data: a retry would fail in the same way
        return ConfigError(f"PostgreSQL cannot store this: {text}")
    if response is ErrorAction.FINAL:
        return StoreUnavailable(f"the database refused: {text}{_HINTS.get(state, '')}")
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError):
        return StoreUnavailable(f"the connection to the database was lost: {text}")
    return StoreUnavailable(
        f"the database does not answer: {text}; is PostgreSQL running, and are host and port in the store's address right?"
    )
