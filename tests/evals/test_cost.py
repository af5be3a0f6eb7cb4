"""Depth pure costs the same for each recording, however many there are; 200 cost less than ten seconds of CPU."""

from __future__ import annotations

from benchmarks.evals import dataset, measure

from everturn.evals import EvalChange
from tests.test_benchmarks import RUNS, SUPER_LINEAR, best_of


def test_a_recording_costs_the_same_among_many() -> None:
    few, many = dataset(7), dataset(70)
    measure(few, "pure", EvalChange())  # what is imported and compiled once

    def growth() -> float:
        small, large = measure(few, "pure", EvalChange()), measure(many, "pure", EvalChange())
        assert (small[1], large[1]) == (7, 70)  # every case ran
        return (large[0] / 70) / (small[0] / 7)

    best, seen = best_of((growth() for _ in range(RUNS)), SUPER_LINEAR)
    assert best <= SUPER_LINEAR, seen


def test_200_recordings_cost_at_most_ten_seconds_of_cpu() -> None:
    """CPU time of this process, not of the clock: a busy machine does not change it much. It is about two seconds."""
    seconds, ran = measure(dataset(200), "pure", EvalChange())
    assert ran == 200
    assert seconds <= 10.0
