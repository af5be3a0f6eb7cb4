"""Demo tools for an installation without a model: they show what a turn can do, and are harmless."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def demo_tools() -> list[Any]:
    """Return `current_time`, which just answers, and `take_note`, which needs an approval."""
    from everturn.tools.function import tool  # reads signatures, which takes a moment to load

    @tool(read_only=True)
    def current_time() -> str:
        """Say what time it is, in UTC."""
        return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"

    @tool(approval="always")
    def take_note(text: str) -> str:
        """Keep a note in this conversation."""
        return f"noted: {text}"

    return [current_time, take_note]
