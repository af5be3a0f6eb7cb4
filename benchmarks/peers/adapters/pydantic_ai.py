"""pydantic-ai: `Agent.iter()` and `node.stream()`, its cheapest documented way to see every event."""
# pyright: reportMissingImports=false

from collections.abc import Callable, Sequence
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai.agent import Agent
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from toolbox import TOOLS

DISTRIBUTION = "pydantic-ai-slim"


class Adapter:
    def __init__(self, base: str, model: str, tools: Sequence[str], history: list[dict[str, Any]]) -> None:
        client = AsyncOpenAI(base_url=base, api_key="none", timeout=600, max_retries=0)
        chat = OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client))
        self.agent = Agent(chat, tools=[TOOLS[name] for name in tools])
        self.history = [
            ModelRequest(parts=[UserPromptPart(message["content"])])
            if message["role"] == "user"
            else ModelResponse(parts=[TextPart(message["content"])])
            for message in history
        ]

    async def new(self) -> list[Any]:
        return list(self.history)

    async def turn(self, messages: list[Any], on_text: Callable[[str], None]) -> None:
        async with self.agent.iter("go", message_history=messages) as run:
            async for node in run:
                if not Agent.is_model_request_node(node):
                    continue
                async with node.stream(run.ctx) as events:
                    async for event in events:
                        if isinstance(event, PartDeltaEvent):
                            if isinstance(event.delta, TextPartDelta):
                                on_text(event.delta.content_delta)
                        elif isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                            on_text(event.part.content)
