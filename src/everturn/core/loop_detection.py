"""Loop detection: finds tool calls, or texts of steps without calls, that repeat with a period of up to four.

It compares fingerprints of names and parsed arguments, so that whitespace and the order of keys make no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from everturn.core.canonical_json import encode_canonical, hash_values, parse_object
from everturn.core.messages import Message
from everturn.core.parts import StepPart, TextPart, ToolPart

LOOP_RULE_NAME: Final = "doom_loop"  # the name of loops in rules
LOOP_REPETITIONS: Final = 3  # repetitions of a pattern at which a person is asked
MAX_LOOP_PERIOD: Final = 4  # calls in a pattern
RECENT_CALLS: Final = LOOP_REPETITIONS * MAX_LOOP_PERIOD  # recent calls to compare
_SHORT: Final = 200


def fingerprint_of_text(name: str, arguments: str) -> str:
    """The fingerprint of a call, from the name and arguments that a model wrote."""
    parsed = parse_object(arguments)
    return fingerprint_of_call(name, arguments if parsed is None else encode_canonical(parsed))


def fingerprint_of_call(name: str, arguments: str) -> str:
    """The fingerprint of a call, from the tool's own name and canonical arguments."""
    text = f"{name} {arguments}"
    return text if len(text) <= _SHORT else hash_values(text)


def step_texts(messages: Iterable[Message]) -> list[str]:
    """The texts of the steps in some messages; a step with calls or without text has a mark of its own."""
    texts: list[str] = []
    for message in messages:
        text, is_plain = "", True
        for part in message.parts:
            if type(part) is TextPart:
                text += part.text
            elif type(part) is ToolPart:
                is_plain = False
            elif type(part) is StepPart:
                own = f"{message.id} {part.step}"
                texts.append(" ".join(text.split()) if is_plain and text.strip() else f"\0{own}")
                text, is_plain = "", True
    return texts


def find_loop_period(recent_calls: Sequence[str]) -> int:
    """The length of the pattern whose third repetition the last call completes; 0: there is none."""
    for period in range(1, MAX_LOOP_PERIOD + 1):
        recent = recent_calls[-LOOP_REPETITIONS * period :]
        if len(recent) == LOOP_REPETITIONS * period and all(
            recent[index] == recent[index % period] for index in range(period, len(recent))
        ):
            return period
    return 0
