"""Session parameters: what a person chose for the later turns of one session. The log has them; the last choice counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from everturn.errors import ConfigError

MAX_OUTPUT: Final = 1_000_000  # tokens
MAX_TEMPERATURE: Final = 2.0
MAX_GROUPS: Final = 50
MAX_GROUP_NAME: Final = 200  # characters
ReasoningLevel = Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]


class SessionParameters(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Parameters of a session; None, "" and 0 leave the choice to the agent."""

    temperature: float | None = None
    max_tokens: int = 0  # the maximum length of an answer, in tokens
    reasoning: ReasoningLevel = ""  # how much a model thinks first
    without_groups: tuple[str, ...] = ()  # groups of tools that are not offered to the model


NO_PARAMETERS: Final = SessionParameters()


def model_params(
    parameters: SessionParameters, has_temperature: bool | None, levels: tuple[str, ...] | None
) -> Mapping[str, Any]:
    """The parameters for a model that takes a temperature and these reasoning levels; None: it is not known, and sent."""
    params: dict[str, Any] = {}
    if parameters.temperature is not None and has_temperature is not False:
        params["temperature"] = parameters.temperature
    if parameters.max_tokens:
        params["max_tokens"] = parameters.max_tokens
    if parameters.reasoning and (levels is None or parameters.reasoning in levels):
        params["reasoning"] = parameters.reasoning
    return params


def check_parameters(parameters: SessionParameters) -> SessionParameters:
    """Check what a person chose.

    Raises:
        ConfigError: a value is outside of its range; the text says what it is.
    """
    temperature, groups = parameters.temperature, parameters.without_groups
    if temperature is not None and not 0 <= temperature <= MAX_TEMPERATURE:
        raise ConfigError(f"parameters: temperature={temperature:g}: give a number from 0 to {MAX_TEMPERATURE:g}")
    if not 0 <= parameters.max_tokens <= MAX_OUTPUT:
        raise ConfigError(
            f"parameters: max_tokens={parameters.max_tokens}: give a number from 1 to {MAX_OUTPUT:,}; 0: none"
        )
    if len(groups) > MAX_GROUPS or not all(0 < len(name) <= MAX_GROUP_NAME for name in groups):
        raise ConfigError(f"parameters: without_groups: give the names of at most {MAX_GROUPS} groups")
    return parameters
