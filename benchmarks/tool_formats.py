"""How often a small real model manages a tool call: in each tool_format, held to the form by its server and free.

    python benchmarks/tool_formats.py --tries 50 [--choice required|auto] [--only json]

It starts llama.cpp with SmolLM2-135M (`scripts/local-model`) on a port of its own. A try is a whole turn through `Chat`:
the question names a city, the first step should call `get_weather` with it, the second should answer in words. What is
counted: a call was made; it ran (its form and arguments were right); it ran for the city that was asked for; and the turn
ended with words after that, which is success.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path

from everturn import Chat, RunResult, TurnError, get_model, tool
from everturn.core.hooks import RequestContext
from everturn.core.parts import ToolPart

HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn-local-model"
SERVE = Path(__file__).parent.parent / "tests/live/serve_model.py"
CITIES = ("Paris", "London", "Rome", "Berlin", "Madrid", "Tokyo", "Cairo", "Oslo", "Lima", "Vienna")
TOOL_FORMATS = ("json", "xml", "blocks")
COUNTED = ("called", "ran", "right", "success")


@tool(read_only=True)
async def get_weather(city: str) -> str:
    """Get the weather in a city."""
    return f"It is 21 degrees and sunny in {city}."


class CallThenAnswer:
    """The first step may, or must, call; the second answers."""

    name = "call_then_answer"

    def __init__(self, choice: str) -> None:
        self._choice = choice

    def on_params(self, ctx: RequestContext) -> None:
        """Say what this step is for."""
        ctx.params["tool_choice"] = self._choice if ctx.step == 1 else "none"


@contextlib.asynccontextmanager
async def served() -> AsyncGenerator[str]:
    """The model, on a port of its own."""
    python = HOME / "bin/python"
    if not python.exists():
        sys.exit("there is no local model: run scripts/local-model")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = await asyncio.create_subprocess_exec(python, SERVE, str(port), stdout=-1, stderr=-3)
    try:
        assert server.stdout is not None
        await server.stdout.readline()
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        await server.wait()


def judge(result: RunResult, city: str) -> list[str]:
    """What a turn came to."""
    calls = [part for part in (result.message.parts if result.message else ()) if isinstance(part, ToolPart)]
    ran = [call for call in calls if call.state == "completed"]
    right = any(call.output is not None and city in call.output.text for call in ran)
    return [
        name
        for name, is_met in zip(COUNTED, (bool(calls), bool(ran), right, right and bool(result.text)), strict=True)
        if is_met
    ]


async def try_one(url: str, tool_format: str, bind: bool, choice: str, number: int) -> list[str]:
    """One turn."""
    city = CITIES[number % len(CITIES)]
    params = {
        "seed": number,
        "temperature": 0.7,
        "max_tokens": 64,
        "parallel_tool_calls": False,
        "constrained_decoding": bind,
    }
    model = get_model("llamacpp:smollm2", base_url=url, tool_format=tool_format)
    plugin = CallThenAnswer(choice)
    async with Chat(model, tools=[get_weather], plugins=[plugin], system="You are brief.") as chat:
        try:
            return judge(await (await chat.send(f"What is the weather in {city}?", params=params, max_steps=2)), city)
        except TurnError as error:
            return [f"error: {error.kind}"]


async def main() -> None:
    """Try, and print a table."""
    options = argparse.ArgumentParser()
    options.add_argument("--tries", type=int, default=50)
    options.add_argument("--choice", default="required", choices=("required", "auto"))
    options.add_argument("--only", default="", choices=("", *TOOL_FORMATS))
    chosen = options.parse_args()
    print(f"| tool_format | form | {' | '.join(COUNTED)} | other | s/try |\n|---|---|{'---|' * 6}", flush=True)
    async with served() as url:
        for tool_format in (chosen.only,) if chosen.only else TOOL_FORMATS:
            for bind in (True, False):
                begun, seen = time.perf_counter(), Counter[str]()
                for number in range(chosen.tries):
                    seen.update(await try_one(url, tool_format, bind, chosen.choice, number))
                took = (time.perf_counter() - begun) / chosen.tries
                others = ", ".join(f"{seen[name]} × {name}" for name in seen if name not in COUNTED)
                counts = " | ".join(f"{seen[name]}/{chosen.tries}" for name in COUNTED)
                print(
                    f"| {tool_format} | {'bound' if bind else 'free'} | {counts} | {others} | {took:.1f} |", flush=True
                )


if __name__ == "__main__":
    asyncio.run(main())
