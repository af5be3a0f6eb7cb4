import asyncio

from everturn import Chat, Turn, tool
from everturn.events import CallStarted
from everturn.testing import ScriptedModel, call, calls, say

may_finish = asyncio.Event()


@tool(read_only=True)
async def ponder() -> str:
    """Think for a long time."""
    await may_finish.wait()
    return "thought"


async def begun(turn: Turn) -> None:
    async for event in turn:
        if isinstance(event, CallStarted):
            return


async def main() -> None:
    model = ScriptedModel(calls(call("ponder")), say("I have thought."), say("Lunch."))
    async with Chat(model, tools=[ponder]) as chat:
        slow = await chat.send("Hm?")
        await begun(slow)
        question, _ = await chat.messages()

        quick = await chat.rerun(question.id)  # another branch: runs immediately
        queued = await chat.send("And then?")  # a busy branch: queued
        await begun(quick)
        print("at once:", (await slow.state()).phase, (await quick.state()).phase)
        print("in the inbox:", len(await chat.app.store.inbox(chat.session)))

        may_finish.set()
        for turn in (slow, quick, queued):
            print((await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
