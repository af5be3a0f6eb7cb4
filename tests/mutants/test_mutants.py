"""Every seeded bug is caught by the test that is named beside it."""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

import pytest

from tests.mutants.mutants import MUTANTS, Mutant
from tests.mutants.run import is_caught, passes

SHORT = 40  # one in so many is planted in CI, always the same ones; `scripts/test -m "" tests/mutants` plants them all


def _is_short(mutant: Mutant) -> bool:
    return crc32(mutant.name.encode()) % SHORT == 0


def _long_unless(is_short: bool) -> list[pytest.MarkDecorator]:
    return [] if is_short else [pytest.mark.long]


FILES = sorted({mutant.test.partition("::")[0] for mutant in MUTANTS})
SHORT_FILES = {mutant.test.partition("::")[0] for mutant in MUTANTS if _is_short(mutant)}


def test_each_bug_can_be_planted_where_it_says() -> None:
    sources = {mutant.file: mutant.path.read_text(encoding="utf-8") for mutant in MUTANTS}
    assert [mutant.name for mutant in MUTANTS if sources[mutant.file].count(mutant.old) != 1] == []


@pytest.mark.parametrize(
    "mutant", [pytest.param(mutant, id=mutant.name, marks=_long_unless(_is_short(mutant))) for mutant in MUTANTS]
)
def test_the_bug_is_caught(mutant: Mutant) -> None:
    assert is_caught(mutant)


# Otherwise a test that fails in such a process for another reason would count as one that notices.
@pytest.mark.timeout(240)  # many tests in one
@pytest.mark.parametrize("file", [pytest.param(file, marks=_long_unless(file in SHORT_FILES)) for file in FILES])
def test_where_no_bug_is_planted_the_same_tests_pass(file: str) -> None:
    assert passes(sorted({mutant.test for mutant in MUTANTS if mutant.test.partition("::")[0] == file}))


def test_a_change_that_breaks_nothing_is_not_caught() -> None:
    assert not is_caught(replace(MUTANTS[0], new=MUTANTS[0].old))


def test_a_mutant_whose_line_is_gone_is_not_taken_for_a_caught_one() -> None:
    with pytest.raises(RuntimeError, match="fix the mutant"):
        is_caught(replace(MUTANTS[0], old="a line that is not there"))
