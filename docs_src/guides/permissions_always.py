import asyncio

from everturn import Chat, TurnSuspended, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="ask", subjects={"url": "url"})
async def fetch(url: str) -> str:
    """Read a page."""
    return f"read {url}"


@tool(approval="always")
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def page(name: str) -> str:
    return f"https://example.org/{name}"


model = ScriptedModel(
    calls(
        call("fetch", url=page("a")),
        call("fetch", url=page("b")),
        call("pay", amount=5),
    ),
    say("Read."),
    calls(call("fetch", url=page("c"))),
    say("Read again."),
)


async def main() -> None:
    async with Chat(model, tools=[fetch, pay]) as chat:
        turn = await chat.send("Read the pages, and pay for them")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                first, *_, last = await chat.gates()
                for offer in first.offers:
                    print("offers:", offer)
                print("offers:", last.offers, "because", last.why)
                # The narrow one is allow="always"; this is the wide one.
                await turn.answer(first, allow=first.offers[1])
                await turn.answer(last, allow="once")
        print((await turn).text)

        print((await (await chat.send("And c?"))).text)  # nobody was asked

        (grant,) = await chat.grants()
        print("holds: ", grant.rule)
        await chat.revoke(grant)
        print("left:  ", await chat.grants())


if __name__ == "__main__":
    asyncio.run(main())
