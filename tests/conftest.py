"""How thorough hypothesis is: `ci` on every change, `long` when there is time (`--hypothesis-profile=long`)."""

import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Tests share helpers as `tests.core.simulate`; with import-mode=importlib nothing else puts the root there.
ROOT = str(Path(__file__).parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

pytest.register_assert_rewrite("everturn.testing.contracts", "tests.core.simulate")

# The same examples every time: a change is judged by what it changed. The other profile is there to explore.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("long", deadline=None, max_examples=2_500, print_blob=True)
settings.load_profile("ci")
