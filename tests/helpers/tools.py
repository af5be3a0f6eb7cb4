"""Small tools for scripted models to call; each is named as the model calls it."""

from __future__ import annotations

from everturn import tool


@tool(read_only=True)
async def look(at: str) -> str:
    """Look at something."""
    return f"{at} is there"


@tool(idempotent=True, approval="always")
async def mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


@tool(approval="ask", idempotent=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(name="pay", approval="always")
def pay_with_approval(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"
