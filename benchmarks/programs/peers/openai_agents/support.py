"""A support bot behind HTTP: it looks up orders, and refunds them once somebody has approved it."""

import sqlite3
from dataclasses import dataclass
from typing import Any

from agents import (
    Agent,
    RunContextWrapper,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
)
from fastapi import FastAPI
from pydantic import BaseModel


class Reply(BaseModel):
    summary: str
    cents: int


@dataclass
class Deps:
    db: sqlite3.Connection
    customer: str


@function_tool
async def look_up(ctx: RunContextWrapper[Deps], order: int) -> str:
    """Find an order of this customer."""
    found = "select item, cents from orders where id = ? and customer = ?"
    return str(ctx.context.db.execute(found, (order, ctx.context.customer)).fetchone())


@function_tool(needs_approval=True)
async def refund(ctx: RunContextWrapper[Deps], order: int, cents: int) -> str:
    """Pay money back."""
    with ctx.context.db as db:
        db.execute("insert into refunds values (?, ?)", (order, cents))
    return f"refunded {cents} cents"


support = Agent(
    name="support",
    model="gpt-5.2",
    instructions="Help with orders.",
    tools=[look_up, refund],
    output_type=Reply,
)
runs = sqlite3.connect("runs.db")
runs.execute("create table if not exists runs (id text primary key, customer, state)")
api = FastAPI()


def context(customer: str) -> RunContextWrapper[Deps]:
    return RunContextWrapper(Deps(sqlite3.connect("shop.db"), customer))


async def run(session: str, customer: str, payload: Any) -> dict[str, Any]:
    history = SQLiteSession(session, "chats.db")
    result = await Runner.run(
        support, payload, context=context(customer).context, session=history
    )
    if result.interruptions:
        state = result.to_state().to_string(context_serializer=lambda deps: {})
        with runs:
            runs.execute(
                "insert or replace into runs values (?, ?, ?)",
                (session, customer, state),
            )
        approvals = [(item.name, item.arguments) for item in result.interruptions]
        return {"id": session, "approve": approvals}
    return {"id": session, "output": result.final_output.model_dump()}


@api.post("/chats/{session}")
async def send(session: str, customer: str, message: str) -> dict[str, Any]:
    return await run(session, customer, message)


@api.post("/approvals/{session}")
async def approve(session: str) -> dict[str, Any]:
    found = "select customer, state from runs where id = ?"
    customer, saved = runs.execute(found, (session,)).fetchone()
    state = await RunState.from_string(
        support, saved, context_override=context(customer)
    )
    for interruption in state.get_interruptions():
        state.approve(interruption)
    return await run(session, customer, state)
