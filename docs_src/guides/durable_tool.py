import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import App, Chat, ToolContext, tool
from everturn.events import CallFinished, TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say

requests: list[str] = []  # the callback tokens that the carrier received


def charge(order: int) -> dict[str, int]:
    print("charged for order", order)
    return {"receipt": 77}


async def request_delivery(token: str) -> None:
    requests.append(token)  # or: tell the carrier to call /api/callbacks/{token}


@tool(resumable=True)
async def ship(ctx: ToolContext, order: int) -> str:
    """Charge for an order and ship it."""
    payment = await ctx.step("charge", charge, order)  # runs once, even after a crash
    await ctx.sleep(0.05)  # or hours=3: uses no memory while it waits
    parcel = await ctx.external(timeout=86_400)
    await ctx.step("request", request_delivery, parcel.token)
    return f"receipt {payment['receipt']}, parcel {await parcel.result()}"


def open_app(file: Path) -> tuple[App, Chat]:
    model = ScriptedModel(calls(call("ship", order=4512)), say("It is on its way."))
    app = App(model, tools=[ship], store=str(file))
    return app, Chat(model, session="orders", app=app)


async def main() -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "talks.db"
        app, chat = open_app(file)
        async with chat:
            async for event in await chat.send("Ship order 4512", key="order 4512"):
                if isinstance(event, TurnSuspended) and requests:
                    break  # the tool waits for the carrier; this process may end
        app, chat = open_app(file)
        async with chat:
            await app.complete(requests[0], "P-1")  # or POST /api/callbacks/{token}
            turn = await chat.send("Ship order 4512", key="order 4512")
            async for event in turn:
                if isinstance(event, CallFinished):
                    print(event.output.text)
            print((await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
