import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import App, Chat, TurnError, TurnOptions, tool
from everturn.events import ToolPart, TurnSuspended
from everturn.testing import FakeClock, ScriptedModel, call, calls, say

DAY = 24 * 3600.0


@tool(approval="always")
async def pay(amount: int) -> str:
    """Pay the rent."""
    return f"paid {amount}"


def app_at(now: float, file: Path) -> App:
    model = ScriptedModel(calls(call("pay", amount=900)), say("Then not."))
    return App(model, tools=[pay], store=str(file), clock=FakeClock(now))


async def a_day_later(file: Path, session: str, options: TurnOptions) -> None:
    before = app_at(0, file)
    async with Chat("", app=before, session=session, options=options) as chat:
        turn = await chat.send("Pay the rent", key="May")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                break
    # A day later, another process starts.
    after = app_at(DAY, file)
    async with Chat("", app=after, session=session, options=options) as chat:
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
