from everturn import tool


@tool(read_only=True)
async def order_status(order: int) -> str:
    """Look up the status of an order."""
    return f"order {order} arrives on Friday"
