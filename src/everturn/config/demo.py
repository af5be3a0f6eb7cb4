"""Two tools for an installation that has no model yet: they show what a turn can do, and do no harm."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def demo_tools() -> list[Any]:
    """`current_time`, which just answers; and `take_note`, about which a person is asked."""
    from everturn.tools.function import tool  # reads signatures, which takes a moment to load

    @tool(effects="read")
    def current_time() -> str:
        """Say what time it is, in UTC."""
        return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"

    @tool(effects="once", execute="ask")
    def take_note(text: str) -> str:
        """Keep a note in this conversation."""
        return f"noted: {text}"

    return [current_time, take_note]
