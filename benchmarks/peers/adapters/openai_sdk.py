"""The openai SDK, `chat.completions.create(stream=True)`, in a loop written by hand."""
# pyright: reportMissingImports=false

from collections.abc import Callable, Sequence
from typing import Any

from openai import AsyncOpenAI

from .manual import ByHand, Messages, go_on

DISTRIBUTION = "openai"


class Adapter(ByHand):
    def __init__(self, base: str, model: str, tools: Sequence[str], history: Messages) -> None:
        super().__init__(base, model, tools, history)
        self.client: Any = AsyncOpenAI(base_url=base, api_key="none", timeout=600, max_retries=0)

    async def turn(self, messages: Messages, on_text: Callable[[str], None]) -> None:
        messages.append({"role": "user", "content": "go"})
        while True:
            text: list[str] = []
            calls: dict[int, Any] = {}
            async for chunk in await self.client.chat.completions.create(messages=messages, **self.fixed):
                for choice in chunk.choices:
                    delta = choice.delta
                    if delta.content:
                        text.append(delta.content)
                        on_text(delta.content)
                    for call in delta.tool_calls or ():
                        if call.index not in calls:
                            calls[call.index] = (call.id, call.function.name, [])
                        calls[call.index][2].append(call.function.arguments)
            if not await go_on(messages, text, calls):
                return
