"""What a small model writes when it is held to the form, without the model: text, and nothing but text."""

from __future__ import annotations

import json
import re
from typing import Any

from everturn.models import PromptedModel
from everturn.testing import ScriptedModel, say

TAKE = {"sunny": "sunglasses", "rain": "umbrella"}


def model() -> PromptedModel:
    """A model that only writes text, and the same wrapper around it that a real one has."""
    return PromptedModel(ScriptedModel(_calls, _answers, name="offline"), "json", "grammar")


def _calls(request: Any) -> list[Any]:
    names = re.findall(r"\b[A-Z][a-z]+\b", request.messages[-1].text)
    call = {"name": "get_weather", "arguments": {"city": names[-1] if names else "Paris"}}
    return say(json.dumps({"tool_calls": [call]}))


def _answers(request: Any) -> list[Any]:
    result = json.loads(request.messages[-1].text)["tool_call_result"]["result"]
    take = next((thing for sky, thing in TAKE.items() if sky in result), "coat")
    return say(json.dumps({"city": result.rpartition(" in ")[2].rstrip("."), "take": take}))
