import asyncio
from collections.abc import AsyncIterator, Sequence

from everturn import Agent, App, tool
from everturn.core.chunks import Chunk
from everturn.core.requests import ModelRequest
from everturn.evals import Case, Dataset, EvalChange, evaluate
from everturn.replay import Recording
from everturn.testing import ScriptedModel, call, calls, say

LONG = "You refund orders. Look up the order, then refund its price."
SHORT = "You refund orders. Be brief."
paid: list[int] = []


@tool(read_only=True)
async def find_order(number: str) -> str:
    """Look up an order."""
    return f"order {number}: a lamp for 40"


@tool
async def refund(number: str, cents: int) -> str:
    """Refund an order."""
    paid.append(cents)
    return f"refunded {cents}"


TOOLS = [find_order, refund]
LOOKS_UP = ScriptedModel(
    calls(call("find_order", number="4512")),
    calls(call("refund", number="4512", cents=40)),
    say("I refunded 40."),
)
BELIEVES = ScriptedModel(
    calls(call("refund", number="4512", cents=400)),
    say("I refunded 400."),
)


class StandIn:
    """A stand-in for a model: it looks up the order only if it is told to."""

    name = "stand-in"

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        model = LOOKS_UP if "Look up the order" in request.system else BELIEVES
        return model.stream(request)


async def record() -> Recording:
    desk = Agent(StandIn(), name="desk", instructions=LONG, tools=TOOLS)
    async with App(agents=[desk]) as app:
        await app.run(desk, "Refund order 4512, it was 400", session="refund")
        return await Recording.from_session(app.store, "refund")


async def main() -> None:
    dataset = Dataset("refunds", [Case("refund", await record())])
    print("paid while it was recorded:", paid)
    for instructions in (LONG, SHORT):
        report = await evaluate(
            dataset,
            depth="turn",
            model=StandIn(),
            tools=TOOLS,
            change=EvalChange(system=instructions),
        )
        [case] = report.cases
        print(f"{case.status}, exit code {report.exit_code}: {instructions}")
        if divergence := case.samples[0].divergence:
            print(f"  {divergence.reason}")
            print(f"  recorded {divergence.recorded}")
            print(f"  now      {divergence.call}")
    print("paid by the evaluations:", paid[1:])


if __name__ == "__main__":
    asyncio.run(main())
