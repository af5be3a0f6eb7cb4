"""Seeded bugs in the PostgreSQL engine and bus; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ENGINE, BUS = "tests/engine/test_postgres.py::", "tests/bus/test_postgres_bus.py::"

POSTGRES_MUTANTS = [
    Mutant(
        "a wake during a drive is deleted with the end of the drive",
        "engine/postgres/statements.py",
        "AND worker = $2 AND due IS NULL RETURNING session)",
        "AND worker = $2 RETURNING session)",
        f"{ENGINE}TestPostgresEngine::test_a_wake_during_a_drive_drives_once_more_however_many_there_were",
    ),
    Mutant(
        "the end of a drive is not fenced",
        "engine/postgres/statements.py",
        "DELETE FROM {wakes} WHERE session = ANY($1::text[]) AND worker = $2 AND due IS NULL",
        "DELETE FROM {wakes} WHERE session = ANY($1::text[]) AND $2::bigint > 0 AND due IS NULL",
        f"{ENGINE}test_a_worker_that_was_taken_for_dead_is_overtaken_cancels_its_drives_and_ends_nothing",
    ),
    Mutant(
        "a delayed wake is forgotten when an earlier one comes",
        "engine/postgres/statements.py",
        "due = CASE WHEN w.worker IS NULL THEN {_STILL_LATER} ELSE now() END",
        "due = CASE WHEN w.worker IS NULL THEN NULL ELSE now() END",
        f"{ENGINE}TestPostgresEngine::test_a_session_that_waits_for_a_time_can_be_woken_before",
    ),
    Mutant(
        "a take whose answer was lost holds its session for ever",
        "engine/postgres/engine.py",
        "                if loop.time() >= self._strays_at:\n",
        "                if loop.time() < 0:\n",
        f"{ENGINE}test_a_take_whose_answer_was_lost_is_taken_again",
    ),
    Mutant(
        "a worker that closes tells nobody",
        "engine/postgres/engine.py",
        "                if await self._lease.leave():\n                    self._notifier.notify()\n",
        "                await self._lease.leave()\n",
        f"{ENGINE}test_a_worker_that_closes_hands_its_sessions_over_at_once",
    ),
    Mutant(
        "a late reader does not ask for the step so far",
        "bus/postgres/node.py",
        "        self._ask(inbound)\n        if is_new",
        "        if is_new",
        f"{BUS}TestTwoProcesses::test_a_reader_that_comes_late_is_shown_the_step_that_is_under_way",
    ),
]
