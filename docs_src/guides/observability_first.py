import asyncio
import json

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from everturn import Chat, telemetry, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


exporter = InMemorySpanExporter()  # use an exporter to your collector here
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))


async def main() -> None:
    # Once, before the first Chat or App.
    telemetry.instrument(tracer_provider=provider, content=True)
    model = ScriptedModel(calls(call("weather", city="Oslo")), say("It is sunny."))
    async with Chat(model, tools=[weather], system="Be brief.") as chat:
        with provider.get_tracer("shop").start_as_current_span("POST /ask"):
            await (await chat.send("How is the weather in Oslo?"))
    telemetry.uninstrument()  # only needed in tests

    finished = exporter.get_finished_spans()
    spans = {span.context.span_id: span for span in finished if span.context}
    for span in sorted(finished, key=lambda span: span.start_time or 0):
        parent = spans[span.parent.span_id].name if span.parent else "nobody"
        print(f"{span.name}, below {parent}")
    last = [span for span in finished if span.name.startswith("chat")][-1]
    request = (last.attributes or {})["gen_ai.input.messages"]
    for message in json.loads(str(request)):
        print(message["role"], *(part["type"] for part in message["parts"]))


if __name__ == "__main__":
    asyncio.run(main())
