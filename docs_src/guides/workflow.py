import asyncio

from everturn import App, ToolContext
from everturn.testing import ScriptedModel, say

app = App(ScriptedModel(say("unused")), store="memory")  # or store="postgresql://…"


def charge_back(order: int) -> int:
    print("charged back order", order)
    return 77


@app.workflow
async def refund(ctx: ToolContext, order: int) -> dict[str, int]:
    receipt = await ctx.step("charge back", charge_back, order)
    await ctx.sleep(0.05)  # or days=1
    return {"order": order, "receipt": receipt}


async def main() -> None:
    run = await refund.start(4512, key="refund 4512")
    print(await run.result())
    again = await refund.start(4512, key="refund 4512")  # the same run
    print(await again.result())
    await app.aclose()


if __name__ == "__main__":
    asyncio.run(main())
