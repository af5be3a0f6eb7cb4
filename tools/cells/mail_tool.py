"""A tool that asks for approval and records its effect: `[tools] python = ["tools.cells.mail_tool"]`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from everturn.core.ports import ToolContext
from everturn.tools.function import tool

LEDGER = "CELLS_LEDGER"


@tool(approval="always")
async def mail(to: str, ctx: ToolContext) -> str:
    """Send a mail."""
    await asyncio.to_thread(_record, f"{ctx.session} {to}\n")
    return f"sent to {to}"


def _record(line: str) -> None:
    with Path(os.environ[LEDGER]).open("a", encoding="utf-8") as file:
        file.write(line)
