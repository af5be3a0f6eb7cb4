"""A support bot behind HTTP: it looks up orders, and refunds them once somebody has approved it."""

import sqlite3
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
    RunContext,
)


class Reply(BaseModel):
    summary: str
    cents: int


@dataclass
class Deps:
    db: sqlite3.Connection
    customer: str


support = Agent(
    "openai:gpt-5.2",
    instructions="Help with orders.",
    deps_type=Deps,
    output_type=[Reply, DeferredToolRequests],
)


@support.tool
async def look_up(ctx: RunContext[Deps], order: int) -> str:
    """Find an order of this customer."""
    found = "select item, cents from orders where id = ? and customer = ?"
    return str(ctx.deps.db.execute(found, (order, ctx.deps.customer)).fetchone())


@support.tool(requires_approval=True)
async def refund(ctx: RunContext[Deps], order: int, cents: int) -> str:
    """Pay money back."""
    with ctx.deps.db as db:
        db.execute("insert into refunds values (?, ?)", (order, cents))
    return f"refunded {cents} cents"


chats = sqlite3.connect("chats.db")
chats.execute(
    "create table if not exists chats (id text primary key, customer, messages)"
)
api = FastAPI()


async def run(
    session: str, customer: str, messages: bytes | None, **how: Any
) -> dict[str, Any]:
    history = ModelMessagesTypeAdapter.validate_json(messages) if messages else []
    deps = Deps(sqlite3.connect("shop.db"), customer)
    result = await support.run(message_history=history, deps=deps, **how)
    with chats:
        row = (session, customer, result.all_messages_json())
        chats.execute("insert or replace into chats values (?, ?, ?)", row)
    if isinstance(result.output, DeferredToolRequests):
        calls = result.output.approvals
        return {
            "id": session,
            "approve": [(call.tool_name, call.args) for call in calls],
        }
    return {"id": session, "output": result.output.model_dump()}


@api.post("/chats/{session}")
async def send(session: str, customer: str, message: str) -> dict[str, Any]:
    row = chats.execute(
        "select messages from chats where id = ?", (session,)
    ).fetchone()
    return await run(session, customer, row and row[0], user_prompt=message)


@api.post("/approvals/{session}")
async def approve(session: str) -> dict[str, Any]:
    found = "select customer, messages from chats where id = ?"
    customer, messages = chats.execute(found, (session,)).fetchone()
    calls = ModelMessagesTypeAdapter.validate_json(messages)[-1].tool_calls
    results = DeferredToolResults(
        approvals={call.tool_call_id: True for call in calls}
    )
    return await run(session, customer, messages, deferred_tool_results=results)
