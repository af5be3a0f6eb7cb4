"""A rule of a provider's API: a request that breaks it, what the refusal says, and the request that is taken."""

from __future__ import annotations

from typing import Any, NamedTuple


class Rule(NamedTuple):
    """What is refused and what is taken instead."""

    says: str
    refused: dict[str, Any]
    words: str
    taken: dict[str, Any]
