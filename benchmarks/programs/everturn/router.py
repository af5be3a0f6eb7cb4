"""A router with two specialists, each with a tool of its own."""

from everturn import Agent, tool


@tool(read_only=True)
async def count_invoices(customer: str) -> int:
    """Count the open invoices of a customer."""
    return 2


@tool(read_only=True)
async def find_parcel(customer: str) -> str:
    """Find out where the parcel of a customer is."""
    return "in Oslo"


billing = Agent("openai:gpt-5.2-mini", name="billing", tools=[count_invoices])
shipping = Agent("openai:gpt-5.2-mini", name="shipping", tools=[find_parcel])
router = Agent(
    "openai:gpt-5.2",
    instructions="Ask the specialists, and sum up.",
    tools=[billing.as_tool(), shipping.as_tool()],
)
print(router.run_sync("What about Ada's invoices and her parcel?").output)
