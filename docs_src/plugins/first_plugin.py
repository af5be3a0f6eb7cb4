import asyncio

from everturn import Agent, App, tool
from everturn.plugins import CallContext, RequestContext
from everturn.testing import ScriptedModel, call, calls, say


class Audit:
    """Adds a line to the system prompt, and prints every call with its outcome."""

    def on_system_prompt(self, ctx: RequestContext) -> None:
        ctx.system.append("Say where each fact comes from.")

    async def on_call_end(self, ctx: CallContext) -> None:
        print(f"audit: {ctx.call.name} {ctx.call.arguments} {ctx.state}")


@tool(read_only=True)
async def order_status(order: int) -> str:
    """Look up the status of an order."""
    return f"order {order} arrives on Friday"


model = ScriptedModel(calls(call("order_status", order=4512)), say("On Friday."))
support = Agent(model, name="support", tools=[order_status])


async def main() -> None:
    async with App(agents=[support], plugins=[Audit()]) as app:
        result = await app.run(support, "Where is order 4512?")
        print(result.output)
        print(model.requests[0].system.splitlines()[-1])


if __name__ == "__main__":
    asyncio.run(main())
