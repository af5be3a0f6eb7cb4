"""Prompt cache: counts which tokens of a request a provider has cached, and what they cost.

Vendors cache the beginning of a prompt in blocks, from some size on: a request reads the blocks that it shares with an
earlier one, from the first to the last without a gap, and writes the rest. Tools come first, then the system prompt,
then the messages. Four bytes are a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, cast

import msgspec
from msgspec import Struct

from everturn.core.parts import Usage

BYTES_PER_TOKEN = 4
_ORDER = ("tools", "system", "instructions", "systemInstruction", "messages", "input", "contents")


class CachePrices(Struct, frozen=True):
    """Prices of tokens, relative to an input token that is neither read from the cache nor written to it."""

    cached: float = 0.1
    written: float = 1.25
    output: float = 5.0


class PromptCache:
    """The prompt cache of one model: blocks of `block` tokens, from `least` tokens on, that never expire."""

    def __init__(self, block: int = 128, least: int = 1024, prices: CachePrices | None = None) -> None:
        self._size, self._least, self._prices = block * BYTES_PER_TOKEN, least, prices or CachePrices()
        self._known: set[bytes] = set()
        self._longest = 0  # tokens of the last request in whole blocks
        self.requests = self.breaks = 0
        self.usage = Usage()
        self.cost = 0.0

    def count(self, body: Mapping[str, Any], output: int = 0) -> Usage:
        """Count a request in the wire format of a vendor, and its output in tokens."""
        prompt = prompt_bytes(body)
        state, cached, is_known = b"", 0, True
        end = len(prompt) - len(prompt) % self._size
        for at in range(0, end, self._size):
            state = blake2b(state + prompt[at : at + self._size], digest_size=16).digest()
            if is_known and state in self._known:
                cached += self._size // BYTES_PER_TOKEN
            else:
                is_known = False
                self._known.add(state)
        tokens, whole = len(prompt) // BYTES_PER_TOKEN, end // BYTES_PER_TOKEN
        cached = cached if cached >= self._least else 0
        written = whole - cached if whole >= self._least else 0
        usage = Usage(input=tokens, output=output, cached=cached, written=written)
        self.requests += 1
        self.breaks += cached < self._longest  # the request changed something that the last one had written
        self._longest = whole if whole >= self._least else 0
        prices, plain = self._prices, tokens - cached - written
        self.cost += plain + cached * prices.cached + written * prices.written + output * prices.output
        self.usage = self.usage + usage
        return usage


def prompt_bytes(body: Mapping[str, Any]) -> bytes:
    """What a model reads of a request, in the order in which it reads it; marks of what is to be cached are not read."""
    values = (body[name] for name in _ORDER if name in body)
    items = (item for value in values for item in (cast("list[Any]", value) if isinstance(value, list) else [value]))
    return b"".join(_ENCODER.encode(_without_marks(item)) for item in items)  # one after another: no end of a list


_ENCODER = msgspec.json.Encoder()


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: _without_marks(item) for key, item in fields.items() if key != "cache_control"}
    return [_without_marks(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
