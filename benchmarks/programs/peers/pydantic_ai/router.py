"""A router with two specialists, each with a tool of its own."""

from pydantic_ai import Agent

billing_agent = Agent("openai:gpt-5.2-mini")
shipping_agent = Agent("openai:gpt-5.2-mini")
router = Agent("openai:gpt-5.2", instructions="Ask the specialists, and sum up.")


@billing_agent.tool_plain
async def count_invoices(customer: str) -> int:
    """Count the open invoices of a customer."""
    return 2


@shipping_agent.tool_plain
async def find_parcel(customer: str) -> str:
    """Find out where the parcel of a customer is."""
    return "in Oslo"


@router.tool_plain
async def billing(task: str) -> str:
    """Give a task to the billing specialist."""
    return (await billing_agent.run(task)).output


@router.tool_plain
async def shipping(task: str) -> str:
    """Give a task to the shipping specialist."""
    return (await shipping_agent.run(task)).output


print(router.run_sync("What about Ada's invoices and her parcel?").output)
