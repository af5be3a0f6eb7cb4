import asyncio
import json
import time

from everturn import Agent, App, ToolContext, tool
from everturn.inbound_hooks import InboundHook, sign_delivery
from everturn.testing import ScriptedModel, call, calls, say

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
created: asyncio.Queue[str] = asyncio.Queue()


async def create_payment(amount: int, reference: str) -> None:
    """The provider's API; it repeats the reference in its webhooks."""
    await created.put(reference)


@tool(resumable=True)
async def charge(amount: int, ctx: ToolContext) -> str:
    """Charge the card, and wait for the provider's webhook."""

    async def start(token: str) -> None:
        await create_payment(amount, reference=token)

    return await ctx.external(start, hook="payments", timeout=86_400)


async def main() -> None:
    model = ScriptedModel(calls(call("charge", amount=40)), say("It was paid."))
    async with App(agents=[Agent(model, name="shop", tools=[charge])]) as app:
        app.inbound_hooks.add(
            InboundHook(
                name="payments",
                scheme="standard",
                secrets=(SECRET,),
                action="complete",
                token="data.reference",
                value="data.status",
            )
        )
        turn = await app.chat("order-17").send("Charge 40 euros.")
        data = {"reference": await created.get(), "status": "paid"}
        body = json.dumps({"data": data}).encode()
        headers = sign_delivery("standard", SECRET, "evt_1", int(time.time()), body)
        receipt = await app.inbound_hooks.receive("payments", headers, body)
        print(receipt.outcome, "-", (await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
