"""langchain's `create_agent` on langgraph with ChatOpenAI: `astream(stream_mode="messages")`."""
# pyright: reportMissingImports=false

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_openai import ChatOpenAI
from toolbox import TOOLS

DISTRIBUTION = "langgraph"


class Adapter:
    def __init__(self, base: str, model: str, tools: Sequence[str], history: list[dict[str, Any]]) -> None:
        chat = ChatOpenAI(model=model, base_url=base, api_key="none", timeout=600, max_retries=0, stream_usage=True)
        self.agent = create_agent(chat, [TOOLS[name] for name in tools])
        kinds = {"user": HumanMessage, "assistant": AIMessage}
        self.history = [kinds[message["role"]](message["content"]) for message in history]

    async def new(self) -> list[Any]:
        return list(self.history)

    async def turn(self, messages: list[Any], on_text: Callable[[str], None]) -> None:
        state = {"messages": [*messages, HumanMessage("go")]}
        async for chunk, _ in self.agent.astream(state, stream_mode="messages"):
            if isinstance(chunk, AIMessageChunk) and chunk.content:
                on_text(chunk.content)
