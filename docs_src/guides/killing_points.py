import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat, faults, tool
from everturn.testing import ScriptedModel, call, calls, say
from everturn.testing.chaos import FaultPlan


@tool(effects="once")
async def pay(amount: int) -> str:
    """Pay the rent."""
    return f"paid {amount}"


async def main() -> None:
    with TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        plan = {"log.*": {"do": "trace", "file": str(trace)}}
        faults.install(FaultPlan.parse(json.dumps(plan)))
        model = ScriptedModel(calls(call("pay", amount=900)), say("Paid."))
        async with Chat(model, tools=[pay]) as chat:
            await (await chat.send("Pay the rent"))
        faults.install(None)
        for point in dict.fromkeys(trace.read_text(encoding="utf-8").split()):
            print(point)


if __name__ == "__main__":
    asyncio.run(main())
