import asyncio

from everturn import Agent, tool
from everturn.evals.bridges.pydantic_evals import (
    agent_task,
    recorded_task,
    to_pydantic_evals,
)
from everturn.testing import ScriptedModel, call, calls, say

REFUNDS = "examples/support-bot/recorded"


@tool(read_only=True)
async def find_order(number: str) -> str:
    """Look an order up."""
    return f"order {number}: a lamp for 40"


guesses = ScriptedModel(  # a model that looks, and then refunds nothing
    calls(call("find_order", number="1001")),
    say("It was a lamp for 40."),
)
desk = Agent(guesses, name="desk", tools=[find_order])


async def main() -> None:
    cases = to_pydantic_evals(REFUNDS)
    for task in (recorded_task(REFUNDS), agent_task(desk)):
        report = await cases.evaluate(task, progress=False)
        for name, check in report.cases[0].assertions.items():
            print(report.name, name, check.value)


if __name__ == "__main__":
    asyncio.run(main())
