"""A question → what to take along, from a model that has never heard of tool calls and is held to a form by its server.

python weather.py "What is the weather in Paris?"                                      offline
python weather.py "What is the weather in Paris?" --url http://127.0.0.1:8080/v1       with a llama.cpp server
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

import offline

from everturn import Chat, EverturnError, get_model, tool
from everturn.events import CallFinished
from everturn.plugins import RequestContext

SYSTEM = "You are brief. Look up the weather of the city that is asked about."
SKIES = {"paris": "21 degrees and sunny", "oslo": "4 degrees and snow", "lima": "17 degrees and rain"}
ANSWER = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "take": {"enum": ["sunglasses", "umbrella", "coat"]}},
    "required": ["city", "take"],
    "additionalProperties": False,
}
PARAMS = {"temperature": 0, "max_tokens": 48, "parallel_tool_calls": False}


@tool(read_only=True)
async def get_weather(city: str) -> str:
    """Get the weather in a city."""
    return f"It is {SKIES.get(city.lower(), '12 degrees and windy')} in {city}."


class CallThenAnswer:
    """One call, then one answer of a form: a model this small would do the one or the other for ever."""

    name = "call_then_answer"

    def on_params(self, ctx: RequestContext) -> None:
        """Say before each request what it may be: held to it, the model can write nothing else."""
        if ctx.step == 1:
            ctx.params["tool_choice"] = "required"
        else:
            ctx.params["tool_choice"], ctx.params["output_schema"] = "none", ANSWER


def open_chat(url: str, store: str) -> Chat:
    """The tool_format is all that is different from a chat with any other model."""
    model = get_model("llamacpp:smollm2", base_url=url, tool_format="json") if url else offline.model()
    return Chat(
        model, system=SYSTEM, tools=[get_weather], plugins=[CallThenAnswer()], store=store or None, session="weather"
    )


async def ask(question: str, url: str, store: str) -> dict[str, str]:
    """Ask, show what the tool was called for, and read the answer as what it is bound to be."""
    async with open_chat(url, store) as chat:
        turn = await chat.send(question, params=PARAMS, max_steps=2)
        async for event in turn:
            if isinstance(event, CallFinished):
                print(f"[get_weather: {event.output.text}]")
        return json.loads((await turn).text)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Ask a very small model what to take along.")
    parser.add_argument("question")
    parser.add_argument("--url", default="", help="where llama.cpp serves, with /v1; offline unless said")
    parser.add_argument("--store", default="", help="a file to keep the conversation in, such as talks.db")
    options = parser.parse_args()
    try:
        answer = asyncio.run(ask(options.question, options.url, options.store))
    except (EverturnError, ValueError) as error:
        print(f"weather: {error}", file=sys.stderr)
        return 1
    print(f"In {answer['city']}, take: {answer['take']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
