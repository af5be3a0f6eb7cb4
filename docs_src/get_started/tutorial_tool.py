from everturn import Agent, tool
from everturn.testing import ScriptedModel, call, calls, say

ORDERS = {4512: "a lamp, 29.00 EUR, arrived broken"}


@tool(read_only=True)  # changes nothing, so it runs without approval
async def look_up(order: int) -> str:
    """Find an order by its number."""
    return ORDERS.get(order, "there is no such order")


model = ScriptedModel(
    calls(call("look_up", order=4512)),
    say("Order 4512 is a lamp, and it arrived broken."),
)
support = Agent(
    model,
    instructions="You answer customers of a lamp shop.",
    tools=[look_up],
)


def main() -> None:
    result = support.run_sync("What is wrong with order 4512?")
    print(result.output)
    print(f"{result.stats.steps} steps, {result.stats.calls} tool call")


if __name__ == "__main__":
    main()
