"""openai-agents: `Runner.run_streamed()` on its chat completions model, tracing off."""
# pyright: reportMissingImports=false

from collections.abc import Callable, Sequence
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI
from toolbox import TOOLS

DISTRIBUTION = "openai-agents"
Messages = list[dict[str, Any]]


class Adapter:
    def __init__(self, base: str, model: str, tools: Sequence[str], history: Messages) -> None:
        client = AsyncOpenAI(base_url=base, api_key="none", timeout=600, max_retries=0)
        chat = OpenAIChatCompletionsModel(model=model, openai_client=client)
        self.agent = Agent(name="peer", model=chat, tools=[function_tool(TOOLS[name]) for name in tools])
        self.config = RunConfig(tracing_disabled=True)
        self.history = history

    async def new(self) -> Messages:
        return list(self.history)

    async def turn(self, messages: Messages, on_text: Callable[[str], None]) -> None:
        messages.append({"role": "user", "content": "go"})
        result = Runner.run_streamed(self.agent, messages, run_config=self.config)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                on_text(event.data.delta)
