"""Prompt cache health: what a request could have read from the cache, and the cause where it read much less."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.core import events as e
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.parts import Usage
from everturn.core.projections.cache_health import CacheRead, read_cache_health

PLAIN = TurnOptions(system="Be brief.", tools=("look",))


class Log:
    """Writes the log of a session whose requests read and write these tokens."""

    def __init__(self) -> None:
        self.events: list[e.Event] = []
        self._ids = itertools.count(1)
        self._at = 0.0
        self.leaf: str | None = None

    def turn(
        self,
        *usages: Usage,
        options: TurnOptions = PLAIN,
        model: str = "m",
        after: float = 10.0,
        parent: str = "",
        **how: Any,
    ) -> str:
        """A turn with a step for each usage; returns the id of its answer."""
        number = next(self._ids)
        turn, answer = f"t{number}", f"a{number}"
        self._at += after
        user_message = Message(f"u{number}", parent or self.leaf, "user", ())
        self.events += [
            e.TurnStarted(at=self._at, turn=turn, parent=parent or self.leaf, input=user_message, options=options),
            e.AnswerStarted(
                at=self._at, turn=turn, message=Message(answer, user_message.id, "assistant", (), by=model)
            ),
        ]
        if how.get("compacted"):
            self.events.append(e.CompactionFinished(at=self._at, turn=turn, number=1))
        for step, usage in enumerate(usages, 1):
            instructions = how.get("instructions", "")
            self.events += [
                e.StepStarted(at=self._at, turn=turn, step=step, instructions=instructions),
                e.StepFinished(at=self._at + 1, turn=turn, step=step, parts=(), finish="stop", usage=usage),
            ]
            self._at += 1
        self.leaf = answer
        return answer

    @property
    def reads(self) -> list[CacheRead]:
        return read_cache_health(self.events)

    @property
    def causes(self) -> list[str]:
        return [read.cause for read in self.reads]


def used(read: int, written: int = 0) -> Usage:
    return Usage(input=read + written + 50, output=5, cached=read, written=written)


def test_what_was_read_and_written_is_expected_of_the_next_request() -> None:
    log = Log()
    log.turn(used(0, 10_000), used(10_000, 500))
    log.turn(used(10_500, 300))

    assert [(read.expected, read.read, read.cause) for read in log.reads] == [
        (0, 0, ""),
        (10_000, 10_000, ""),
        (10_500, 10_500, ""),
    ]


CHANGES: dict[str, dict[str, Any]] = {
    "model changed": {"model": "other"},
    "compacted": {"compacted": True},
    "tools changed": {"options": replace(PLAIN, tools=("look", "put"))},
    "instructions changed": {"options": replace(PLAIN, system="Be long.")},
    "expired": {"after": 301.0},
    "unexpected": {},
}


@pytest.mark.parametrize("cause", CHANGES)
def test_a_collapse_has_the_cause_that_the_log_tells(cause: str) -> None:
    log = Log()
    log.turn(used(0, 10_000))
    log.turn(used(0, 10_000), used(10_000), **CHANGES[cause])

    assert log.causes == ["", cause, ""]


@pytest.mark.parametrize("cause", CHANGES)
def test_without_a_collapse_a_change_is_no_cause(cause: str) -> None:
    log = Log()
    log.turn(used(0, 10_000))
    log.turn(used(10_000), **CHANGES[cause])

    assert log.causes == ["", ""]


def test_instructions_of_a_step_are_instructions() -> None:
    log = Log()
    log.turn(used(0, 10_000))
    log.turn(used(0, 10_000), instructions="Now as a pirate.")

    assert log.causes == ["", "instructions changed"]


def test_what_is_kept_for_an_hour_does_not_expire_before() -> None:
    log = Log()
    options = replace(PLAIN, params={"cache": "1h"})
    log.turn(used(0, 10_000), options=options)
    log.turn(used(0, 10_000), options=options, after=1800.0)
    log.turn(used(0, 10_000), options=options, after=3700.0)

    assert log.causes == ["", "unexpected", "expired"]


@pytest.mark.parametrize(
    ("before", "read", "is_collapse"),
    [
        (10_000, 8_001, False),
        (10_000, 8_000, True),
        (100_000, 95_000, False),
        (100_000, 94_999, True),
        (1_999, 0, False),
    ],
)
def test_a_collapse_is_more_than_a_block(before: int, read: int, is_collapse: bool) -> None:
    log = Log()
    log.turn(used(0, before))
    log.turn(used(read))

    assert (log.causes[-1] == "unexpected") == is_collapse


def test_a_branch_expects_what_its_own_last_request_left() -> None:
    log = Log()
    first = log.turn(used(0, 10_000))
    log.turn(used(10_000, 30_000))
    log.turn(used(10_000, 100), parent=first)

    assert (log.reads[-1].expected, log.causes[-1]) == (10_000, "")


def test_another_start_expects_nothing_and_steps_without_usage_do_not_count() -> None:
    log = Log()
    log.turn(used(0, 10_000), Usage())
    log.leaf = None
    log.turn(used(0, 10_000))

    assert [(read.expected, read.cause) for read in log.reads] == [(0, ""), (0, "")]
