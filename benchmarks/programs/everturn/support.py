"""A support bot behind HTTP: it looks up orders, and refunds them once somebody has approved it."""

import sqlite3
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from everturn import Agent, App, RunResult, ToolContext, TurnInfo, tool


class Reply(BaseModel):
    summary: str
    cents: int


@dataclass
class Deps:
    db: sqlite3.Connection
    customer: str


def deps(turn: TurnInfo) -> Deps:
    return Deps(sqlite3.connect("shop.db"), turn.metadata["customer"])


@tool(read_only=True)
async def look_up(ctx: ToolContext[Deps], order: int) -> str:
    """Find an order of this customer."""
    found = "select item, cents from orders where id = ? and customer = ?"
    return str(ctx.deps.db.execute(found, (order, ctx.deps.customer)).fetchone())


@tool(approval="ask")
async def refund(ctx: ToolContext[Deps], order: int, cents: int) -> str:
    """Pay money back."""
    with ctx.deps.db as db:
        db.execute("insert into refunds values (?, ?)", (order, cents))
    return f"refunded {cents} cents"


support = Agent(
    "openai:gpt-5.2",
    name="support",
    instructions="Help with orders.",
    tools=[look_up, refund],
    deps=deps,
    output_type=Reply,
)
app = App(agents=[support], store="chats.db")
api = FastAPI()


def shown(result: RunResult[Reply]) -> dict[str, Any]:
    if result.status == "waiting":
        return {
            "id": result.id,
            "approve": [(gate.tool, gate.arguments) for gate in result.gates],
        }
    return {"id": result.id, "output": result.output.model_dump()}


@api.post("/chats/{session}")
async def send(session: str, customer: str, message: str) -> dict[str, Any]:
    return shown(await app.chat(session).run(message, metadata={"customer": customer}))


@api.post("/approvals/{id:path}")
async def approve(id: str) -> dict[str, Any]:
    result = await app.turn(id).result()
    for gate in result.gates:
        await gate.approve()
    return shown(await result.resume())
