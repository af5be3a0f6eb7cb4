import asyncio

from everturn import Chat, get_model
from everturn.core.ports import Model
from everturn.testing.provider import Provider, Say, Think


# --8<-- [start:shown]
async def talk(one: Model | str, other: Model | str) -> None:
    thinks = {"thinking": {"type": "adaptive"}}
    async with Chat(one) as chat:
        await (await chat.send("Is 91 prime?", params=thinks))
        await (await chat.send("Are you sure?", model=other))  # only this turn
        await (await chat.send("And 97?", params=thinks))  # the chat's own again
        last = (await chat.messages())[-1]
        await (await chat.rerun(last, model=other))  # a version beside it
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
        print("The seal of the thought went to:")
        for seen in provider.seen[1:]:
            print(f"  {seen.model}: {'sig-' in str(seen.body)}")


if __name__ == "__main__":
    asyncio.run(main())
