from dataclasses import dataclass

from pydantic import BaseModel

from everturn import Agent, ToolContext, TurnInfo, tool
from everturn.testing import ScriptedModel, call, calls, say


@dataclass
class Shop:
    customer: str
    orders: dict[int, str]


class Case(BaseModel):
    order: int
    problem: str
    refund_cents: int = 0


# Called for each turn, by every process that runs it.
async def open_shop(turn: TurnInfo) -> Shop:
    return Shop(turn.metadata["customer"], {4512: "a lamp, 29.00 EUR, broken"})


@tool(read_only=True)
async def look_up(ctx: ToolContext[Shop], order: int) -> str:
    """Find an order of this customer by its number."""
    return ctx.deps.orders.get(order, "there is no such order")


model = ScriptedModel(
    calls(call("look_up", order=4512)),
    say('{"order": 4512, "problem": "arrived broken", "refund_cents": 2900}'),
)
support = Agent(
    model,
    instructions="You open a case for each complaint.",
    tools=[look_up],
    deps=open_shop,
    output_type=Case,
)


def main() -> None:
    result = support.run_sync("My lamp is broken, 4512", metadata={"customer": "ada"})
    case = result.output  # a Case, checked by pydantic
    print(case.order, case.problem, case.refund_cents)


if __name__ == "__main__":
    main()
