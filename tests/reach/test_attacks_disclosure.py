"""Ways that were found for a model to read what was kept from it, or for a client to be given something else; each is closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everturn import Rule, ToolGroup, files, tool
from everturn.core.ports import ToolContext
from everturn.testing import call, calls, say
from everturn.tools import (
    client_tool,
    rename_tool,
    run_javascript,
    run_python,
    virtual_files,
)
from tests.helpers.conversations import Talk

FIRST = "turn_s1x2-1-1"  # the first call of a talk
TEXT = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 14}}, "required": ["text"]}


@tool(private=["ssn"])
async def lookup() -> dict[str, str]:
    """Look somebody up."""
    return {"ssn": "123-45-6789"}


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return f"echo: {text}"


def private(form: str) -> str:
    return form.replace("SSN", f"$private{{{FIRST}:ssn}}")


@pytest.mark.parametrize(
    ("make_tool", "name", "arguments"),
    [
        (run_python, "run_python", {"code": "' '.join('SSN')"}),
        (run_javascript, "run_javascript", {"code": "[...'SSN'].join(' ')"}),
        (virtual_files, "write_file", {"path": "a", "content": "SSN"}),
        (lambda: client_tool("show", "Show.", TEXT), "show", {"text": "SSN"}),
    ],
    ids=["python", "javascript", "files", "a client"],
)
async def test_what_could_tell_a_private_value_in_another_form_is_not_given_it(
    make_tool: Any, name: str, arguments: dict[str, str]
) -> None:
    talk = Talk(lookup, make_tool(), tools=("lookup", "@files") if name == "write_file" else None)
    written = {key: private(value) for key, value in arguments.items()}
    await talk.tell(calls(call("lookup")), calls(call(name, **written)), say("Done."))
    [_, came] = await talk.settled()
    assert (came.state, talk.asked) == ("failed", [])
    assert f"{name} may pass on its arguments, so it cannot receive private values" in came.output.text


async def test_what_a_tool_called_by_itself_cannot_be_referred_to_and_is_not_named() -> None:
    @tool
    async def raw() -> str:
        return "ada earns 99999"

    @tool(idempotent=True)
    async def summary(ctx: ToolContext) -> str:
        await ctx.run_tool("raw", {})
        return "1 person"

    talk = Talk(raw, summary, echo)
    await talk.tell(calls(call("summary")), calls(call("echo", text=f"$ref{{{FIRST}.1}}")), say("Done."))
    [_, _, came] = await talk.settled()
    assert (came.state, f"there are: $ref{{{FIRST}}};" in came.output.text) == ("failed", True)


async def test_a_client_is_given_what_was_checked_and_not_the_reference_to_it() -> None:
    @tool
    async def long() -> str:
        return "the whole text"

    talk = Talk(long, client_tool("put", "Put.", TEXT))
    wrote = [call("put", text=f"$ref{{{FIRST}}}"), call("put", text="$$ref{x}")]
    async with talk.process(calls(call("long")), calls(*wrote), say("Done.")) as chat:
        turn = await chat.send("go")
        gates = await talk.waiting(chat, 2)
        assert sorted(gate.arguments for gate in gates) == ['{"text":"$ref{x}"}', '{"text":"the whole text"}']
        for gate in gates:
            await chat.claim(gate, "page")
            await chat.answer(gate, result="put", claim="page")
        assert (await turn).text == "Done."


# Rules -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def group(tmp_path: Path) -> ToolGroup:
    """The tools of a folder with something in it that is nobody's business."""
    (tmp_path / "pay").mkdir()
    (tmp_path / "pay" / "salaries.txt").write_text("ada earns 99999\n")
    (tmp_path / "open.txt").write_text("bob earns respect\n")
    return files(tmp_path)


async def found(name: str, rule: Rule, *tools: Any, **options: Any) -> str:
    talk = Talk(*tools, rules=[Rule("*", "allow"), rule], **options)
    await talk.tell(calls(call(name, text="earns")), say("Done."))
    [came] = await talk.settled()
    assert came.state == "completed"
    return came.output.text


async def test_a_file_that_may_not_be_read_is_not_searched_though_nobody_could_read_it_anyway(group: ToolGroup) -> None:
    rule = Rule("read_file", "deny", {"path": "pay/**"})
    text = await found("search_files", rule, group, tools=("@files/search_files",))
    assert "open.txt" in text
    assert "salaries" not in text


async def test_a_rule_about_a_search_is_held_against_all_it_finds_whatever_it_is_called(group: ToolGroup) -> None:
    rule = Rule("docs_search_files", "deny", {"path": "pay/**"})
    text = await found(
        "docs_search_files", rule, *(rename_tool(tool, f"docs_{tool.spec.name}") for tool in group.tools)
    )
    assert "open.txt" in text
    assert "salaries" not in text


async def test_what_a_person_was_not_shown_is_not_overwritten_though_they_edit_the_call(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    tools: list[Any] = [files(tmp_path)]
    talk = Talk(*tools, tools=("@files",))
    async with talk.process(calls(call("write_file", path="a.txt", content="two\n")), say("Done.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        file.write_text("an hour of work\n")
        await chat.answer(gate, allow="once", arguments={"path": "a.txt", "content": "two!\n"})
        await turn
    assert ([outcome.state for outcome in await talk.settled()], file.read_text()) == (["failed"], "an hour of work\n")


async def test_the_same_call_is_a_loop_though_its_tool_makes_calls_of_its_own() -> None:
    @tool
    async def look(number: int) -> str:
        return "nothing"

    @tool
    async def survey(ctx: ToolContext) -> str:
        for number in range(4):
            await ctx.run_tool("look", {"number": number})
        return "nothing"

    talk = Talk(look, survey)
    await talk.tell(*[calls(call("survey"))] * 6, say("Done."))
    outer = [outcome.state for outcome in await talk.settled() if "." not in outcome.call]
    # The no ends the turn: what the closing answer calls, there are no tools for.
    assert (outer, {gate.kind for gate in talk.asked}) == (["completed", "completed", "denied", "failed"], {"loop"})


async def test_there_is_an_end_to_how_deep_calls_within_calls_go() -> None:
    deepest: list[int] = []

    @tool(idempotent=True)
    async def batch(number: int, ctx: ToolContext) -> str:
        deepest.append(number)
        if number > 20:
            return "the bottom"
        return (await ctx.run_tool("batch", {"number": number + 1})).text

    talk = Talk(batch)
    await talk.tell(calls(call("batch", number=0)), say("Done."))
    assert deepest == [*range(9)]
    assert {outcome.output.text for outcome in await talk.settled()} == {
        "calls within calls go 8 deep, and this exceeds it"
    }
