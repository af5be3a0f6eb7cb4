import asyncio
from textwrap import shorten

from aiohttp import web

from everturn import Chat
from everturn.events import ToolPart
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import EgressPolicy, fetch_url

PAGE = "<h1>Menu</h1><ul><li>soup</li><li><a href='/cake'>cake</a></li></ul>"


async def answer(request: web.BaseRequest) -> web.Response:
    if request.path == "/old":
        raise web.HTTPFound("http://169.254.169.254/latest/meta-data/")
    return web.Response(text=PAGE, content_type="text/html")


async def main() -> None:
    server = web.Server(answer)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    site = f"http://127.0.0.1:{port}"
    model = ScriptedModel(
        calls(call("fetch_url", url=f"{site}/"), call("fetch_url", url=f"{site}/old")),
        say("There is soup."),
    )
    policy = EgressPolicy(allow=[f"127.0.0.1:{port}"])  # and public addresses
    async with Chat(model, tools=[fetch_url(policy, approval="auto")]) as chat:
        result = await (await chat.send("What is on the menu?"))
        for part in result.messages[-1].parts:
            if isinstance(part, ToolPart) and part.output is not None:
                print(f"{part.state}, untrusted: {part.output.untrusted}")
                for line in part.output.text.replace(str(port), "PORT").splitlines():
                    print(shorten(f"> {line}", 80, placeholder=" …"))
    listening.close()
    await server.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
