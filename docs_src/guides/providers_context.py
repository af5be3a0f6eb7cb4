import asyncio

from everturn import Agent, ContextPart, TextPart
from everturn.models import Model
from everturn.testing import ScriptedModel, say


# --8<-- [start:shown]
async def ask(model: Model | str, selected: str) -> None:
    source = "https://example.com/locks"
    context = ContextPart("selection", selected, title="Locks", source=source)
    agent = Agent(model)
    result = await agent.run([TextPart("What does this mean?"), context])
    print(result.output)


# --8<-- [end:shown]


async def main() -> None:
    model = ScriptedModel(say("Boats are lifted in steps."))
    await ask(model, "A flight of five locks.")
    print("The model received:")
    for part in model.requests[0].messages[0].parts:
        text = getattr(part, "text", "").replace(",", ",\n    ")
        print(f"  {type(part).__name__}: {text}")


if __name__ == "__main__":
    asyncio.run(main())
