"""Gemini validation, turns: refuses calls without their results, and calls without their signature.

Where the message is ours, because the real one is not known, the function says so.
"""

from __future__ import annotations

from typing import Any

from everturn.testing.provider.faults import Refused
from everturn.testing.provider.gemini_signatures import SKIP, is_signature, is_third
from everturn.testing.provider.progress import is_results

Json = dict[str, Any]


def check_turns(contents: list[Json]) -> None:
    """A call follows a user, and its results follow it at once, as many as there are calls."""
    calls: list[Json] = []  # of the content before
    before = "model"
    for content in contents:
        role = content.get("role", "user")
        responses = _of(content, "functionResponse")
        if responses and (role == "model" or not calls):
            raise Refused("Please ensure that function response turn comes immediately after a function call turn.")
        check_count(calls, responses)
        check_match(calls, responses)
        calls = _of(content, "functionCall")
        if calls and (role != "model" or before == "model"):
            text = "Please ensure that function call turn comes immediately after a user turn or after a function "
            raise Refused(text + "response turn.")
        before = role
    check_count(calls, [])


def _of(content: Json, name: str) -> list[Json]:
    return [part[name] for part in content["parts"] if name in part]


def check_count(calls: list[Json], responses: list[Json]) -> None:
    """Every call has its result, in one content."""
    if len(calls) != len(responses):
        raise Refused(
            "Please ensure that the number of function response parts is equal to the number of function call parts of "
            "the function call turn."
        )


def check_match(calls: list[Json], responses: list[Json]) -> None:
    """A result matches a call: by its id where calls have ids, and by its name. The message is ours."""
    for key in ("id", "name"):
        names, answered = ([str(part.get(key, "")) for part in side] for side in (calls, responses))
        if sorted(names) != sorted(answered):
            raise Refused(
                f"Please ensure that the {key}s of the function response parts are those of the function call parts of "
                f"the function call turn: {', '.join(answered)} are not {', '.join(names)}."
            )


def check_signatures(contents: list[Json], model: str) -> None:
    """A signature is of this model, and the third generation of models requires those of the current turn."""
    for content in contents:
        for part in content["parts"]:
            signed = part.get("thoughtSignature")
            if signed is not None and signed not in SKIP and not is_signature(model, signed):
                raise Refused("Thought signature is not valid.")
    if is_third(model):
        check_signed(contents)


def check_signed(contents: list[Json]) -> None:
    """The first call of each step since the last message of a user is signed."""
    is_input = [entry.get("role", "user") == "user" and not is_results(entry) for entry in contents]
    begin = max((at for at, is_one in enumerate(is_input) if is_one), default=-1) + 1
    for at, content in enumerate(contents[begin:], begin):
        first = next((part for part in content["parts"] if "functionCall" in part), None)
        if first is not None and "thoughtSignature" not in first:
            name = first["functionCall"]["name"]
            raise Refused(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
                "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
                f"function call `default_api:{name}` , position {at + 1}."
            )
