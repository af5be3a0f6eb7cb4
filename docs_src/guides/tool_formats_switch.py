import asyncio

from everturn import Agent, App, get_model, tool
from everturn.models import Model
from everturn.testing.provider import Call, Provider, Say


@tool(read_only=True)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


# --8<-- [start:shown]
async def talk(model: Model | str) -> None:
    calculator = Agent(model, name="calculator", tools=[add])
    async with App(agents=[calculator]) as app:
        chat = app.chat(agent=calculator)
        await chat.run("1 + 2?", params={"tool_format": "blocks"})
        await chat.run("3 + 4?", params={"tool_format": "xml"})
        await chat.run("5 + 6?", params={"tool_format": "native"})
        for message in await chat.messages():
            print(f"{message.role}: {message.text}")


# --8<-- [end:shown]

BLOCK = "=== call add ===\na = 1\nb = 2\n=== end ==="
TAGS = '<tool_code>{"name": "add", "arguments": {"a": 3, "b": 4}}</tool_code>'


async def main() -> None:
    async with Provider() as provider:
        answers = [
            *([Say(BLOCK)], [Say("That is 3.")]),
            *([Say(TAGS)], [Say("That is 7.")]),
            *([Call("add", '{"a": 5, "b": 6}')], [Say("That is 11.")]),
        ]
        provider.script("small-1", answers, sequence=True)
        model = get_model("small-1", base_url=f"{provider.url}/v1", tool_format="json")
        await talk(model)
        print("\nThe first call, as each turn sent it to the model:")
        for seen in (provider.seen[1], provider.seen[3], provider.seen[5]):
            messages = seen.body["messages"]
            first = next(item for item in messages if item["role"] == "assistant")
            print(first.get("content") or first["tool_calls"][0]["function"])


if __name__ == "__main__":
    asyncio.run(main())
