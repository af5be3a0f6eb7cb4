"""The tools of the bot. Workers import this: `ctx.tenant` says whose customer it is, whoever the model thinks it is."""

from __future__ import annotations

import asyncio
import os
import sqlite3

from everturn import ToolContext, ToolError, tool

ORDERS = {  # a database of yours
    "north": {"1001": ("lamp", 40), "1002": ("bulb", 6)},
    "south": {"1001": ("soap", 4), "1003": ("towel", 18)},
}


def order_of(tenant: str, number: str) -> tuple[str, int]:
    """An order of this shop. Another shop's is not there: that is decided here, and not in a prompt."""
    orders = ORDERS.get(tenant, {})
    if number not in orders:
        raise ToolError(f"there is no order {number}; there are {', '.join(orders) or 'none'}")
    return orders[number]


@tool(read_only=True)
async def find_order(number: str, ctx: ToolContext) -> str:
    """Look an order up.

    Args:
        number: As it stands on the bill.
    """
    item, price = order_of(ctx.tenant, number)
    return f"order {number}: a {item} for {price}"


@tool(idempotent=True, approval="ask")
async def refund(number: str, amount: int, ctx: ToolContext) -> str:
    """Give money back.

    Args:
        number: Of the order.
        amount: At most what it has cost.
    """
    item, price = order_of(ctx.tenant, number)
    if not 0 < amount <= price:
        raise ToolError(f"the {item} has cost {price}, so at most that is given back")
    await asyncio.to_thread(pay_back, ctx.key, ctx.tenant, number, amount, price)
    ctx.progress(f"worker {os.getpid()} waits for the bank")
    await asyncio.sleep(float(os.environ.get("SHOP_BANK", "0.2")))
    return f"gave {amount} back for order {number}"


def pay_back(key: str, tenant: str, number: str, amount: int, price: int) -> None:
    """The bank: it takes each payment once, by its key. A worker that dies here is followed by one that asks again."""
    before = "SELECT coalesce(sum(amount), 0) FROM paid WHERE tenant = ? AND number = ? AND key != ?"
    bank = sqlite3.connect(os.environ.get("SHOP_LEDGER", "bank.db"))
    with bank:
        bank.execute("CREATE TABLE IF NOT EXISTS paid (key TEXT PRIMARY KEY, tenant TEXT, number TEXT, amount INTEGER)")
        bank.execute("CREATE TABLE IF NOT EXISTS asked (key TEXT, worker INTEGER)")
        bank.execute("INSERT INTO asked VALUES (?, ?)", (key, os.getpid()))
        if bank.execute(before, (tenant, number, key)).fetchone()[0] + amount > price:
            raise ToolError(f"order {number} has cost {price}, and some of that was given back already")
        bank.execute("INSERT OR IGNORE INTO paid VALUES (?, ?, ?, ?)", (key, tenant, number, amount))
    bank.close()
