"""A person reviews an article before it is published: two processes, days apart."""

import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command


@tool
def publish(text: str) -> str:
    """Publish an article."""
    with Path("published.txt").open("a") as file:
        print(text, file=file)
    return "published"


config = {"configurable": {"thread_id": "tea"}}
with SqliteSaver.from_conn_string("articles.db") as checkpointer:
    writer = create_agent(
        "openai:gpt-5.2",
        tools=[publish],
        system_prompt="Write and publish.",
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"publish": True})],
        checkpointer=checkpointer,
    )
    if sys.argv[1] == "start":
        message = {"role": "user", "content": "Write about tea."}
        result = writer.invoke({"messages": [message]}, config)
        print(result["__interrupt__"][0].value["action_requests"][0]["args"])
    else:
        result = writer.invoke(
            Command(resume={"decisions": [{"type": "approve"}]}), config
        )
        print(result["messages"][-1].text)
