"""A report that takes hours: another system makes it, and says so to a webhook, in another process."""

import json
import sys
from pathlib import Path

from everturn import Agent, App, ToolContext, tool


def start_job(month: str, token: str) -> None:
    Path("job.txt").write_text(token)


@tool(resumable=True)
async def report(ctx: ToolContext, month: str) -> str:
    """Make the report of a month."""
    job = await ctx.external(timeout=86_400)
    await ctx.step("start", start_job, month, job.token)
    return f"{(await job.result())['rows']} rows"


clerk = Agent("openai:gpt-5.2", name="clerk", tools=[report])
app = App(agents=[clerk], store="reports.db")
result = app.run_sync(
    clerk, "How long is the report of May?", session="may", key="may"
)
if sys.argv[1] == "start":
    print(result.status)
else:
    app.call_sync(app.complete(sys.argv[2], json.loads(sys.argv[3])))
    print(result.resume_sync().output)
