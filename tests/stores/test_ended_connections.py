"""A connection that the database has ended while nobody used it, found by whoever has no time left."""

from __future__ import annotations

from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from everturn.errors import StoreUnavailable
from everturn.stores.sql.database import Operation, Query, Statement
from everturn.stores.sql.errors import translate_error
from everturn.stores.sql.postgres import Postgres
from everturn.stores.sql.postgres_pool import PostgresConnections

WORDS = "cannot switch to state 15; another operation (2) is in progress"
STATEMENT = Statement("any", "", "SELECT")


class Ended:
    """A connection whose end has been announced, or one that works."""

    def __init__(self, error: Exception | None) -> None:
        self._error, self.is_closed, self.scope = error, False, None

    async def execute(self, text: str) -> str:
        if self._error is not None:
            raise self._error
        return text

    async def fetch(self, batch: Any) -> list[Any]:
        await self.execute("")
        return []

    def terminate(self) -> None:
        self.is_closed = True

    async def aclose(self) -> None:
        self.terminate()


class Given(PostgresConnections):
    """Gives out connections that fail with these errors, and then ones that work."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__("postgresql://nobody@127.0.0.1:1/none")
        self._errors, self.made = list(errors), 0

    async def _connect(self, settings: dict[str, str]) -> Any:
        self.made += 1
        return Ended(self._errors.pop(0) if self._errors else None)


def database(*errors: Exception) -> tuple[Postgres, Given]:
    """One that has no patience at all: the time of whoever waits has passed."""
    postgres, links = Postgres("postgresql://nobody@127.0.0.1:1/none", writers=1, timeout=-1.0), Given(*errors)
    postgres._links = links
    for writer in postgres._writers:
        writer._links = links
    return postgres, links


def ended() -> Exception:
    return cast("Exception", asyncpg.InternalClientError(WORDS))


def work() -> Operation[str]:
    yield Query(STATEMENT, ())
    return "done"


async def test_what_finds_an_ended_connection_is_done_on_another_though_its_time_has_passed() -> None:
    postgres, links = database(ended())
    assert await postgres.write(lambda _: work(), "s") == "done"
    assert links.made == 2
    postgres, links = database(ended())
    assert await postgres.read(work) == "done"
    assert links.made == 2


async def test_it_is_tried_once_more_and_then_told_for_what_it_is() -> None:
    postgres, _ = database(ended(), ended())
    with pytest.raises(StoreUnavailable, match="the connection to the database was lost"):
        await postgres.write(lambda _: work(), "s")
    postgres, _ = database(ended(), ended())
    with pytest.raises(StoreUnavailable, match="the connection to the database was lost"):
        await postgres.read(work)


async def test_a_database_that_was_slow_is_not_asked_again_by_who_has_no_time() -> None:
    postgres, links = database(TimeoutError())
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await postgres.read(work)
    postgres, links = database(TimeoutError())
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await postgres.write(lambda _: work(), "s")
    assert links.made == 1


def test_only_silence_is_reported_as_a_database_that_does_not_answer() -> None:
    assert "the connection to the database was lost" in str(translate_error(ended()))
    assert "the database does not answer" in str(translate_error(TimeoutError()))
