"""Forks inside an answer: checks them before the command is sent, and names the copy."""

from __future__ import annotations

from everturn import wire
from everturn.core.canonical_json import hash_values
from everturn.core.forks import fork_answer
from everturn.core.messages import ForkPoint, Message
from everturn.errors import CommandRefused

FORKS_ARE_OFF = (
    "a fork inside an answer is not possible while this process writes the log format of an older release (--writes): a "
    "driver of that release would run the whole answer again. Fork at a message, or restart without --writes"
)


def fork_point(answer: Message, step: int) -> ForkPoint:
    """The place behind a finished step of an answer.

    Raises:
        CommandRefused: the answer has no such step, it is not finished, or an older release may carry the fork out.
    """
    if not wire.can_ask("fork"):
        raise CommandRefused(FORKS_ARE_OFF)
    fork_answer(answer, step, answer.id)
    return ForkPoint(answer.id, step)


def copy_id(session: str, key: str) -> str:
    """The id of the copy that a fork adds: the same for a repeat, so that it is the same command."""
    return f"fork_{hash_values(session, key)[:24]}"
