"""A router with two specialists, each with a tool of its own."""

from langchain.agents import create_agent
from langchain.tools import tool


@tool
def count_invoices(customer: str) -> int:
    """Count the open invoices of a customer."""
    return 2


@tool
def find_parcel(customer: str) -> str:
    """Find out where the parcel of a customer is."""
    return "in Oslo"


billing_agent = create_agent("openai:gpt-5.2-mini", tools=[count_invoices])
shipping_agent = create_agent("openai:gpt-5.2-mini", tools=[find_parcel])


@tool
def billing(task: str) -> str:
    """Give a task to the billing specialist."""
    result = billing_agent.invoke({"messages": [{"role": "user", "content": task}]})
    return result["messages"][-1].text


@tool
def shipping(task: str) -> str:
    """Give a task to the shipping specialist."""
    result = shipping_agent.invoke({"messages": [{"role": "user", "content": task}]})
    return result["messages"][-1].text


router = create_agent(
    "openai:gpt-5.2",
    tools=[billing, shipping],
    system_prompt="Ask the specialists, and sum up.",
)
question = "What about Ada's invoices and her parcel?"
result = router.invoke({"messages": [{"role": "user", "content": question}]})
print(result["messages"][-1].text)
