"""What a long turn costs with a provider's prompt cache: compactions break it only when they are made, and pay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from everturn import App, tool
from everturn.core.chunks import Chunk, UsageChunk
from everturn.core.events import MessageAdded
from everturn.core.parts import ClearedPart, SummaryPart
from everturn.core.requests import ModelRequest
from everturn.models.profile import Origin
from everturn.models.vendors import VENDORS
from everturn.models.wire_formats import get_wire_format
from everturn.testing.provider.prompt_cache import PromptCache
from everturn.testing.provider.request_body import decode
from tests.helpers.window_model import WindowModel, counting, events_of, is_summary_request

PROFILE, ORIGIN = VENDORS["anthropic"].for_model("model"), Origin("anthropic", "model")
SUMMARY = "Goal: go on. " + "What was done and decided so far, in some sentences. " * 40


@tool(read_only=True)
def look(n: int) -> str:
    """Look at something."""
    return f"result {n} " + " ".join(f"line {n}.{line}: value {n * line % 97}" for line in range(80))


class CachedModel(WindowModel):
    """A model whose provider caches prompts, and says how much of each request it had cached."""

    def __init__(self, steps: int, window: int | None) -> None:
        super().__init__(counting(steps), lambda prompt: SUMMARY, window=window)
        self.cache, self.summary_cache = PromptCache(), PromptCache()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        body = decode("messages", get_wire_format("messages").build(request, PROFILE, ORIGIN).body)
        cache = self.summary_cache if is_summary_request(request) else self.cache
        async for batch in self.answer(request):
            written = next(chunk.usage.output for chunk in batch if isinstance(chunk, UsageChunk))
            usage = cache.count(body, written)
            yield [UsageChunk(usage) if isinstance(chunk, UsageChunk) else chunk for chunk in batch]

    async def answer(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Without a check in five wire formats at each step: that is for other tests."""
        async for batch in self.respond(request):
            yield batch

    @property
    def cost(self) -> float:
        return self.cache.cost + self.summary_cache.cost


async def count_to(steps: int, window: int | None, **how: Any) -> tuple[CachedModel, int]:
    """A turn with this many steps, and how many compactions it had."""
    model = CachedModel(steps, window)
    app = App(model, tools=[look])
    turn = await app.chat("s").send(f"count to {steps}", max_steps=steps + 5, **how)
    result = await turn.result()
    assert result.text == "done"
    rungs = [
        part
        for event in events_of(await app.store.events("s"), MessageAdded)
        for part in event.message.parts
        if isinstance(part, ClearedPart | SummaryPart)
    ]
    return model, len(rungs)


async def test_compactions_break_the_cache_once_each_and_cost_less_than_none() -> None:
    steps = 200
    alone, rungs = await count_to(steps, None, context="off")
    assert rungs == 0
    assert alone.cache.breaks == 0
    assert alone.cache.usage.cached >= 0.9 * alone.cache.usage.input
    managed, rungs = await count_to(steps, 32_000)
    assert rungs > 0
    assert managed.cache.breaks == rungs
    ratio = managed.cost / alone.cost
    print(
        f"\n{steps} steps: {rungs} rungs, {managed.cache.breaks} breaks, {managed.summary_cache.requests} summary requests; "
        f"cached {alone.cache.usage.cached / alone.cache.usage.input:.1%} without, "
        f"{managed.cache.usage.cached / managed.cache.usage.input:.1%} with; cost {ratio:.2f}"
    )
    assert ratio <= 0.6


async def test_a_prompt_cache_counts_whole_blocks_of_the_common_beginning() -> None:
    cache = PromptCache()
    body = {"system": "s" * 8192, "messages": []}
    first = cache.count(body)
    assert (first.cached, first.written) == (0, 2048)
    again = cache.count({**body, "messages": [{"role": "user", "content": "x" * 1024}]})
    assert (again.cached, again.written) == (2048, 256)
    other = cache.count({"system": "t" + "s" * 8191, "messages": []})
    assert (other.cached, other.written, cache.breaks) == (0, 2048, 1)
    assert cache.count({"system": "short"}).written == 0
