import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat, Runtime, TurnError, TurnOptions, TurnSuspended, tool
from everturn.core.parts import ToolPart
from everturn.testing import FakeClock, ScriptedModel, call, calls, say

DAY = 24 * 3600.0


@tool(approval="always")
async def pay(amount: int) -> str:
    """Pay the rent."""
    return f"paid {amount}"


def runtime_at(now: float, file: Path) -> Runtime:
    model = ScriptedModel(calls(call("pay", amount=900)), say("Then not."))
    return Runtime(model, tools=[pay], store=str(file), clock=FakeClock(now))


async def a_day_later(file: Path, session: str, options: TurnOptions) -> None:
    before = runtime_at(0, file)
    async with Chat("", runtime=before, session=session, options=options) as chat:
        turn = await chat.send("Pay the rent", key="May")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                break
    # Nothing runs for a day, and then another process starts.
    after = runtime_at(DAY, file)
    async with Chat("", runtime=after, session=session, options=options) as chat:
        try:
            result = await (await chat.send("Pay the rent", key="May"))
        except TurnError as error:
            print(f"{error.kind}: {error}")
        else:
            (part,) = [p for p in result.messages[-1].parts if isinstance(p, ToolPart)]
            print(part.state, "-", part.output.text if part.output else "")
            print(result.text)


async def main() -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "talks.db"
        await a_day_later(file, "gate", TurnOptions(gate_timeout=3600))
        await a_day_later(file, "turn", TurnOptions(timeout=3600))


if __name__ == "__main__":
    asyncio.run(main())
