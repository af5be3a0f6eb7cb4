"""A person reviews an article before it is published: two processes, days apart."""

import sys
from pathlib import Path

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
)

writer = Agent(
    "openai:gpt-5.2",
    instructions="Write and publish.",
    output_type=[str, DeferredToolRequests],
)


@writer.tool_plain(requires_approval=True)
def publish(text: str) -> str:
    """Publish an article."""
    with Path("published.txt").open("a") as file:
        print(text, file=file)
    return "published"


history = Path("article.json")
if sys.argv[1] == "start":
    result = writer.run_sync("Write about tea.")
    history.write_bytes(result.all_messages_json())
    print(result.output.approvals[0].args)
else:
    messages = ModelMessagesTypeAdapter.validate_json(history.read_bytes())
    results = DeferredToolResults(
        approvals={call.tool_call_id: True for call in messages[-1].tool_calls}
    )
    print(
        writer.run_sync(message_history=messages, deferred_tool_results=results).output
    )
