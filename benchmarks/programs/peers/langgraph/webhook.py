"""A report that takes hours: another system makes it, and says so to a webhook, in another process."""

import json
import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt


def start_job(month: str, token: str) -> None:
    Path("job.txt").write_text(token)


@tool
def report(month: str) -> str:
    """Make the report of a month."""
    return f"{interrupt(month)['rows']} rows"


config = {"configurable": {"thread_id": "may"}}
with SqliteSaver.from_conn_string("reports.db") as checkpointer:
    clerk = create_agent("openai:gpt-5.2", tools=[report], checkpointer=checkpointer)
    if sys.argv[1] == "start":
        message = {"role": "user", "content": "How long is the report of May?"}
        result = clerk.invoke({"messages": [message]}, config)
        for waiting in result["__interrupt__"]:
            start_job(waiting.value, waiting.id)
        print("waiting")
    else:
        answer = {sys.argv[2]: json.loads(sys.argv[3])}
        print(clerk.invoke(Command(resume=answer), config)["messages"][-1].text)
