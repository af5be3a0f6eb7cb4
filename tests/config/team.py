"""Code that the agents of `test_agents.py` name: a factory of dependencies, instructions, an output type, tools and a plugin."""

from __future__ import annotations

from pydantic import BaseModel

from everturn import RunContext, ToolContext, TurnInfo, tool
from everturn.core.hooks import StartContext
from everturn.plugins import Plugin


class Refund(BaseModel):
    """What the desk answers with."""

    order: int
    cents: int


async def make_deps(turn: TurnInfo) -> str:
    """The customer that the turn is for."""
    return f"customer of {turn.session}"


async def who(ctx: RunContext) -> str:
    """Instructions of a turn."""
    return f"You talk to the {ctx.deps}."


def hurry() -> str:
    """Instructions of each step."""
    return "Be quick."


@tool(read_only=True)
async def look_up(ctx: ToolContext[str], order: int) -> str:
    """Find an order."""
    return f"order {order} of the {ctx.deps}"


@tool(approval="ask")
async def pay(order: int, cents: int) -> str:
    """Pay money back."""
    return f"paid {cents} for {order}"


class Audit(Plugin):
    """Notes the turns that it has seen."""

    def __init__(self, name: str = "audit") -> None:
        self.note, self.turns = name, list[str]()

    def on_turn_start(self, ctx: StartContext) -> None:
        """Note a turn."""
        self.turns.append(ctx.turn)
