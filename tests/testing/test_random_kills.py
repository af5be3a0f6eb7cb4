"""The random kill campaign counts the sessions that a kill has hit: pure, from the ledger and the log."""

from __future__ import annotations

from everturn.core.events import Entry, StepStarted, TurnCompleted
from tools.chaos.ledger import LedgerLine
from tools.chaos.random_kills import Kill, is_hit, next_commit

KILL = Kill("w2", 10.0)


def drive(worker: str, at: float) -> LedgerLine:
    return LedgerLine("drive", "s", worker=worker, at=at)


def test_a_kill_hits_a_session_whose_driver_has_done_nothing_yet() -> None:
    took_over = [LedgerLine("effect", "s", worker="w1", at=8.0), drive("w2", 9.9)]
    assert is_hit(KILL, "s", [Entry(1, StepStarted(turn="t", at=7.0, step=1))], took_over)
    assert is_hit(KILL, "s", [], [drive("w2", 9.9)]), "also before its first event"


def test_a_kill_hits_a_session_that_its_engine_gave_to_the_worker() -> None:
    given = Kill("w2", 10.0, given=frozenset({"s"}))
    assert is_hit(given, "s", [], [drive("w1", 8.0)]), "the worker has not begun to drive it"
    assert not is_hit(given, "other", [], [drive("w1", 8.0)])
    assert not is_hit(given, "s", [Entry(1, TurnCompleted(turn="t", at=9.5))], [])


def test_a_kill_does_not_hit_a_session_that_another_worker_drives_or_that_has_ended() -> None:
    assert not is_hit(KILL, "s", [], [drive("w2", 8.0), drive("w1", 9.0)])
    assert not is_hit(KILL, "s", [], [drive("w2", 11.0)])
    assert not is_hit(KILL, "s", [Entry(1, TurnCompleted(turn="t", at=9.5))], [drive("w2", 9.0)])


def test_a_fault_of_the_database_hits_every_session_that_was_driven() -> None:
    cut = Kill("", 10.0, "cut")
    assert is_hit(cut, "s", [], [drive("w1", 9.0)])
    assert not is_hit(cut, "s", [], [])


def test_progress_is_the_commit_of_an_event_that_was_made_after_the_fault() -> None:
    log = [Entry(seq, StepStarted(turn="t", at=at, step=1)) for seq, at in ((1, 9.0), (2, 9.9), (3, 10.5), (4, 14.0))]
    rows = [(1, 9.1), (2, 13.0), (4, 14.1)]  # the second waited for the database, the last two are one row
    assert next_commit(10.0, log, rows) == 14.1
    assert next_commit(9.5, log, rows) == 13.0
    assert next_commit(20.0, log, rows) == float("inf")
