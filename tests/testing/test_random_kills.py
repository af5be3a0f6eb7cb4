"""The random kill campaign counts the sessions that a kill has hit: pure, from the ledger and the log."""

from __future__ import annotations

from everturn.core.events import Entry, StepStarted, TurnCompleted
from tools.chaos.ledger import LedgerLine
from tools.chaos.random_kills import Kill, is_hit

KILL = Kill("w2", 10.0)


def drive(worker: str, at: float) -> LedgerLine:
    return LedgerLine("drive", "s", worker=worker, at=at)


def test_a_kill_hits_a_session_whose_driver_has_done_nothing_yet() -> None:
    took_over = [LedgerLine("effect", "s", worker="w1", at=8.0), drive("w2", 9.9)]
    assert is_hit(KILL, [Entry(1, StepStarted(turn="t", at=7.0, step=1))], took_over)
    assert is_hit(KILL, [], [drive("w2", 9.9)]), "also before its first event"


def test_a_kill_does_not_hit_a_session_that_another_worker_drives_or_that_has_ended() -> None:
    assert not is_hit(KILL, [], [drive("w2", 8.0), drive("w1", 9.0)])
    assert not is_hit(KILL, [], [drive("w2", 11.0)])
    assert not is_hit(KILL, [Entry(1, TurnCompleted(turn="t", at=9.5))], [drive("w2", 9.0)])


def test_a_fault_of_the_database_hits_every_session_that_was_driven() -> None:
    cut = Kill("", 10.0, "cut")
    assert is_hit(cut, [], [drive("w1", 9.0)])
    assert not is_hit(cut, [], [])
