"""Ratings: rates an answer, waits until the log has it, and reads the ratings of a session."""

from __future__ import annotations

from everturn.base_app import BaseApp
from everturn.chat.commands import carry_out
from everturn.chat.replies import checked_name
from everturn.core.commands import RateAnswer
from everturn.core.events import AnswerRated
from everturn.core.ratings import MAX_REASON, Rating
from everturn.core.store_ports import Store
from everturn.errors import ConfigError

NO_RATING = "a rating is 'up', 'down', or '' to withdraw it"
NO_ANSWER = "only answers of the assistant can be rated"


def build_rating(
    key: str, session: str, tenant: str, at: float, message: str, rating: Rating, *, reason: str = "", by: str = ""
) -> RateAnswer:
    """Build the command that rates an answer.

    Raises:
        ConfigError: the rating or the reason is not valid.
    """
    if rating not in ("up", "down", ""):
        raise ConfigError(NO_RATING)
    if len(reason) > MAX_REASON:
        raise ConfigError(f"the reason has {len(reason)} characters; at most {MAX_REASON} are stored")
    by, reason = checked_name(by), reason.strip() if rating else ""
    return RateAnswer(
        key=key, session=session, tenant=tenant, at=at, message=message, rating=rating, reason=reason, by=by
    )


async def rate_answer(app: BaseApp, command: RateAnswer) -> None:
    """Carry out a rating, and wait until the log has it.

    Raises:
        UnknownMessage: the session does not have it.
        ConfigError: the message is not an answer.
    """
    [message] = await app.store.path(command.session, command.message, 1)
    if message.role != "assistant":
        raise ConfigError(NO_ANSWER)
    await carry_out(app, command)


async def read_ratings(store: Store, session: str) -> list[AnswerRated]:
    """The ratings of a session that count: the last one of each person for each answer, in the order of the log."""
    last: dict[tuple[str, str], AnswerRated] = {}
    for entry in await store.indexed_events(session, "rating"):
        if isinstance(event := entry.event, AnswerRated):
            last.pop((event.message, event.by), None)
            last[event.message, event.by] = event
    return [event for event in last.values() if event.rating]
