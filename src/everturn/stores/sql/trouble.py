"""An error of the driver → what to do about it, and what to tell whoever waits."""

from __future__ import annotations

import enum

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from everturn.errors import ConfigError, EverturnError, StoreUnavailable


class Trouble(enum.Enum):
    """What to do about an error."""

    NONE = "it is the operation's own: tell whoever waits"
    CROWD = "others were at the same rows: again, alone"
    LOST = "the connection is gone, or of no use: again, on another"
    FINAL = "it will not pass by itself: tell whoever waits, and the operator"


_LOST = frozenset(("25006", "25P03", "53300", "57P01", "57P02", "57P03", "57P04", "57P05"))
_CROWD = frozenset(("23505", "40001", "40P01", "53200", "55P03", "57014"))


def trouble_of(error: BaseException) -> Trouble:
    """What an error means for the transaction it came in."""
    if isinstance(error, EverturnError):
        return Trouble.NONE
    if isinstance(error, asyncpg.PostgresError):
        state = getattr(error, "sqlstate", None) or ""
        if state in _CROWD:
            return Trouble.CROWD
        return Trouble.LOST if state in _LOST or state.startswith("08") else Trouble.FINAL
    if isinstance(error, asyncpg.ClientConfigurationError):
        return Trouble.FINAL
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError | OSError | TimeoutError):
        return Trouble.LOST
    return Trouble.NONE


def is_answer(error: BaseException) -> bool:
    """Whether the server itself said no: then it is known what became of a COMMIT."""
    return isinstance(error, asyncpg.PostgresError) and trouble_of(error) is not Trouble.LOST


def has_ended(error: BaseException) -> bool:
    """Whether the connection was ended from the other side, and a new one may do.

    Between the server's last words on a connection at rest and its end, asyncpg says that "another operation (2) is in
    progress": it still waits for the end of the message that nobody asked for.
    """
    return trouble_of(error) is Trouble.LOST and not isinstance(error, TimeoutError)


def is_waiting(error: BaseException) -> bool:
    """Whether somebody else holds a row, and may do so until he is cut off."""
    return getattr(error, "sqlstate", None) == "55P03"


def has_divided(error: BaseException) -> bool:
    """Whether a group that is written at once was refused: one of its fences did not stand."""
    return getattr(error, "sqlstate", None) == "22012"


_NEXT = {
    "3D000": "; make it (`createdb NAME`), or name another",
    "28000": "; see who may log in there, and as whom this address does",
    "28P01": "; see the password in the address",
}
"""What to do next, by what the server said."""


def told(error: BaseException) -> BaseException:
    """An error of the driver → one of ours, for whoever waits."""
    trouble = trouble_of(error)
    if trouble is Trouble.NONE:
        return error
    state = getattr(error, "sqlstate", None) or ""
    words = f"{str(error) or type(error).__name__}{f' ({state})' if state else ''}"
    if state.startswith(("22", "54")):  # bad data, or more of it than fits: asking again brings the same answer
        return ConfigError(f"PostgreSQL cannot keep this: {words}")
    if trouble is Trouble.FINAL:
        return StoreUnavailable(f"the database refused: {words}{_NEXT.get(state, '')}")
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError):
        return StoreUnavailable(f"the connection to the database was lost: {words}")
    return StoreUnavailable(f"the database does not answer: {words}")
