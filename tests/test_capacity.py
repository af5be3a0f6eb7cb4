"""The capacity model: what it says follows from the costs it was given."""

import pytest

from tools.capacity import Assumptions, Costs, check, cost_at, plan

COST = Costs(
    worker_ms=10,
    database_ms=5,
    wal_bytes=50_000,
    disk_bytes=30_000,
    commits=10,
    connections=10,
    delivery_us=20,
    stream_kb=20,
)
DAY = 86_400


def test_turns_a_day_become_cores_bytes_and_processes() -> None:
    step = plan(DAY * 100, COST, Assumptions(peak=3, busy=0.5, days=10, turn_seconds=10, readers=1, deltas=5))

    assert step.per_second == 300
    assert step.worker_cores == pytest.approx(300 * 0.010 / 0.5)
    assert step.streams == 3000
    assert step.reader_cores == pytest.approx(3000 * 5 * 20e-6 / 0.5)
    assert step.processes == 7
    assert step.database_cores == pytest.approx(300 * 0.005 / 0.5)
    assert step.wal == 300 * 50_000
    assert step.disk == DAY * 100 * 10 * 30_000


def test_the_first_limit_is_the_one_that_is_used_most() -> None:
    assert plan(1e6, COST, Assumptions(stream_limit=1)).bottleneck == "live streams by LISTEN/NOTIFY"
    assert plan(1e6, COST, Assumptions(disk_limit=1e6)).bottleneck == "disk"
    assert plan(1e6, COST, Assumptions(wal_limit=1.0)).databases > 1
    assert plan(1e6, COST, Assumptions(connection_limit=1.0)).databases == 1  # max_connections can be raised


def test_the_model_is_right_about_the_runs_it_was_made_from_and_marks_where_it_is_wrong() -> None:
    figures = ("worker_cpu_ms", "database_cpu_ms", "wal_bytes", "disk_bytes", "commits")

    def run(at_once: int, cost: float) -> dict[str, float]:
        return {"at_once": at_once, **dict.fromkeys(figures, cost)}

    found = {"few": run(8, 20), "many": run(32, 14), "checked": run(16, 16)}
    assert cost_at(found, "commits", 8) == pytest.approx(20)
    assert cost_at(found, "commits", 32) == pytest.approx(14)
    assert cost_at(found, "commits", 16) == pytest.approx(16)
    assert "more than 25 %" not in check(found)
    assert check({**found, "checked": run(16, 30)}).count("more than 25 %") == len(figures)
