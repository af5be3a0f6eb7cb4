"""A bridge whose library is not there says what to install."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from everturn.errors import ConfigError
from everturn.models.bridges.litellm import LiteLLMModel
from everturn.models.bridges.pydantic_ai import PydanticAIModel


@pytest.mark.parametrize(
    ("make", "module", "extra"),
    [
        (lambda: PydanticAIModel("openai:gpt-5"), "pydantic_ai.models", "pydantic-ai"),
        (lambda: LiteLLMModel("bedrock/any"), "litellm", "litellm"),
    ],
    ids=["pydantic-ai", "litellm"],
)
def test_a_bridge_without_its_library_says_what_to_install(
    make: Callable[[], object], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not there, where it is
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)

    with pytest.raises(ConfigError, match=rf"pip install 'everturn\[{extra}\]'"):
        make()
