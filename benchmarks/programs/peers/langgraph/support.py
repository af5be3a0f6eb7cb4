"""A support bot behind HTTP: it looks up orders, and refunds them once somebody has approved it."""

import sqlite3
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime, tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from pydantic import BaseModel


class Reply(BaseModel):
    summary: str
    cents: int


@dataclass
class Deps:
    customer: str


@tool
async def look_up(order: int, runtime: ToolRuntime[Deps]) -> str:
    """Find an order of this customer."""
    found = "select item, cents from orders where id = ? and customer = ?"
    with sqlite3.connect("shop.db") as db:
        return str(db.execute(found, (order, runtime.context.customer)).fetchone())


@tool
async def refund(order: int, cents: int) -> str:
    """Pay money back."""
    with sqlite3.connect("shop.db") as db:
        db.execute("insert into refunds values (?, ?)", (order, cents))
    return f"refunded {cents} cents"


@asynccontextmanager
async def lifespan(api: FastAPI):
    async with AsyncSqliteSaver.from_conn_string("chats.db") as checkpointer:
        api.state.support = create_agent(
            "openai:gpt-5.2",
            tools=[look_up, refund],
            system_prompt="Help with orders.",
            middleware=[HumanInTheLoopMiddleware(interrupt_on={"refund": True})],
            response_format=Reply,
            context_schema=Deps,
            checkpointer=checkpointer,
        )
        yield


api = FastAPI(lifespan=lifespan)


async def run(session: str, customer: str, payload: Any) -> dict[str, Any]:
    config = {
        "configurable": {"thread_id": session},
        "metadata": {"customer": customer},
    }
    result = await api.state.support.ainvoke(payload, config, context=Deps(customer))
    if "__interrupt__" in result:
        actions = result["__interrupt__"][0].value["action_requests"]
        return {
            "id": session,
            "approve": [(call["name"], call["args"]) for call in actions],
        }
    return {"id": session, "output": result["structured_response"].model_dump()}


@api.post("/chats/{session}")
async def send(session: str, customer: str, message: str) -> dict[str, Any]:
    return await run(
        session, customer, {"messages": [{"role": "user", "content": message}]}
    )


@api.post("/approvals/{session}")
async def approve(session: str) -> dict[str, Any]:
    state = await api.state.support.aget_state(
        {"configurable": {"thread_id": session}}
    )
    decisions = [
        {"type": "approve"} for _ in state.interrupts[0].value["action_requests"]
    ]
    customer = state.metadata["customer"]
    return await run(session, customer, Command(resume={"decisions": decisions}))
