import asyncio
import json
from typing import Any

from everturn import Agent, App, ToolGroup, TurnSettings, tool
from everturn.models import ModelRequest, RequestResult
from everturn.testing import ScriptedModel, call, calls, say

COUNTRIES = ["Chile", "France", "Japan", "Kenya", "Peru", "Spain"]


def sales_report(country: str) -> Any:
    async def read(year: int) -> str:
        return f"{country}, {year}: 42"

    return tool(
        read_only=True,
        name=f"sales_{country.lower()}",
        description=f"The sales of a year in {country}.",
    )(read)


reports = ToolGroup(
    "reports",
    [sales_report(country) for country in COUNTRIES],
    "Amounts are in thousands of euros.",
    on=True,
)
model = ScriptedModel(
    calls(call("find_tools", query="sales in Japan", limit=1)),
    calls(call("sales_japan", year=2025)),
    say("42,000 euros."),
)
agent = Agent(model, name="analyst", tools=[reports])
# 40 is the default; an application with a few tools does not need this line.
app = App(agents=[agent], settings=TurnSettings(tool_search_above=5))


def show(request: ModelRequest) -> None:
    print("offered:", ", ".join(spec.name for spec in request.tools))


async def main() -> None:
    async with app:
        result = await app.run(agent, "How much did we sell in Japan in 2025?")
    for request in model.requests:
        show(request)
    print(model.requests[0].system)
    [found] = model.requests[1].messages[-1].parts
    assert isinstance(found, RequestResult)
    print(json.dumps(json.loads(found.text), indent=2))
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
