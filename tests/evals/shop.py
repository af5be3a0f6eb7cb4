"""A shop whose tools count their runs, and recordings of its refunds: what the tests of evals run again."""

from __future__ import annotations

from typing import Any

from everturn import Agent, Chat, tool
from everturn.core.ports import Model
from everturn.events import TurnSuspended
from everturn.replay import Recording
from everturn.testing import ScriptedModel, call, calls, say

QUESTION = "I want my money back for order 4512"


class Shop:
    """The tools of a shop, and what they have done."""

    def __init__(self, approval: Any = "ask", description: str = "") -> None:
        self.read: list[str] = []
        self.refunded: list[tuple[str, int]] = []
        self.pages = 0

        @tool(read_only=True)
        async def get_order(number: str) -> str:
            """Look an order up."""
            self.read.append(number)
            return f"order {number}: a lamp for 40"

        @tool(approval=approval, description=description)
        async def refund(number: str, amount: int) -> str:
            """Give money back."""
            self.refunded.append((number, amount))
            return f"gave {amount} back for {number}"

        @tool(read_only=True, repeatable=True)
        async def next_page() -> str:
            """Read the next page."""
            self.pages += 1
            return f"page {self.pages}"

        self.tools = [get_order, refund, next_page]


def refund_script(number: str = "4512", amount: int = 40, text: str = "You get 40 back.") -> tuple[Any, ...]:
    """What a model says that looks an order up, refunds it, and says so."""
    return calls(call("get_order", number=number)), calls(call("refund", number=number, amount=amount)), say(text)


def refund_model(number: str = "4512", amount: int = 40, text: str = "You get 40 back.", name: str = "new") -> Model:
    return ScriptedModel(*refund_script(number, amount, text), name=name)


async def record_with(shop: Shop, *script: Any, allow: bool = True, system: str = "", **how: Any) -> Recording:
    """Record a turn of the shop; a person answers each gate."""
    async with Chat(ScriptedModel(*script, name="old"), tools=shop.tools, **how) as chat:
        turn = await chat.send(QUESTION, agent=Agent(instructions=system, tools=shop.tools) if system else None)
        async for event in turn:
            if isinstance(event, TurnSuspended):
                for gate in await chat.gates():
                    await turn.answer(gate, allow="once" if allow else None, deny=None if allow else "not today")
        return await Recording.from_session(chat.app.store, chat.session)


async def record_refund(shop: Shop | None = None, **how: Any) -> Recording:
    """Record a refund."""
    return await record_with(shop or Shop(), *refund_script(), **how)
