import asyncio

from everturn import Agent, App, handoff
from everturn.testing import ScriptedModel, call, calls, say

asks = ScriptedModel(calls(call("transfer_to_billing")), say(""), say("Hello again."))
bills = ScriptedModel(say(""), say("It costs 3 euros."), say("In 14 days."))

billing = Agent(bills, name="billing", instructions="You answer for bills.")
front = Agent(asks, name="front", tools=[handoff(billing)])


async def main() -> None:
    async with App(agents=[front]) as app:
        chat = app.chat("session-7", agent=front)
        print((await chat.run("What does it cost?")).output)
        print(await chat.agent())  # front handed the conversation over
        await chat.switch(front)  # a handoff by the person
        print((await chat.run("Hi!")).output)


if __name__ == "__main__":
    asyncio.run(main())
