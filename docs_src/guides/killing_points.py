import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat, failpoints, tool
from everturn.testing import ScriptedModel, call, calls, say
from everturn.testing.chaos import FaultPlan


@tool()
async def pay(amount: int) -> str:
    """Pay the rent."""
    return f"paid {amount}"


async def main() -> None:
    with TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        plan = {"log.*": {"do": "trace", "file": str(trace)}}
        failpoints.install_plan(FaultPlan.parse(json.dumps(plan)))
        model = ScriptedModel(calls(call("pay", amount=900)), say("Paid."))
        async with Chat(model, tools=[pay]) as chat:
            await (await chat.send("Pay the rent"))
        failpoints.install_plan(None)
        for point in dict.fromkeys(trace.read_text(encoding="utf-8").split()):
            print(point)


if __name__ == "__main__":
    asyncio.run(main())
