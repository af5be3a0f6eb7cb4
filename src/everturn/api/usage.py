"""Usage of tokens and dollars, by day, user, model and agent."""

from __future__ import annotations

from everturn.api.base import View
from everturn.core.options import Spent
from everturn.core.parts import CacheCause


class DailyUsage(View, frozen=True, kw_only=True):
    """Usage of one agent on one day."""

    day: str  # 2026-11-15, UTC
    agent: str
    spent: Spent


class UsageView(View, frozen=True, kw_only=True):
    """Usage of the tenant since a time."""

    since: float
    total: Spent
    days: list[DailyUsage]


class CacheCollapses(View, frozen=True, kw_only=True):
    """Requests to one model that missed its provider's prompt cache for one cause."""

    cause: CacheCause
    model: str
    requests: int
    missed: int  # tokens that were expected from the cache and not read from it


class CacheUsageView(View, frozen=True, kw_only=True):
    """Requests that missed the prompt cache since a time, most missed tokens first."""

    since: float
    sessions: int  # in which there were some
    is_partial: bool  # there are more conversations than were searched; these are the ones touched last
    collapses: list[CacheCollapses]


class UserUsage(View, frozen=True, kw_only=True):
    """Usage of one user with one model and one agent; "" is unknown."""

    user: str
    model: str
    agent: str
    spent: Spent


class UserUsageView(View, frozen=True, kw_only=True):
    """Usage of the tenant since a time, by user, model and agent."""

    since: float
    rows: list[UserUsage]
