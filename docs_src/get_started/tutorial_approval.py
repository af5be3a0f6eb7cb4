from everturn import Agent, tool
from everturn.testing import ScriptedModel, call, calls, say

ORDERS = {4512: "a lamp, 29.00 EUR, arrived broken"}


@tool(read_only=True)
async def look_up(order: int) -> str:
    """Find an order by its number."""
    return ORDERS.get(order, "there is no such order")


@tool(approval="ask")  # a person approves each call; it runs at most once
async def refund(order: int, cents: int) -> str:
    """Pay money back to the customer."""
    return f"{cents} cents were paid back"


model = ScriptedModel(
    calls(call("look_up", order=4512)),
    calls(call("refund", order=4512, cents=2900)),
    say("You get 29.00 EUR back."),
)
support = Agent(
    model,
    instructions="You answer customers of a lamp shop.",
    tools=[look_up, refund],
)


def main() -> None:
    result = support.run_sync("My lamp is broken, order 4512")
    while result.status == "waiting":
        for gate in result.gates:
            print("approve?", gate.tool, gate.arguments)
            gate.approve_sync()  # or gate.deny_sync("too expensive")
        result = result.resume_sync()
    print(result.output)


if __name__ == "__main__":
    main()
