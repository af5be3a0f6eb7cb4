import asyncio
from typing import Any

from msgspec.structs import replace

from everturn import Agent, TextPart, get_model
from everturn.events import ProviderToolPart
from everturn.models import Model
from everturn.models.vendors import VENDORS
from everturn.testing.provider import Cite, Finish, HostedTool, Provider, Say
from everturn.tools import provider_tool


async def ask(model: Model | str, question: str) -> None:
    search = provider_tool(
        "web_search",
        approval="auto",
        anthropic={"max_uses": 3},
        openai={"search_context_size": "low"},
    )
    agent = Agent(model, tools=[search])
    result = await agent.run(question)
    print(result.output)
    for part in result.messages[-1].parts:
        if isinstance(part, ProviderToolPart):
            print(f"{part.name} {part.title}: {part.state}")
        if isinstance(part, TextPart):
            for citation in part.citations:
                cited = part.text[citation.start : citation.end]
                print(f"{cited!r} is from {citation.title}, {citation.source}")
    print(f"calls of the provider: {result.usage.provider_calls}")


async def main() -> None:
    url = "https://example.com/locks"
    search: Any = HostedTool("web_search", '{"query": "canal locks"}', url)
    steps = [
        # The provider pauses amid its search; the next step continues there.
        [replace(search, part="call"), Finish("paused")],
        [
            replace(search, part="result"),
            Say("In short: "),
            Cite("boats are lifted in steps.", url, "Locks"),
        ],
    ]
    async with Provider() as provider:
        provider.script("claude", steps, sequence=True)
        profile = replace(VENDORS["anthropic"], base_url=f"{provider.url}/v1")
        await ask(get_model("anthropic:claude", profile=profile, key="k"), "Locks?")
        assert not provider.refusals


if __name__ == "__main__":
    asyncio.run(main())
