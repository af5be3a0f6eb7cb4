"""Every seeded bug is caught by the test that is named beside it."""

from __future__ import annotations

import pytest

from tests.mutants.mutants import MUTANTS, Mutant
from tests.mutants.run import is_caught


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_the_bug_is_caught(mutant: Mutant) -> None:
    assert is_caught(mutant)
