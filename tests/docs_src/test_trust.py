"""The guides on permissions, gates, limits, groups, results and sub-agent runs: what they claim beside their examples."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from everturn import Chat, Gate, Output, RunResult, ToolContext, TurnOptions, tool
from everturn.calls import private_values, references, subagents
from everturn.core.gates import GateKind
from everturn.core.hooks import CallContext, GateContext
from everturn.core.loop_detection import LOOP_REPETITIONS, MAX_LOOP_PERIOD
from everturn.core.options import Approval, Budget
from everturn.core.parts import ToolPart
from everturn.core.ports import SubagentRequest, Tool
from everturn.core.requests import ModelRequest, RequestResult
from everturn.core.rules.patterns import SUBJECT_KINDS, Subject, SubjectKind
from everturn.core.rules.policy import LAYERS, MAX_CASES, Policy, Rule
from everturn.errors import ConfigError, GateClosed, UnknownGrant
from everturn.events import Phase, TurnSuspended
from everturn.permissions.rules_file import read_rules
from everturn.permissions.shell.command_line import UnreadableCommand, read_command
from everturn.permissions.shell.simple_commands import MAX_ITEMS
from everturn.terminal.lines.gate_answers import available_keys
from everturn.terminal.lines.gate_view import GatePanel, draw_gate
from everturn.terminal.text.permissions import CODES
from everturn.terminal.text.screen import LineScreen
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import read_result
from everturn.tools.groups import ToolGroup
from everturn.tools.registry import RESERVED, ToolRegistry
from everturn.tools.skills import Skill
from everturn.tools.subagent import SUBAGENT_TIMEOUT, SubagentTool

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = tuple(
    f"guides/{name}"
    for name in ("permissions", "human-in-the-loop", "limits", "tool-groups", "tool-results", "sub-agents")
)


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def rows(name: str, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    section = page(name).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\|(.*)\|$", section, re.MULTILINE)[2:]
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def parts_of(result: RunResult) -> list[ToolPart]:
    return [part for message in result.messages for part in message.parts if isinstance(part, ToolPart)]


def last_result(request: ModelRequest) -> RequestResult:
    result = request.messages[-1].parts[-1]
    assert isinstance(result, RequestResult)
    return result


async def play(chat: Chat, answer: Callable[[Gate], Awaitable[object]] | None = None) -> tuple[RunResult, list[Gate]]:
    """Run one turn, answer whatever waits, and say what was asked."""
    gates: list[Gate] = []
    turn = await chat.send("Go")
    async for event in turn:
        if isinstance(event, TurnSuspended):
            for gate in await chat.gates():
                gates.append(gate)
                await (answer(gate) if answer is not None else chat.answer(gate, allow="once"))
    return await turn, gates


# Permissions -------------------------------------------------------------------------------------------------------


@tool(approval="ask", subjects={"path": "path"})
async def save(path: str) -> str:
    return f"saved {path}"


@tool(approval="always")
async def pay(amount: int) -> str:
    return f"paid {amount}"


@tool(read_only=True)
async def look(place: str) -> str:
    return f"saw {place}"


def test_every_rule_on_the_pages_can_be_read() -> None:
    blocks = [block for name in PAGES for block in re.findall(r"```toml\n(.*?)```", page(name), re.DOTALL)]
    found = [block for block in blocks if "[[permissions]]" in block]
    assert len(found) >= 2
    assert all(len(read_rules(block, "page")) == block.count("[[permissions]]") for block in found)


def subject(kind: SubjectKind, text: str) -> Subject:
    return read_command(text)[0] if kind == "command" else Subject(kind, text)


def test_the_patterns_fit_what_their_table_says() -> None:
    table = rows("guides/permissions", "Match arguments")
    assert {kind for kind, *_ in table} == set(SUBJECT_KINDS)
    for kind, pattern, fits, does_not in table:
        assert kind in SUBJECT_KINDS
        policy = Policy([Rule("t", "allow", {"it": words(pattern)[0]})])
        for cell, action in ((fits, "allow"), (does_not, "ask")):
            judged = policy.decide("t", [{"it": subject(kind, words(cell)[0])}])
            assert judged.action == action, (pattern, cell)


@pytest.mark.parametrize(
    ("kind", "pattern", "text"),
    [
        ("text", "Dear *", "DEAR Ada"),
        ("command", "rm *", "/bin/rm -rf build"),
        ("path", "etc", "/etc"),
        ("path", "secrets/**", "secrets"),
    ],
)
def test_a_rule_that_denies_is_generous_and_one_that_allows_is_not(kind: SubjectKind, pattern: str, text: str) -> None:
    case = {"it": subject(kind, text)}
    assert Policy([Rule("t", "deny", {"it": pattern})]).decide("t", [case]).action == "deny"
    assert Policy([Rule("t", "allow", {"it": pattern})]).decide("t", [case]).action == "ask"
    assert Policy([Rule("send-mail", "deny")]).decide("Send_Mail", [{}]).action == "deny"


async def test_the_table_of_execute_says_who_is_asked_and_what_is_offered() -> None:
    table = {words(row[0])[0]: row[-1].strip("| ") for row in rows("guides/permissions", "Set a tool's default")}
    assert tuple(table) == get_args(Approval)
    for approval, offered in table.items():

        @tool(approval=approval)  # type: ignore[arg-type]
        async def it() -> str:
            return "ran"

        model = ScriptedModel(calls(call("it")), say("Done."))
        async with Chat(model, tools=[it]) as chat:
            result, gates = await play(chat)
        assert bool(gates) is (approval in ("always", "ask"))
        assert any(gate.offers for gate in gates) is (offered == "yes")
        assert [part.state for part in parts_of(result)] == ["denied" if approval == "deny" else "completed"]
        assert [spec.name for spec in model.requests[0].tools] == ([] if approval == "deny" else ["it"])


async def test_a_rule_that_allows_does_not_silence_a_tool_that_asks_every_time() -> None:
    async with Chat(
        ScriptedModel(calls(call("pay", amount=1)), say("Done.")), tools=[pay], rules=[Rule("pay", "allow")]
    ) as chat:
        _, gates = await play(chat)
    assert [gate.offers for gate in gates] == [()]


async def test_a_grant_does_not_beat_a_rule_that_asks_and_is_revoked_once() -> None:
    model = ScriptedModel(calls(call("save", path="a/b")), say("1"), calls(call("save", path="a/b")), say("2"))
    async with Chat(model, tools=[save]) as chat:
        await play(chat, lambda gate: chat.answer(gate, allow="always"))
        (grant,) = await chat.grants()
        assert (grant.session, grant.by, grant.rule.match) == (chat.session, "person", {"path": "a/b"})
        options = TurnOptions(rules=(Rule("save", "ask", layer="session"),))
        strict = Chat(model, app=chat.app, session=chat.session, options=options)
        _, gates = await play(strict)
        assert [gate.offers for gate in gates] == [()]
        await chat.revoke(grant)
        with pytest.raises(UnknownGrant):
            await chat.revoke(grant)


def test_the_numbers_and_layers_on_the_page_of_rules_are_those_in_the_code() -> None:
    text = page("guides/permissions")
    assert f"More than {MAX_CASES} cases" in text
    assert f"more than {MAX_ITEMS} items" in text
    assert all(f"`{layer}`" in text for layer in LAYERS)
    assert CODES == {"allow": 0, "ask": 3, "deny": 4}


def test_a_wrapper_is_an_item_beside_what_it_runs_and_an_unseen_character_is_refused() -> None:
    assert [item.text for item in read_command("sudo git log")] == ["sudo git log", "git log"]
    assert [item.text for item in read_command("git log > last.txt")] == ["git log", "> last.txt"]
    with pytest.raises(UnreadableCommand):
        read_command("git log \u202e")


# Approving ---------------------------------------------------------------------------------------------------------


def test_the_guide_has_a_row_for_every_kind_of_gate() -> None:
    assert [words(row[0])[0] for row in rows("guides/human-in-the-loop", "When approval is requested")] == list(
        get_args(GateKind)
    )


def test_the_errors_on_arrival_are_as_related_as_the_page_says() -> None:
    from everturn import errors

    for row in rows("guides/human-in-the-loop", "What an approval is bound to"):
        kind = getattr(errors, words(row[0])[0])
        assert issubclass(kind, GateClosed) is (kind.__name__ in ("AnsweredOtherwise", "GateExpired", "GateClosed"))


async def test_edited_arguments_are_no_way_around_a_rule() -> None:
    model = ScriptedModel(calls(call("save", path="a")), say("Oh."))
    async with Chat(model, tools=[save], rules=[Rule("save", "deny", {"path": "b"})]) as chat:
        result, gates = await play(chat, lambda gate: chat.answer(gate, allow="once", arguments={"path": "b"}))
    assert len(gates) == 1
    assert [part.state for part in parts_of(result)] == ["denied"]


async def test_what_is_redacted_is_gone_with_the_whole_and_all_beside_it() -> None:
    @tool(read_only=True, review="always", limit=200)
    async def book() -> Output:
        return Output("the code is 4711\n" * 100, title="a book", metadata={"code": 4711})

    async with Chat(ScriptedModel(calls(call("book")), say("Oh.")), tools=[book]) as chat:
        result, (gate,) = await play(chat, lambda gate: chat.answer(gate, allow="once", text="nothing"))
    assert gate.output is not None
    assert gate.output.blob
    (part,) = parts_of(result)
    assert part.output is not None
    left = (part.output.text, part.output.blob, part.output.metadata, part.output.redacted, part.state)
    assert left == ("nothing", "", None, True, "completed")


async def test_on_error_lets_a_person_read_only_what_failed_and_the_stricter_counts() -> None:
    @tool(read_only=True, review="on_error")
    async def half(number: int) -> float:
        return 1 / number

    model = ScriptedModel(calls(call("half", number=1), call("half", number=0)), say("Oh."))
    async with Chat(model, tools=[half]) as chat:
        _, gates = await play(chat)
    assert [(gate.kind, gate.failed) for gate in gates] == [("result", True)]
    async with Chat(model, tools=[half], options=TurnOptions(review="always")) as chat:
        _, gates = await play(chat)
    assert [gate.failed for gate in gates] == [False, True]


async def test_a_plugin_that_allows_every_gate_also_sends_results() -> None:
    class Yes:
        def on_gate(self, ctx: GateContext) -> None:
            ctx.allow()

    @tool(read_only=True, approval="always", review="always")
    async def secret() -> str:
        return "4711"

    model = ScriptedModel(calls(call("secret")), say("Oh."))
    async with Chat(model, tools=[secret], plugins=[Yes()]) as chat:
        _, gates = await play(chat)
    assert gates == []
    assert last_result(model.requests[-1]).text == "4711"


async def test_the_terminal_asks_as_the_page_shows() -> None:
    @tool(approval="ask")
    async def send_mail(to: str, text: str) -> str:
        return "sent"

    model = ScriptedModel(calls(call("send_mail", to="ada@example.org", text="Lunch?")), say("Done."))
    async with Chat(model, tools=[send_mail]) as chat:
        _, (gate,) = await play(chat)
    out, panel = io.StringIO(), GatePanel(gate, send_mail)
    draw_gate(LineScreen(out, gutter=0, width=80), panel)
    shown = out.getvalue() + "   ".join(available_keys(panel).values()) + "\n"
    assert f"```text\n{shown}```" in page("guides/human-in-the-loop")
    review = available_keys(GatePanel(replace(gate, kind="result", output=Output("x")), send_mail))
    for row in rows("guides/human-in-the-loop", "Approvals in the terminal"):
        key = words(row[0])[0]
        assert key in available_keys(panel)
        assert (key in review) is bool(row[-1].strip("| "))


# Limits ------------------------------------------------------------------------------------------------------------


def test_the_numbers_of_the_loop_guard_are_those_in_the_code() -> None:
    assert (LOOP_REPETITIONS, MAX_LOOP_PERIOD) == (3, 4)
    assert "The third time" in page("guides/limits")
    assert "up to four calls" in page("guides/limits")


async def test_a_pattern_asks_at_its_end_and_a_rule_may_deny_it_without_asking() -> None:
    steps = [calls(call("look", place=place)) for place in "ababab"]
    async with Chat(ScriptedModel(*steps, say("Oh.")), tools=[look]) as chat:
        result, gates = await play(chat)
    assert [gate.kind for gate in gates] == ["loop"]
    assert parts_of(result)[-1].call == gates[0].call
    async with Chat(
        ScriptedModel(*steps, say("Oh.")), tools=[look], rules=[Rule("doom_loop", "deny", {"tool": "look"})]
    ) as chat:
        result, gates = await play(chat)
    assert gates == []
    assert [part.state for part in parts_of(result)] == ["completed"] * 5 + ["denied"]


def test_the_guide_has_a_row_for_everything_a_budget_counts() -> None:
    assert [words(row[0])[0] for row in rows("guides/limits", "Budgets")] == list(Budget.__struct_fields__)


# Groups ------------------------------------------------------------------------------------------------------------


def test_a_selection_chooses_what_the_table_says() -> None:
    def make_tool(name: str) -> Tool:
        async def it() -> None: ...

        return tool(name=name)(it)

    files = ToolGroup("files", [make_tool("read_file"), make_tool("write_file")])
    registry = ToolRegistry([make_tool("clock"), make_tool("read_mail"), files])
    chosen = {
        words(row[0])[0]: [*registry.enabled((words(row[0])[0],))]
        for row in rows("guides/tool-groups", "Select tools for a turn")
    }
    assert chosen == {
        "clock": ["clock"],
        "read_*": ["read_mail"],
        "@files": ["read_file", "write_file"],
        "@files/read_*": ["read_file"],
    }
    with pytest.raises(ConfigError, match="there are: clock"):
        registry.check_selection(["clok"])
    assert [*registry.enabled(("clok",))] == []


def test_the_names_that_are_taken_are_those_on_the_page() -> None:
    assert ", ".join(f"`{name}`" for name in RESERVED[:-1]) + f" and `{RESERVED[-1]}` are reserved" in page(
        "guides/tool-groups"
    )


async def test_a_pinned_skill_is_told_in_full_and_needs_no_loading() -> None:
    model = ScriptedModel(say("Hi."))
    kind = Skill("kindness", "how to be kind", "Say please.", pinned=True)
    async with Chat(model, tools=[ToolGroup("manners", [look], skills=[kind], on=True)]) as chat:
        await play(chat)
    assert "Say please." in model.requests[0].system
    assert [spec.name for spec in model.requests[0].tools] == ["look"]


async def test_what_before_makes_of_the_arguments_is_what_is_judged_and_asked_about() -> None:
    def upper(ctx: CallContext) -> None:
        ctx.arguments["place"] = "B"

    @tool(approval="ask", before=upper)
    async def go(place: str) -> str:
        return place

    async with Chat(ScriptedModel(calls(call("go", place="a")), say("Oh.")), tools=[go]) as chat:
        _, gates = await play(chat)
    assert [gate.arguments for gate in gates] == ['{"place":"B"}']


# Results -----------------------------------------------------------------------------------------------------------


def test_the_numbers_on_the_page_of_results_are_those_in_the_code() -> None:
    text = page("guides/tool-results")
    assert f"up to {read_result.MAX_RANGE_LENGTH:,} characters" in text
    assert (
        f"At most {references.MAX_REFERENCES} references, and {references.MAX_INSERTED_LENGTH // 1_000_000} million characters"
        in text
    )
    assert private_values.MIN_MASKED == 6
    assert "shorter than six characters" in text


async def read_by(target: Tool, brought: str, **arguments: Any) -> str:
    """Let one call bring a text, and another be given what refers to it; say what came of that."""

    @tool(read_only=True)
    async def bring() -> str:
        return brought

    def second(request: ModelRequest) -> Any:
        at = last_result(request).call
        filled = {name: value.replace("CALL", at) for name, value in arguments.items()}
        return calls(call(target.spec.name, **filled))

    model = ScriptedModel(calls(call("bring")), second, say("Done."))
    async with Chat(model, tools=[bring, target]) as chat:
        await play(chat)
    return last_result(model.requests[-1]).text


async def test_a_reference_is_put_in_its_place_once_and_escaped_with_another_dollar() -> None:
    assert await read_by(look, "a $ref{CALL} b", place="<$ref{CALL}>") == "saw <a $ref{CALL} b>"
    assert await read_by(look, "abcdef", place="$ref{CALL:1:3}") == "saw bcd"
    assert await read_by(look, "abc", place="$$ref{CALL}") != "saw abc"
    assert (await read_by(look, "abc", place="$$ref{CALL}")).startswith("saw $ref{")


async def test_what_a_lone_reference_leads_to_is_json_where_no_text_is_wanted() -> None:
    @tool(read_only=True)
    async def add(numbers: list[int]) -> int:
        return sum(numbers)

    assert await read_by(add, "[1, 2, 3]", numbers="$ref{CALL}") == "6"


async def test_a_subject_is_written_out_and_an_unknown_reference_names_what_there_is() -> None:
    assert "write the value itself" in await read_by(save, "a/b", path="$ref{CALL}")
    assert "there are: $ref{" in await read_by(look, "abc", place="$ref{other}")


async def test_what_is_not_json_is_private_as_a_whole_and_an_agent_is_given_no_private_value() -> None:
    @tool(read_only=True, private=("email",))
    async def whole() -> str:
        return "ada@example.org"

    def second(request: ModelRequest) -> Any:
        assert "ada@" not in last_result(request).text
        return calls(call("helper", task=f"write to $private{{{last_result(request).call}:}}"))

    model = ScriptedModel(calls(call("whole")), second, say("Oh."))
    async with Chat(model, tools=[whole, SubagentTool("helper", "Helps.")]) as chat:
        await play(chat)
    assert "cannot receive private values" in last_result(model.requests[-1]).text


async def test_what_is_private_or_untrusted_alone_asks_nobody() -> None:
    @tool(read_only=True, untrusted=True)
    async def web() -> str:
        return "hello"

    @tool(read_only=True, private=("phone",))
    async def contact() -> dict[str, str]:
        return {"phone": "555-0199"}

    @tool(egress=True)
    async def post(text: str) -> str:
        return "sent"

    for first, count in ((["web"], 0), (["contact"], 0), (["web", "contact"], 1)):
        model = ScriptedModel(calls(*map(call, first)), calls(call("post", text="x")), say("Done."))
        async with Chat(model, tools=[web, contact, post]) as chat:
            _, gates = await play(chat)
        assert [gate.kind for gate in gates] == ["egress"] * count


# Sub-agent runs ---------------------------------------------------------------------------------------------------------


def test_the_numbers_on_the_page_of_sub_turns_are_those_in_the_code() -> None:
    assert (subagents.MAX_SUBAGENT_DEPTH, SUBAGENT_TIMEOUT) == (4, 10 * 365 * 86_400)
    assert "Sub-agent runs nest four deep" in page("guides/sub-agents")
    assert "no process holds anything in memory" in page("guides/sub-agents").replace("\n", " ")


def by_first_word(**scripts: Any) -> ScriptedModel:
    def step(request: ModelRequest) -> Any:
        answer_count = sum(message.role == "assistant" for message in request.messages)
        return scripts[request.messages[0].text][answer_count]

    return ScriptedModel(*[step] * 3)


async def test_a_sub_turn_has_no_tool_that_the_turn_above_was_not_given() -> None:
    model = by_first_word(Go=[calls(call("helper", task="sub")), say("Done.")], sub=[say("I have nothing.")])
    helper = SubagentTool("helper", "Helps.", tools=["look", "save"])
    async with Chat(model, tools=[helper, look, save], options=TurnOptions(tools=("helper", "save"))) as chat:
        await play(chat)
    offered = {request.messages[0].text: [spec.name for spec in request.tools] for request in model.requests}
    assert offered == {"Go": ["helper", "save"], "sub": ["save"]}


async def test_a_tool_of_ones_own_may_run_several_sub_turns() -> None:
    @tool(idempotent=True)
    async def ask_twice(ctx: ToolContext) -> str:
        first = await ctx.run_subagent(SubagentRequest(prompt="sub"))
        again = await ctx.run_subagent(SubagentRequest(prompt="other"))
        assert first.session != again.session
        return f"{first.text} {again.text}"

    model = by_first_word(Go=[calls(call("ask_twice")), say("Done.")], sub=[say("Here.")], other=[say("There.")])
    async with Chat(model, tools=[ask_twice]) as chat:
        result, _ = await play(chat)
    assert [part.output.text for part in parts_of(result) if part.output is not None] == ["Here. There."]


async def test_what_was_read_above_counts_below() -> None:
    @tool(read_only=True, private=("phone",))
    async def contact() -> dict[str, str]:
        return {"phone": "555-0199"}

    @tool(read_only=True, untrusted=True)
    async def web() -> str:
        return "hello"

    @tool(egress=True)
    async def post(text: str) -> str:
        return "sent"

    for first, asks in (("contact", True), ("web", False)):
        model = by_first_word(
            Go=[calls(call(first)), calls(call("helper", task="sub")), say("Done.")],
            sub=[calls(call("web")), calls(call("post", text="x")), say("Sent.")],
        )
        async with Chat(model, tools=[contact, web, post, SubagentTool("helper", "Helps.")]) as chat:
            waits = asyncio.Event()
            chat.app.listeners.append(lambda turn, bell=waits: bell.set() if turn.phase is Phase.WAITING else None)
            turn = await chat.send("Go")
            if asks:
                await waits.wait()
                (gate,) = await chat.gates()
                assert (gate.kind, gate.session == chat.session) == ("egress", False)
                await chat.answer(gate, deny=True)
            result = await turn
            assert waits.is_set() is asks
        output = parts_of(result)[-1].output
        assert output is not None
        assert (output.text, output.untrusted) == ("Sent.", True)
