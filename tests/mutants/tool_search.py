"""Seeded bugs in tool search; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SEARCH = "tests/tools/test_tool_search.py::"

TOOL_SEARCH_MUTANTS = [
    Mutant(
        "any result that looks like one of find_tools reveals tools",
        "tools/tool_search.py",
        "part.name == FIND_TOOLS and not part.is_error",
        "not part.is_error",
        f"{SEARCH}test_only_a_result_of_find_tools_reveals_tools",
    ),
    Mutant(
        "tools that rules deny can be found",
        "plugins/tool_calling.py",
        "deferred = _defer(specs, options, enabled)",
        "deferred = _defer([tool.spec for tool in tools.values()], options, enabled)",
        f"{SEARCH}test_denied_tools_are_never_found_and_without_search_all_are_offered",
    ),
    Mutant(
        "tools are deferred although nothing can find them",
        "plugins/tool_calling.py",
        "            else:  # a rule denies it: then all tools are offered\n                deferred = {}\n",
        "            else:\n                specs = [spec for spec in specs if spec.name not in deferred]\n",
        f"{SEARCH}test_denied_tools_are_never_found_and_without_search_all_are_offered",
    ),
    Mutant(
        "what was found is not offered",
        "plugins/tool_calling.py",
        "                ctx.body.tools += found_tools(ctx.body.messages, offer.deferred)\n",
        "                pass\n",
        f"{SEARCH}test_every_wire_format_offers_what_was_found",
    ),
    Mutant(
        "the best match is not the first",
        "tools/tool_index.py",
        "key=lambda at: (-scores[at], at)",
        "key=lambda at: (scores[at], at)",
        f"{SEARCH}test_of_100_queries_95_find_their_tool_among_500",
    ),
]
