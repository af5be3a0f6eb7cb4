import asyncio

from everturn import Agent, App, tool
from everturn.bus import Bus
from everturn.cluster import Cluster
from everturn.engine import Engine
from everturn.events import TextDelta
from everturn.stores import Store
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def stock(article: str) -> str:
    """Get the number of an article in stock."""
    return f"7 of {article}"


def make(*, store: Store, bus: Bus, engine: Engine) -> App:
    # Use "anthropic:claude-opus-5" or another model here.
    step = calls(call("stock", article="cups"))
    model = ScriptedModel(step, say("There are seven cups."))
    clerk = Agent(model, name="clerk", tools=[stock])
    return App(agents=[clerk], store=store, bus=bus, engine=engine)


async def ask(cluster: Cluster, session: str) -> None:
    async with cluster.join(make) as app:  # a client: it sends and reads
        chat = app.chat(session, agent="clerk")
        turn = await chat.send("How many cups are left?", key="cups")
        async for event in turn:
            if isinstance(event, TextDelta):
                print(event.text)
        print((await turn.result()).status)


if __name__ == "__main__":
    restate, nats = "http://127.0.0.1:8080", "nats://127.0.0.1:4222"
    asyncio.run(ask(Cluster(restate=restate, nats=nats), "cups"))
