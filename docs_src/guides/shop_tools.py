from everturn import tool


@tool(read_only=True)
async def order_status(order: int) -> str:
    """Look up the status of an order."""
    return f"order {order} arrives on Friday"


@tool(approval="ask")  # a person approves each call
async def refund(order: int, cents: int) -> str:
    """Pay money back to a customer."""
    return f"refunded {cents} cents for order {order}"
