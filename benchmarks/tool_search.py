"""Tool search with 500 tools: the tokens of the first request, and the queries that find their tool.

    python -m benchmarks.tool_search [--write]

For each wire format, and each format of prompted tool calling, a model is offered 500 tools in the shape of well-known MCP
servers (`tests/helpers/tool_catalogue.py`), once all at once and once deferred. It searches for a tool, calls what it has found,
and answers; a server that is strict about the format refuses a wrong request. Tokens are estimated from the bytes of the first
request, as a turn estimates them. `--write` writes the tables of the docs; the numbers do not depend on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from tests.helpers.tool_catalogue import tool_catalogue
from tests.tools.test_tool_search import VENDORS, RemoteTool

from everturn import get_model
from everturn.app import App
from everturn.core.canonical_json import encode_canonical
from everturn.core.ports import Model
from everturn.core.requests import RequestCall
from everturn.models import PromptedModel
from everturn.models.prompted import TOOL_FORMATS
from everturn.running.drive_setup import TurnSettings
from everturn.testing import ScriptedModel, say
from everturn.testing.provider import Call, Provider, Say
from everturn.tools.tool_search import FIND_TOOLS, DeferredTool, FindToolsTool
from tools.docs_table import write_docs_table
from tools.environment import ROOT

PAGE: Final = ROOT / "benchmarks" / "results" / "tool_search.md"
FOUND: Final = "stripe_create_refund"
SPECS, QUERIES = tool_catalogue()
STEPS: Final = (
    (FIND_TOOLS, {"query": "refund a payment", "limit": 1}),
    (FOUND, {"payment_intent": "pi_1"}),
)


class Size(Struct, frozen=True):
    """The first request of a format, in bytes: deferred, and with all tools; and whether the story was told to its end."""

    name: str
    deferred: int
    whole: int
    is_told: bool

    def row(self) -> str:
        """A row of the table."""
        told = "yes" if self.is_told else "no"
        share = f"{self.deferred / self.whole:.1%}"
        return f"| {self.name} | {tokens(self.whole):,} | {tokens(self.deferred):,} | {share} | {told} |"


def tokens(size: int) -> int:
    """About four bytes are a token."""
    return round(size / 4)


async def tell(model: Model, *, is_deferred: bool) -> str:
    """Tell the story; the answer."""
    settings = TurnSettings(tool_search_above=40 if is_deferred else 0)
    async with App(model, tools=[RemoteTool(spec) for spec in SPECS], settings=settings) as app:
        result = await (await app.chat("s").send("Refund it"))
    return result.text


async def measure_wire(name: str) -> Size:
    """The first request of a wire format, as it was sent."""
    vendor, path = VENDORS[name]
    sizes: list[int] = []
    is_told = True
    for is_deferred in (True, False):
        async with Provider() as provider:
            steps = [[Call(tool, json.dumps(arguments))] for tool, arguments in STEPS[0 if is_deferred else 1 :]]
            provider.script(vendor.partition(":")[2], [*steps, [Say("Refunded.")]], sequence=True)
            model = get_model(vendor, base_url=f"{provider.url}{path}", key="k")
            text = await tell(model, is_deferred=is_deferred)
            is_told = is_told and text == "Refunded." and not provider.refused
            sizes.append(len(json.dumps(provider.seen[0].body, ensure_ascii=False).encode()))
    return Size(f"wire format `{name}`", sizes[0], sizes[1], is_told)


async def measure_prompted(name: Any) -> Size:
    """The first request of a format of prompted tool calling: its system prompt, which lists the tools."""
    sizes: list[int] = []
    is_told = True
    for is_deferred in (True, False):
        written = [
            say(TOOL_FORMATS[name].write([RequestCall("", tool, encode_canonical(arguments))]))
            for tool, arguments in STEPS[0 if is_deferred else 1 :]
        ]
        scripted = ScriptedModel(*written, say("Refunded."))
        is_told = is_told and await tell(PromptedModel(scripted, name), is_deferred=is_deferred) == "Refunded."
        sizes.append(len(scripted.requests[0].system.encode()))
    return Size(f"prompted, `{name}`", sizes[0], sizes[1], is_told)


def count_found() -> tuple[int, int]:
    """How many of the queries find their tool at all, and how many find it first."""
    search = FindToolsTool(DeferredTool(spec, spec.origin.removeprefix("mcp:")) for spec in SPECS)
    ranks = [[hit.name for hit in search.search(query).tools] for query in QUERIES]
    pairs = list(zip(QUERIES.values(), ranks, strict=True))
    return sum(name in names for name, names in pairs), sum(names[:1] == [name] for name, names in pairs)


def render(sizes: Sequence[Size]) -> str:
    """The page."""
    found, first = count_found()
    rows = "\n".join(size.row() for size in sizes)
    return (
        "# Tool search\n\n"
        "Written by `python -m benchmarks.tool_search --write`: the first request with 500 tools in the shape of well-known MCP\n"
        "servers, offered at once and deferred. The story searches for a tool, calls it and answers.\n\n"
        f"Of {len(QUERIES)} queries, {found} find their tool among {len(SPECS)}, {first} of them as the first result. "
        "Tokens are bytes divided by four.\n\n"
        "| format | all tools, tokens | deferred, tokens | share | story told |\n|---|--:|--:|--:|---|\n"
        f"{rows}\n"
    )


async def measure() -> list[Size]:
    """All formats."""
    return [
        *[await measure_wire(name) for name in VENDORS],
        *[await measure_prompted(name) for name in TOOL_FORMATS],
    ]


def main() -> int:
    """Run it; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description="Tool search with 500 tools.")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/results and the docs")
    options = parser.parse_args()
    sizes = asyncio.run(measure())
    print(render(sizes))
    if options.write:
        PAGE.write_text(render(sizes), encoding="utf-8")
        write_docs_table("guides/tool-search.md", "tool_search", render(sizes))
    return (
        0 if count_found()[0] >= 95 and all(size.is_told and size.deferred <= size.whole / 10 for size in sizes) else 1
    )


if __name__ == "__main__":
    raise SystemExit(main())
