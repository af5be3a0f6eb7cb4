"""The loop of the bare clients: plain dicts, no validation, nothing kept. They differ only in how they `stream`."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from toolbox import TOOLS, specs

Messages = list[dict[str, Any]]


class ByHand:
    def __init__(self, base: str, model: str, tools: Sequence[str], history: Messages) -> None:
        self.url, self.history = base + "/chat/completions", history
        self.fixed: dict[str, Any] = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
        if tools:
            self.fixed["tools"] = specs(tools)

    async def new(self) -> Messages:
        return list(self.history)

    def stream(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The decoded chunks of one answer."""
        raise NotImplementedError

    async def turn(self, messages: Messages, on_text: Callable[[str], None]) -> None:
        messages.append({"role": "user", "content": "go"})
        while True:
            text: list[str] = []
            calls: dict[int, tuple[str, str, list[str]]] = {}
            async for chunk in self.stream({**self.fixed, "messages": messages}):
                for choice in chunk["choices"]:
                    delta = choice["delta"]
                    if piece := delta.get("content"):
                        text.append(piece)
                        on_text(piece)
                    for call in delta.get("tool_calls") or ():
                        function = call["function"]
                        if call["index"] not in calls:
                            calls[call["index"]] = (call["id"], function["name"], [])
                        calls[call["index"]][2].append(function["arguments"])
            if not await go_on(messages, text, calls):
                return


async def go_on(messages: Messages, text: list[str], calls: dict[int, tuple[str, str, list[str]]]) -> bool:
    """Add the answer and the results of its calls; whether the model has to be asked again."""
    assembled = [(id, name, "".join(pieces)) for id, name, pieces in calls.values()]
    answer: dict[str, Any] = {"role": "assistant", "content": "".join(text) or None}
    if assembled:
        answer["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in assembled
        ]
    messages.append(answer)
    results = await asyncio.gather(*(TOOLS[name](**json.loads(arguments)) for _, name, arguments in assembled))
    messages += [
        {"role": "tool", "tool_call_id": id, "content": result}
        for (id, _, _), result in zip(assembled, results, strict=True)
    ]
    return bool(assembled)
