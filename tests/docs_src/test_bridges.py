"""docs/guides/bridges.md: what it says where the libraries are missing; where they are, `scripts/bridges` has the tests."""

from importlib.util import find_spec

import pytest
from docs_src.guides.bridges_first import bridged

from everturn.errors import ConfigError


@pytest.mark.skipif(find_spec("pydantic_ai") is not None, reason="it is installed here")
def test_a_missing_library_is_an_error_that_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'everturn\[pydantic-ai\]'"):
        bridged()
