"""A report that takes hours: another system makes it, and says so to a webhook, in another process."""

import asyncio
import json
import sys
from pathlib import Path

from agents import Agent, RunContextWrapper, Runner, RunState, function_tool


def start_job(month: str, token: str) -> None:
    Path("job.txt").write_text(token)


@function_tool(needs_approval=True)
def report(ctx: RunContextWrapper, month: str) -> str:
    """Make the report of a month."""
    return f"{ctx.context['rows']} rows"


clerk = Agent(name="clerk", model="gpt-5.2", tools=[report])
saved = Path("report.json")


async def main() -> None:
    if sys.argv[1] == "start":
        result = await Runner.run(clerk, "How long is the report of May?")
        saved.write_text(result.to_state().to_string())
        for interruption in result.interruptions:
            call = interruption.raw_item
            start_job(json.loads(call.arguments)["month"], call.call_id)
        print("waiting")
    else:
        rows = json.loads(sys.argv[3])
        context = RunContextWrapper(rows)
        state = await RunState.from_string(
            clerk, saved.read_text(), context_override=context
        )
        for interruption in state.get_interruptions():
            if interruption.raw_item.call_id == sys.argv[2]:
                state.approve(interruption)
        print((await Runner.run(clerk, state)).final_output)


asyncio.run(main())
