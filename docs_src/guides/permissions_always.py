import asyncio

from everturn import Agent, Always, App, tool
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
reader = Agent(model, name="reader", tools=[fetch, pay])


async def main() -> None:
    async with App(agents=[reader]) as app:
        chat = app.chat(agent=reader)
        result = await chat.run("Read the pages, and pay for them")
        first, _, payment = result.gates
        for offer in first.gate.offers:
            print("offered:", offer)
        print("offered:", payment.gate.offers, "because", payment.why)
        # approve(always=True) stores the first offer; this stores the second.
        await first.approve(always=Always(rule=first.gate.offers[1]))
        await payment.approve()
        print((await result.resume()).text)

        print((await chat.run("And c?")).text)  # the grant covers this call

        (grant,) = await chat.grants()
        print("grant: ", grant.rule)
        await chat.revoke(grant)
        print("grants:", await chat.grants())


if __name__ == "__main__":
    asyncio.run(main())
