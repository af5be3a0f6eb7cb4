"""Rate-limit headers of providers: what a response says about the limits of its API key.

    anthropic-ratelimit-requests-limit / -remaining; the same for tokens, input-tokens and output-tokens
    x-ratelimit-limit-requests / x-ratelimit-remaining-requests; the same for tokens (OpenAI and many others)

The limits are per minute. Some vendors tell a limit per day in the same header: as a limit per minute it never holds
anything back, and the refusal of a used-up day is obeyed as any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from everturn.core.rate_limits import Amounts, ProviderLimits
from everturn.models.failures import retry_after

_ANTHROPIC: Final = tuple(
    (f"anthropic-ratelimit-{unit}-limit", f"anthropic-ratelimit-{unit}-remaining")
    for unit in ("requests", "tokens", "input-tokens", "output-tokens")
)
_OPENAI: Final = tuple(
    (f"x-ratelimit-limit-{unit}", f"x-ratelimit-remaining-{unit}") for unit in ("requests", "tokens")
)
_PROBES: Final = (_ANTHROPIC[0][0], _OPENAI[0][0], _OPENAI[1][0])


def read_limits(headers: Mapping[str, str]) -> ProviderLimits | None:
    """Return the limits that the headers of a response tell; None: none."""
    if not any(name in headers for name in _PROBES):
        return None
    limits, rest = [0.0] * 4, [-1.0] * 4
    for at, (limit, remaining) in enumerate(_ANTHROPIC if _PROBES[0] in headers else _OPENAI):
        limits[at] = max(0.0, _number(headers.get(limit), 0.0))
        if limits[at]:
            rest[at] = _number(headers.get(remaining), -1.0)
    return ProviderLimits(_amounts(limits), _amounts(rest)) if any(limits) else None


def refused_seconds(status: int, headers: Mapping[str, str]) -> float | None:
    """Return for how long a response refuses requests (0: it does not say); None: it does not refuse."""
    return (retry_after(headers) or 0.0) if status == 429 else None


def _amounts(values: list[float]) -> Amounts:
    return (values[0], values[1], values[2], values[3])


def _number(text: str | None, default: float) -> float:
    if text is None or len(text) > 20:
        return default
    try:
        value = float(text)
    except ValueError:
        return default
    return value if 0 <= value < 1e15 else default
