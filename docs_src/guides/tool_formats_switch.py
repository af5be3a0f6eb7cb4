import asyncio

from everturn import Chat, get_model, tool
from everturn.core.ports import Model
from everturn.testing.provider import Call, Provider, Say


@tool(read_only=True)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


# --8<-- [start:shown]
async def talk(model: Model | str) -> None:
    async with Chat(model, tools=[add]) as chat:
        await (await chat.send("1 + 2?", params={"tool_format": "blocks"}))
        await (await chat.send("3 + 4?", params={"tool_format": "xml"}))
        await (await chat.send("5 + 6?", params={"tool_format": "native"}))
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
        print("\nThe first call, as it was told in each turn:")
        for seen in (provider.seen[1], provider.seen[3], provider.seen[5]):
            told = [one for one in seen.body["messages"] if one["role"] == "assistant"]
            print(told[0].get("content") or told[0]["tool_calls"][0]["function"])


if __name__ == "__main__":
    asyncio.run(main())
