"""docs/guides/bridges.md and eval-bridges.md: what it says where the libraries are missing; where they are, other tests run them."""

from importlib.util import find_spec

import pytest
from docs_src.guides.bridges_first import bridged

from everturn.errors import ConfigError


@pytest.mark.skipif(find_spec("pydantic_ai") is not None, reason="it is installed here")
def test_a_missing_library_is_an_error_that_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'everturn\[pydantic-ai\]'"):
        bridged()


@pytest.mark.skipif(find_spec("inspect_ai") is None, reason="tests/evals/bridges runs it with the command of Inspect")
def test_the_task_of_the_guide_has_the_cases_of_an_example() -> None:
    from docs_src.guides.eval_bridges_inspect import refunds

    assert [sample.id for sample in refunds().dataset] == ["refund"]
