"""A name a model wrote, and the tool it means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from everturn import tool
from everturn.calls.lookup import MAX_LISTED_TOOLS, MAX_SUGGESTIONS, find_tool
from everturn.core.ports import Tool
from everturn.errors import UnknownTool


def named(*names: str, **how: Any) -> dict[str, Tool]:
    async def function() -> None:
        pass

    return {name: tool(name=name, **how)(function) for name in names}


def refusal(name: str, tools: dict[str, Tool]) -> str:
    with pytest.raises(UnknownTool) as caught:
        find_tool(name, tools)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "read_file",
        "ReadFile",
        "READ-FILE",
        "functions.read_file",
        "function.ReadFile",
        "default_api.read_file",
        "tool:read-file",
        "tools/read_file",
    ],
)
def test_a_name_is_found_however_it_is_written(name: str) -> None:
    assert find_tool(name, named("write_file", "read_file")).spec.name == "read_file"


def test_the_exact_name_goes_before_those_alike() -> None:
    tools = named("read_file", "readfile", "ReadFile")
    assert [find_tool(name, tools).spec.name for name in tools] == list(tools)
    assert find_tool("functions.readfile", tools).spec.name == "readfile"


def test_a_name_that_fits_two_tools_is_nobodys() -> None:
    tools = named("read_file", "readfile", "mail")
    assert refusal("Read-File", tools) == snapshot(
        "there is no tool called 'Read-File'; there are: read_file, readfile, mail. Nothing was run."
    )
    assert "read_file, readfile, mail" in refusal("functions.Read-File", tools)


def test_a_tool_that_is_denied_still_makes_a_name_ambiguous() -> None:
    tools = named("delete_file") | named("delete-file", approval="deny")
    assert refusal("DeleteFile", tools).endswith("there are: delete_file. Nothing was run.")


@pytest.mark.parametrize("name", ["github.read_file", "functions.functions.read_file", "functions.", "read_file()", ""])
def test_no_other_namespace_is_made_light_of(name: str) -> None:
    refusal(name, named("read_file"))


def test_an_unknown_name_is_told_the_closest_first() -> None:
    tools = named("mail", "write_file", "web_search", "read_file")
    assert refusal("ReadFil", tools) == snapshot(
        "there is no tool called 'ReadFil'; there are: read_file, mail, write_file, web_search. Nothing was run."
    )
    assert "there are: web_search, mail" in refusal("functions.search", tools)
    assert "there are: mail, write_file, web_search, read_file." in refusal("zzz", tools)


def test_among_many_only_the_closest_are_named() -> None:
    tools = named(*(f"tool_{n}" for n in range(MAX_LISTED_TOOLS)), "read_file")
    assert refusal("ReadFil", tools) == snapshot(
        "there is no tool called 'ReadFil'; of the 41 there are, the closest are: read_file. Nothing was run."
    )
    assert refusal("zzz", tools) == snapshot(
        "there is no tool called 'zzz'; none of the 41 tools has a similar name; "
        "call a tool by the name it was offered under. Nothing was run."
    )
    assert refusal("tool_99", tools).count(", tool_") == MAX_SUGGESTIONS - 1


def test_a_denied_tool_is_found_by_its_name_and_never_named() -> None:
    tools = named("mail") | named("read_file", approval="deny")
    assert find_tool("ReadFile", tools).spec.approval == "deny"
    assert refusal("ReadFil", tools).endswith("there are: mail. Nothing was run.")
    assert refusal("x", named("a", approval="deny")).endswith("there are: none. Nothing was run.")


@pytest.mark.parametrize("name", ["invalid", "Invalid", "in_valid", "functions.invalid", "functions.In-Valid"])
def test_the_reserved_name_is_never_found_and_never_named(name: str) -> None:
    assert refusal(name, named("invalid", "mail")).endswith("there are: mail. Nothing was run.")


def test_a_name_of_any_length_makes_a_short_refusal() -> None:
    assert len(refusal("x" * 1_000_000, named("mail"))) < 200


SOME = named("read_file", "write-file", "x")


@given(st.text(max_size=80) | st.from_regex(r"(functions\.)?[Rr]ead[-_]?[Ff]il[ex]", fullmatch=True))
def test_a_name_is_found_or_refused_and_nothing_else(name: str) -> None:
    plain = name.removeprefix("functions.").replace("-", "").replace("_", "").casefold()
    try:
        found = find_tool(name, SOME)
    except UnknownTool as error:
        str(error).encode()
        assert plain not in ("readfile", "writefile", "x")
    else:
        assert found.spec.name.replace("-", "").replace("_", "") == plain


def test_every_name_is_found_among_as_many_as_there_may_be() -> None:
    tools = named(*(f"tool_{n}" for n in range(600)))
    assert find_tool("Tool-599", tools).spec.name == "tool_599"
    assert "of the 600 there are" in refusal("tool_x", tools)
