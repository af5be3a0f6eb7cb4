import asyncio

from everturn import Chat, Runtime, TextDelta, tool
from everturn.cluster import Cluster
from everturn.core.ports import Bus, Engine
from everturn.core.store_ports import Store
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def stock(article: str) -> str:
    """Say how many of an article there are."""
    return f"7 of {article}"


def make(*, store: Store, bus: Bus, engine: Engine) -> Runtime:
    # A script here; "anthropic:claude-opus-5", say, in a real shop.
    looks = calls(call("stock", article="cups"))
    model = ScriptedModel(looks, say("There are seven cups."))
    return Runtime(model, tools=[stock], store=store, bus=bus, engine=engine)


async def ask(cluster: Cluster, session: str) -> None:
    async with cluster.join(make) as runtime:  # no `listen`: it sends and reads
        chat = Chat("", runtime=runtime, session=session)  # "" is the runtime's model
        turn = await chat.send("How many cups are left?", key="cups")
        async for event in turn:
            if isinstance(event, TextDelta):
                print(event.text)
        print((await turn).phase)


if __name__ == "__main__":
    asyncio.run(ask(Cluster(), "cups"))
