"""A report that takes hours: another system makes it, and says so to a webhook, in another process."""

import json
import sys
from pathlib import Path

from pydantic_ai import (
    Agent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
    RunContext,
)

clerk = Agent("openai:gpt-5.2", output_type=[str, DeferredToolRequests])


def start_job(month: str, token: str) -> None:
    Path("job.txt").write_text(token)


@clerk.tool
async def report(ctx: RunContext, month: str) -> str:
    """Make the report of a month."""
    start_job(month, ctx.tool_call_id)
    raise CallDeferred


history = Path("report.json")
if sys.argv[1] == "start":
    result = clerk.run_sync("How long is the report of May?")
    history.write_bytes(result.all_messages_json())
    print(
        "waiting" if isinstance(result.output, DeferredToolRequests) else result.output
    )
else:
    messages = ModelMessagesTypeAdapter.validate_json(history.read_bytes())
    rows = json.loads(sys.argv[3])["rows"]
    results = DeferredToolResults(calls={sys.argv[2]: f"{rows} rows"})
    print(
        clerk.run_sync(message_history=messages, deferred_tool_results=results).output
    )
