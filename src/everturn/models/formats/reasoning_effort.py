"""Reasoning effort: `reasoning="high"`, in the words of each vendor. Parameters in a vendor's own words are left alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from everturn.models.profile import Profile

NONE: Final = "none"
LEVELS: Final = (NONE, "minimal", "low", "medium", "high", "xhigh", "max")
_BUDGETS: Final = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_768}
Json = dict[str, Any]


def _adaptive(level: str) -> Json:
    return {} if level == NONE else {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}


def _budget(level: str) -> Json:
    budget = {"type": "enabled", "budget_tokens": _BUDGETS.get(level, _BUDGETS["high"])}
    return {"thinking": {"type": "disabled"} if level == NONE else budget}


def _switch(level: str) -> Json:
    return {"thinking": {"type": "disabled" if level == NONE else "enabled"}}


WORDS: Final[Mapping[str, Callable[[str], Json]]] = {
    "effort": lambda level: {"reasoning_effort": level},
    "object": lambda level: {"reasoning": {"effort": level}},
    # platform.claude.com/docs/en/build-with-claude/adaptive-thinking: without `thinking` these models do not think
    "adaptive": _adaptive,
    "budget": _budget,
    # api-docs.deepseek.com/guides/thinking_mode
    "switch-and-effort": lambda level: _switch(level) if level == NONE else {"reasoning_effort": level},
    "switch": _switch,
    "enable": lambda level: {"enable_thinking": level != NONE},
    # ai.google.dev/gemini-api/docs/thinking: models before Gemini 3 have a budget, later ones cannot be told not to think
    "level": lambda level: {"thinkingConfig": {"thinkingLevel": "minimal" if level == NONE else level}},
    "level-budget": lambda level: {"thinkingConfig": {"thinkingBudget": _BUDGETS.get(level, 0 if level == NONE else -1)}},
    # docs.ollama.com/capabilities/thinking: gpt-oss has levels
    "think": lambda level: {"think": level != NONE},
    # docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html
    "nova": lambda level: {"reasoningConfig": {"type": "disabled"} if level == NONE else {"type": "enabled", "maxReasoningEffort": level}},
    "think-level": lambda level: {"think": level},
}  # fmt: skip
"""How a vendor is told, by `Profile.reasoning`."""
_USUAL: Final = {
    "chat": "effort",
    "responses": "object",
    "messages": "adaptive",
    "gemini": "level",
    "ollama": "think",
    "converse": "effort",
}


_LEVELS: Final[Mapping[str, tuple[str, ...]]] = {
    "effort": ("minimal", "low", "medium", "high"),
    "object": ("minimal", "low", "medium", "high"),
    "adaptive": (NONE, "low", "medium", "high", "max"),
    "budget": (NONE, "low", "medium", "high"),
    "switch-and-effort": (NONE, "low", "medium", "high"),
    "switch": (NONE, "high"),
    "enable": (NONE, "high"),
    "level": ("minimal", "low", "medium", "high"),
    "level-budget": (NONE, "low", "medium", "high"),
    "think": (NONE, "high"),
    "nova": (NONE, "low", "medium", "high"),
    "think-level": ("low", "medium", "high"),
}
"""The levels to choose from, by `Profile.reasoning`: those that differ there, of the ones that all its models have."""


def reasoning_levels(profile: Profile) -> tuple[str, ...]:
    """The reasoning levels that people can choose for a model; () if it does not think."""
    if profile.reasoning_levels is not None:
        return tuple(profile.reasoning_levels)  # a list, where it is from the file of facts
    return _LEVELS[profile.reasoning or _USUAL[profile.format]]


def write_reasoning(params: Mapping[str, Any], profile: Profile) -> Mapping[str, Any]:
    """Return the parameters with `reasoning`, where it is a text, in the vendor's words. Other words win over it."""
    level = params.get("reasoning")
    if not isinstance(level, str):
        return params
    rest = {name: value for name, value in params.items() if name != "reasoning"}
    written = WORDS[profile.reasoning or _USUAL[profile.format]](level)
    if isinstance(config := rest.get("output_config"), dict) and "output_config" in written:
        rest["output_config"] = {**written["output_config"], **config}
    return {**written, **rest}
