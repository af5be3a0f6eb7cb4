"""pass@k, pass^k and paired differences."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.evals import paired_difference, pass_at_k, pass_hat_k

VECTORS = st.lists(st.booleans(), min_size=1, max_size=8)


@given(VECTORS, st.data())
def test_both_are_the_share_of_all_draws_of_k(vector: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(vector)))
    draws = list(combinations(vector, k))
    assert pass_at_k(len(vector), sum(vector), k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_hat_k(len(vector), sum(vector), k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_more_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="k=3 of 2 samples"):
        pass_at_k(2, 1, 3)


def test_a_difference_is_paired_and_the_same_every_time() -> None:
    new, old = [1.0, 1.0, 0.5, 1.0, 0.0, 1.0], [1.0, 0.5, 0.5, 0.0, 0.0, 1.0]
    first = paired_difference(new, old)
    assert first == paired_difference(new, old)
    assert first.mean == pytest.approx(0.25)
    assert first.low <= first.mean <= first.high
    assert not first.is_significant


def test_the_interval_of_a_clear_difference_does_not_contain_zero() -> None:
    assert paired_difference([1.0, 0.8, 1.0, 0.9] * 5, [0.0, 0.2, 0.1, 0.0] * 5).is_significant


def test_equal_runs_differ_by_nothing() -> None:
    difference = paired_difference([0.5, 1.0], [0.5, 1.0])
    assert (difference.low, difference.mean, difference.high) == (0.0, 0.0, 0.0)


def test_other_cases_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="same cases"):
        paired_difference([1.0], [1.0, 0.0])
