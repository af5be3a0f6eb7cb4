"""Tool search: where a turn has very many tools, the model is offered a few, and finds the others with `find_tools`.

A tool that was found is offered from the next request on. Which ones those are is read from the conversation, so a
request that is built again, by this or another process, offers the same tools.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import RequestCall, RequestMessage, RequestResult, ToolSpec
from everturn.errors import BadArguments
from everturn.tools.tool_index import ToolIndex

FIND_TOOLS: Final = "find_tools"
DEFAULT_RESULTS, MAX_RESULTS = 5, 20
DESCRIPTION_LENGTH = 300
RULES_LENGTH = 4_000
LISTED_GROUPS = 60
QUERY_LENGTH = 1_000

FIND_TOOLS_SPEC: Final = ToolSpec(
    FIND_TOOLS,
    "Find more tools by what they do. The tools that it returns can be called from your next message on. "
    "Search before you say that something cannot be done.",
    {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What the tool should do, such as `create a GitHub issue`, or the name of a tool.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_RESULTS,
                "description": f"How many tools to return; {DEFAULT_RESULTS} by default.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    read_only=True,
    repeatable=True,
    origin="builtin",
)


class DeferredTool(Struct, frozen=True):
    """A tool that is offered once it was found. `rules` are those of its group, "" if there are none."""

    spec: ToolSpec
    group: str = ""
    rules: str = ""


class FoundTool(Struct, frozen=True):
    """A tool as `find_tools` returns it."""

    name: str
    description: str


class FoundTools(Struct, frozen=True, omit_defaults=True):
    """The result of `find_tools`. `rules` are the rules of the groups of these tools, by group."""

    tools: tuple[FoundTool, ...]
    rules: dict[str, str] = {}
    note: str = ""


class FindToolsTool:
    """The `find_tools` tool for these tools, none of which the rules deny."""

    def __init__(self, tools: Iterable[DeferredTool]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._index: ToolIndex | None = None  # made by the first search: many turns never search

    @property
    def spec(self) -> ToolSpec:
        """The same whatever can be found, so that a new tool does not make this another one."""
        return FIND_TOOLS_SPEC

    def validate(self, arguments: JsonObject) -> None:
        """Check the query and the limit."""
        self._read(arguments)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Search, and return what was found."""
        return self._run(*self._read(arguments))

    async def _run(self, query: str, limit: int) -> Output:
        found = self.search(query, limit)
        return Output(msgspec.json.encode(found).decode(), title=query[:80])

    def search(self, query: str, limit: int = DEFAULT_RESULTS) -> FoundTools:
        """Find tools, the best match first."""
        if self._index is None:
            self._index = ToolIndex((tool.spec, tool.group) for tool in self._tools.values())
        matches = [self._tools[name] for name in self._index.search(query, limit)]
        tools = tuple(FoundTool(tool.spec.name, _shorten(tool.spec.description)) for tool in matches)
        note = "" if tools else "no tool matches; try other words, such as the name of the service or the object"
        rules = {tool.group: tool.rules[:RULES_LENGTH] for tool in matches if tool.rules}
        return FoundTools(tools, rules, note)

    def _read(self, arguments: JsonObject) -> tuple[str, int]:
        query, limit = arguments.get("query"), arguments.get("limit", DEFAULT_RESULTS)
        if not isinstance(query, str) or not query.strip() or arguments.keys() - {"query", "limit"}:
            raise BadArguments(f"{FIND_TOOLS} takes `query`, what the tool should do, and optionally `limit`")
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_RESULTS:
            raise BadArguments(f"`limit` of {FIND_TOOLS} is a whole number from 1 to {MAX_RESULTS}")
        return query[:QUERY_LENGTH], limit


def _shorten(description: str) -> str:
    text = " ".join(description.split())
    return text if len(text) <= DESCRIPTION_LENGTH else text[: DESCRIPTION_LENGTH - 1] + "…"


def is_deferrable(spec: ToolSpec, group: str) -> bool:
    """Whether a tool may be deferred: one of an MCP server, or a function in a group. Built-in tools are always offered."""
    return spec.origin.startswith("mcp:") or (bool(group) and spec.origin.startswith("function:"))


def server_of(spec: ToolSpec) -> str:
    """The name of the MCP server of a tool; "" if it is of none."""
    return spec.origin.removeprefix("mcp:") if spec.origin.startswith("mcp:") else ""


def render_search_section(tools: Sequence[DeferredTool]) -> str:
    """The system prompt section that says how many tools can be found, and in which groups."""
    counts: dict[str, int] = {}
    for tool in tools:
        counts[tool.group] = counts.get(tool.group, 0) + 1
    named = [f"{group} ({count})" for group, count in counts.items() if group]
    more = f", and {len(named) - LISTED_GROUPS} more groups" if len(named) > LISTED_GROUPS else ""
    groups = f": {', '.join(named[:LISTED_GROUPS])}{more}" if named else ""
    return f"<tool-search>\n{len(tools)} more tools can be found with `{FIND_TOOLS}`{groups}.\n</tool-search>"


def found_tools(messages: Iterable[RequestMessage], deferred: Mapping[str, DeferredTool]) -> list[ToolSpec]:
    """The deferred tools that a conversation has found or called, in that order; the first ones stay where they were."""
    found: dict[str, ToolSpec] = {}
    for message in messages:
        for part in message.parts:
            names: Iterable[str] = ()
            if type(part) is RequestCall:
                names = (part.name,)
            elif type(part) is RequestResult and part.name == FIND_TOOLS and not part.is_error:
                names = _names_in(part.text)
            for name in names:
                if name not in found and name in deferred:
                    found[name] = deferred[name].spec
    return list(found.values())


def _names_in(text: str) -> Iterable[str]:
    """The names in a result. A person may have edited it before the model read it: then what is left counts."""
    try:
        tools: Any = msgspec.json.decode(text)["tools"]
        return [name for tool in tools if isinstance(name := tool["name"], str)]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return ()
