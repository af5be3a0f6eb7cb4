"""A router with two specialists, each with a tool of its own."""

from agents import Agent, Runner, function_tool


@function_tool
async def count_invoices(customer: str) -> int:
    """Count the open invoices of a customer."""
    return 2


@function_tool
async def find_parcel(customer: str) -> str:
    """Find out where the parcel of a customer is."""
    return "in Oslo"


billing = Agent(name="billing", model="gpt-5.2-mini", tools=[count_invoices])
shipping = Agent(name="shipping", model="gpt-5.2-mini", tools=[find_parcel])
router = Agent(
    name="router",
    model="gpt-5.2",
    instructions="Ask the specialists, and sum up.",
    tools=[
        billing.as_tool("billing", "Give a task to the billing specialist."),
        shipping.as_tool("shipping", "Give a task to the shipping specialist."),
    ],
)
print(
    Runner.run_sync(router, "What about Ada's invoices and her parcel?").final_output
)
