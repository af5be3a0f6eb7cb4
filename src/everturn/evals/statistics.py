"""Statistics of repeated samples: pass@k, pass^k, and the paired difference of two runs with a confidence interval.
Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import comb
from typing import Final

from msgspec import Struct

RESAMPLES: Final = 2000
CONFIDENCE: Final = 0.95


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """The probability that at least one of `k` samples passes, estimated from `passed` of `samples` without bias.

    Raises:
        ValueError: there are fewer samples than `k`.
    """
    _check(samples, passed, k)
    return 1.0 - comb(samples - passed, k) / comb(samples, k)


def pass_hat_k(samples: int, passed: int, k: int) -> float:
    """pass^k: the probability that all of `k` samples pass, estimated from `passed` of `samples` without bias.

    Raises:
        ValueError: there are fewer samples than `k`.
    """
    _check(samples, passed, k)
    return comb(passed, k) / comb(samples, k)


def _check(samples: int, passed: int, k: int) -> None:
    if not 0 < k <= samples or not 0 <= passed <= samples:
        raise ValueError(
            f"k={k} of {samples} samples, {passed} of them passed: k must be from 1 to the number of samples"
        )


class PairedDifference(Struct, frozen=True):
    """The mean difference of two runs over the same cases, with a 95 % confidence interval."""

    mean: float
    low: float
    high: float
    cases: int

    @property
    def is_significant(self) -> bool:
        """Whether the interval does not contain 0."""
        return self.low > 0 or self.high < 0


def paired_difference(
    new: Sequence[float], old: Sequence[float], resamples: int = RESAMPLES, seed: int = 0
) -> PairedDifference:
    """Compare two runs case by case: the mean of new minus old, and its percentile bootstrap interval over cases.

    The same values give the same interval: the resampling has a fixed seed.

    Raises:
        ValueError: the runs have different cases, or none.
    """
    if len(new) != len(old) or not new:
        raise ValueError(f"a paired difference needs the same cases on both sides: {len(new)} and {len(old)}")
    differences = [new_score - old_score for new_score, old_score in zip(new, old, strict=True)]
    count = len(differences)
    mean = sum(differences) / count
    if min(differences) == max(differences):  # a bootstrap cannot widen it
        return PairedDifference(mean, mean, mean, count)
    chance = random.Random(seed)
    means = sorted(sum(chance.choices(differences, k=count)) / count for _ in range(resamples))
    tail = (1 - CONFIDENCE) / 2
    low, high = means[int(tail * resamples)], means[min(int((1 - tail) * resamples), resamples - 1)]
    return PairedDifference(mean, low, high, count)
