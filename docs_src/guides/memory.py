import asyncio

from everturn import Agent, App
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import memory, recall

remember = call(
    "memory_create",
    path="/memories/preferences.md",
    file_text="Prefers trains to planes.\n",
)
look = call("memory_view", path="/memories/preferences.md")

model = ScriptedModel(calls(remember), say("I will remember that."))
other = ScriptedModel(calls(look), say("By train, as you prefer."))


async def main() -> None:
    travel = Agent(model, name="travel", tools=[memory(), recall(sessions=True)])
    planner = Agent(other, name="planner", tools=[memory(read_only=True)])
    async with App(agents=[travel, planner]) as app:
        result = await app.chat("monday", agent="travel").run("I prefer trains.")
        print(result.gates[0].gate.preview)  # the person sees the change first
        await result.gates[0].approve()
        print((await result.resume()).output)

        # Another session, another agent, the same person.
        result = await app.chat("friday", agent="planner").run("To Lisbon, please.")
        print(result.output)

        for info in await app.store.user_memory.files("local", ""):
            print(info.path, info.size)


if __name__ == "__main__":
    asyncio.run(main())
