import asyncio

from aiohttp import web
from standardwebhooks import Webhook  # pip install standardwebhooks

from everturn import Agent, App
from everturn.testing import ScriptedModel, say

secret = ""
received = asyncio.Event()


async def receive(request: web.Request) -> web.Response:
    """The receiver: any web framework will do."""
    event = Webhook(secret).verify(await request.read(), dict(request.headers))
    print(event["type"], "in session", event["data"]["session"])
    received.set()
    return web.Response(status=204)


async def main() -> None:
    global secret
    server = web.Application()
    server.router.add_post("/hook", receive)
    runner = web.AppRunner(server)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]

    support = Agent(ScriptedModel(say("It is on its way.")), name="support")
    async with App(agents=[support]) as app:
        app.webhooks.allow(f"127.0.0.1:{port}")  # public https needs no exception
        url = f"http://127.0.0.1:{port}/hook"
        webhook = await app.webhooks.create(url, ["turn.completed", "gate.opened"])
        secret = webhook.secret  # whsec_…, shown only now
        await app.chat("order-17").run("Where is my order?")
        await received.wait()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
