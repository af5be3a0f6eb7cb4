"""A person reviews an article before it is published: two processes, days apart."""

import sys
from pathlib import Path

from everturn import Agent, App, tool


@tool(approval="ask")
def publish(text: str) -> str:
    """Publish an article."""
    with Path("published.txt").open("a") as file:
        print(text, file=file)
    return "published"


writer = Agent(
    "openai:gpt-5.2", name="writer", instructions="Write and publish.", tools=[publish]
)
app = App(agents=[writer], store="articles.db")
result = app.run_sync(writer, "Write about tea.", session="tea", key="tea")
if sys.argv[1] == "start":
    print(result.gates[0].arguments)
else:
    result.gates[0].approve_sync()
    print(result.resume_sync().output)
