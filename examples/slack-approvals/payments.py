"""A tool that needs an approval, and a model that needs no network."""

from __future__ import annotations

import re
from typing import Any

from everturn import tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(idempotent=True, approval="always")
def pay_invoice(to: str, amount: float) -> str:
    """Pay an invoice.

    Args:
        to: Who is paid.
        amount: How much, in euros.
    """
    return f"paid {amount:.2f} to {to}"


def offline_model() -> ScriptedModel:
    """A model that looks for `pay NAME AMOUNT` in the message."""
    return ScriptedModel(*[_answer] * 1000, name="offline")


def _answer(request: Any) -> list[Any]:
    last = request.messages[-1]
    if last.role == "user":
        found = re.search(r"\bpay (\w+) (\d+)", last.text, re.IGNORECASE)
        if found is None:
            return say("I am offline, and understand only: pay NAME AMOUNT.")
        return calls(call("pay_invoice", to=found[1], amount=int(found[2])))
    result = last.parts[-1]
    return say(f"It was not allowed: {result.text}" if result.is_error else f"Done: {result.text}.")
