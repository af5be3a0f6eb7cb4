"""Built-in models: the scripts of models that need no registration, by name.

    <kind>[-n<chunks>][-p<ms>]      plain · tool1 · agent · longargs

`n` is the number of chunks of the long part, `p` the milliseconds between chunks (none: the whole answer in one write).
A name may have a prefix, the family whose validation is wanted, as in `mistral-tool1`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from everturn.testing.provider.script import Call, Say, Script, Step

# About 4 tokens and exactly 20 characters each; varied, because some clients fail a stream that repeats itself.
TEXTS = (
    " the quick brown fox",
    " jumped right over a",
    " lazy dog, while its",
    " owner was reading a",
    " very long old novel",
)
LOOKUP = '{"query": "what is the airspeed of an unladen swallow, and who measured it first?"}'
ARGUMENT_CHUNK = 40
"""Characters of tool arguments per chunk in `longargs`."""

_NAME = re.compile(r"(plain|tool1|agent|longargs)(?:-n(\d+))?(?:-p(\d+(?:\.\d+)?))?")
_FAMILY = re.compile(
    r"(mistral|deepseek|kimi|o|gpt-5[^-]*|alternate|prefill|gemini-[^-]*|claude|notools|nothink"
    r"|anthropic\.claude-sonnet-4-5|amazon\.nova-pro)-(.+)",
    re.DOTALL,
)


def without_family(model: str) -> str | None:
    """The rest of a name after the family that decides how strict the provider is, if there is one."""
    match = _FAMILY.fullmatch(model)
    return match[2] if match else None


@lru_cache(maxsize=256)
def builtin(model: str) -> Script | None:
    """The script of a built-in model, or nothing."""
    match = _NAME.fullmatch(model)
    if match is None:
        return None
    steps = _steps(match[1], int(match[2] or 0))
    return Script(tuple(steps), pace=float(match[3] or 0) / 1000)


def _steps(kind: str, n: int) -> list[Step]:
    lookup = Call("lookup", LOOKUP, pieces=10)
    if kind == "plain":
        return [_text(n or 500)]
    if kind == "tool1":
        return [[lookup], _text(n or 50)]
    if kind == "agent":
        return [*[[lookup] * 3] * 5, _text(n or 100)]
    n = n or 5000
    head, tail = '{"path": "a.txt", "content": "', '"}'
    arguments = head + "x" * (n * ARGUMENT_CHUNK - len(head) - len(tail)) + tail
    return [[Call("write_file", arguments, pieces=n)], _text(50)]


def _text(chunks: int) -> list[Say]:
    return [Say("".join(TEXTS[i % len(TEXTS)] for i in range(chunks)), pieces=chunks)]
