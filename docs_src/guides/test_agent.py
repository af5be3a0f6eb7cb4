from everturn import Agent, tool
from everturn.models import RequestResult
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def order_status(order: int) -> str:
    """Look up the status of an order."""
    return f"order {order} arrives on Friday"


support = Agent("openai:gpt-5.2", tools=[order_status])


async def test_the_agent_looks_up_the_order() -> None:
    model = ScriptedModel(calls(call("order_status", order=7)), say("On Friday."))
    with support.override(model=model):
        result = await support.run("Where is order 7?")
    assert result.output == "On Friday."

    # The first request offers the tool, and the second has its result.
    assert [spec.name for spec in model.requests[0].tools] == ["order_status"]
    (part,) = model.requests[1].messages[-1].parts
    assert isinstance(part, RequestResult)
    assert part.text == "order 7 arrives on Friday"
