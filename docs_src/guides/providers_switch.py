import asyncio

from everturn import Agent, App, get_model
from everturn.models import Model
from everturn.testing.provider import Provider, Say, Think


# --8<-- [start:shown]
async def talk(model: Model | str, other: Model | str) -> None:
    tutor = Agent(model, name="tutor", reasoning="high")
    async with App(agents=[tutor]) as app:
        chat = app.chat(agent=tutor)
        await chat.run("Is 91 prime?")
        await chat.run("Are you sure?", model=other)  # this turn only
        await chat.run("And 97?")  # the agent's own model again
        last = (await chat.messages())[-1]
        await (await chat.rerun(last, model=other))  # another version of it
        for message in await chat.messages():
            print(f"{message.by or 'you'}: {message.text}")


# --8<-- [end:shown]


async def main() -> None:
    async with Provider() as provider:
        answers = [[Think("7 times 13."), Say("No.")], [Say("Yes.")]]
        provider.script("claude-opus-5", answers, sequence=True)
        others = [[Say("Yes: 91 is 7 times 13.")], [Say("It is.")]]
        provider.script("gpt-5.2", others, sequence=True)
        url = f"{provider.url}/v1"
        claude = get_model("anthropic:claude-opus-5", base_url=url)
        await talk(claude, get_model("openai:gpt-5.2", base_url=url))
        print("The reasoning signature was sent to:")
        for seen in provider.seen[1:]:
            print(f"  {seen.model}: {'sig-' in str(seen.body)}")


if __name__ == "__main__":
    asyncio.run(main())
