"""The one tool that matters, a ledger that takes each payment once, and a model that needs no network."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path
from typing import Any

from everturn import ToolContext, tool
from everturn.testing import ScriptedModel, call, calls, say

LEDGER = Path(os.environ.get("INBOX_HOME", "inbox-data")) / "ledger.db"


@tool(idempotent=True, approval="always")
def pay_invoice(to: str, amount: float, ctx: ToolContext) -> str:
    """Pay an invoice.

    `idempotent=True` says that a repeat with the same key changes nothing, and the ledger sees to that. So a process may
    die at any moment, and the next one simply pays again.

    Args:
        to: Who is paid.
        amount: How much, in euros.
    """
    with sqlite3.connect(LEDGER) as ledger:
        ledger.execute("CREATE TABLE IF NOT EXISTS paid (key TEXT PRIMARY KEY, recipient TEXT, amount REAL)")
        ledger.execute("INSERT OR IGNORE INTO paid VALUES (?, ?, ?)", (ctx.key, to, amount))
    ledger.close()
    return f"paid {amount:.2f} to {to}"


def offline_model() -> ScriptedModel:
    """A model that looks for `pay NAME AMOUNT` in what was said."""
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
