"""What a sub-agent run may do: at most what every turn above it may, whatever its own rules say."""

from __future__ import annotations

import random
from typing import Any

import pytest

from everturn import ToolContext, TurnOptions, tool
from everturn.core.events import CallStarted, TurnStarted
from everturn.core.ports import SubagentRequest, Tool
from everturn.core.rules.policy import Layer, Policy, Rule
from everturn.core.rules.shadowed_rules import find_shadowed_rules
from everturn.running.permissions import Permissions
from everturn.testing import call, calls, say
from tests.helpers.conversations import Scenes, Talk, never, once
from tests.trust.test_rules import none_of_it, reader


def delegate(ask: SubagentRequest, name: str = "delegate") -> Tool:
    @tool(idempotent=True, repeatable=True, name=name)
    async def run(task: str, ctx: ToolContext) -> str:
        return (await ctx.run_subagent(SubagentRequest(task, tools=ask.tools, rules=ask.rules))).text

    return run


VALUES = ("a", "b", "docs/x", "docs/y")
PATTERNS = ("a", "b", "docs/*", "docs/x", "*", "**", "?")


def some_rules(chance: random.Random, layer: Layer) -> tuple[Rule, ...]:
    """Any rules."""
    found: list[Rule] = []
    for _ in range(chance.randint(0, 4)):
        action = chance.choice(("allow", "allow", "ask", "deny"))
        name = chance.choice(("read", "read", "re*", "*", "run_shell"))
        match = {} if chance.random() < 0.2 else {"path": chance.choice(PATTERNS)}
        if name == "*":  # or nothing is ever delegated
            match["path"] = chance.choice(PATTERNS)
        found.append(Rule(name, action, match, layer))
    return tuple(found)


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_ran_below_the_turns_above_would_have_been_allowed_by_their_own_rules(seed: int) -> None:
    chance, ran_at_all = random.Random(seed), 0
    for _ in range(25):
        ran: list[str] = []
        everywhere, top, middle, bottom = (some_rules(chance, "config" if at == 0 else "agent") for at in range(4))
        selected = chance.choice((None, None, ("read", "delegate", "deeper"), ("del*", "dee*")))
        read = reader(ran)
        free = (Rule("delegate", "allow", layer="agent"), Rule("deeper", "allow", layer="agent"))
        talk = Talk(
            read,
            delegate(SubagentRequest("", rules=(*middle, *free))),
            delegate(SubagentRequest("", rules=(*bottom, *free)), "deeper"),
            rules=everywhere,
        )
        talk.options.update(rules=top, tools=selected)
        tool_calls = calls(*(call("read", path=value) for value in VALUES))
        scenes = Scenes(
            go=[calls(call("delegate", task="middle")), say("Done.")],
            middle=[
                calls(call("deeper", task="bottom"), *(call("read", path=value) for value in VALUES)),
                say("Below."),
            ],
            bottom=[tool_calls, say("Deep below.")],
        )
        await talk.tell(model=scenes, reply=none_of_it)
        await talk.check()
        permits = Permissions(everywhere)
        lists = {1: [top, (*middle, *free)], 2: [top, (*middle, *free), (*bottom, *free)]}
        for name in await talk.sessions():
            [begun] = await talk.events(TurnStarted, session=name)
            depth = begun.options.lineage.depth if begun.options.lineage is not None else 0
            for event in await talk.events(CallStarted, session=name):
                if event.tool != "read":
                    continue
                ran_at_all += 1
                path = event.arguments.removeprefix('{"path":"').removesuffix('"}')
                assert depth in lists
                for own in lists[depth]:
                    options = TurnOptions(rules=own)
                    cases = permits.cases(read.spec, {"path": path}, options)
                    assert permits.decide_cases(read.spec, cases, options).action == "allow"
                assert selected is None or "read" in selected
    assert ran_at_all, "nothing ran in any of them, so nothing was tried"


@pytest.mark.parametrize(
    ("above", "below", "runs", "asks"),
    [
        ([], [("allow", "a")], False, True),
        ([("allow", "a")], [("allow", "a")], True, False),
        ([("allow", "*")], [("allow", "a")], True, False),
        ([("deny", "a")], [("allow", "a")], False, False),
        ([("ask", "a")], [("allow", "a")], False, True),
        ([("allow", "a")], [("deny", "a")], False, False),
        ([("allow", "a")], [("ask", "a")], False, True),
        ([("allow", "a")], [], False, True),
        ([("allow", "b")], [("allow", "**")], False, True),
    ],
)
async def test_a_sub_turn_may_do_what_both_may(above: Any, below: Any, runs: bool, asks: bool) -> None:
    def rules(pairs: Any) -> tuple[Rule, ...]:
        return tuple(Rule("read", action, {"path": path}, "agent") for action, path in pairs)

    ran: list[str] = []
    talk = Talk(reader(ran), delegate(SubagentRequest("", rules=rules(below))))
    talk.options["rules"] = rules(above)
    scenes = Scenes(
        go=[calls(call("delegate", task="sub")), say("Done.")], sub=[calls(call("read", path="a")), say("Below.")]
    )
    await talk.tell(model=scenes, reply=never)
    assert (bool(ran), bool(talk.asked)) == (runs, asks)
    await talk.check()


@pytest.mark.parametrize("wanted", [None, ("read",), ("*",), ("read", "delegate")])
async def test_a_sub_turn_has_no_tool_that_the_turn_above_does_not(wanted: tuple[str, ...] | None) -> None:
    ran: list[str] = []
    free = Rule("*", "allow", layer="agent")
    talk = Talk(reader(ran), delegate(SubagentRequest("", tools=wanted, rules=(free,))), rules=[Rule("*", "allow")])
    talk.options["tools"] = ("delegate",)
    scenes = Scenes(
        go=[calls(call("delegate", task="sub")), say("Done.")], sub=[calls(call("read", path="a")), say("Below.")]
    )
    await talk.tell(model=scenes, reply=once)
    assert (ran, talk.asked) == ([], [])
    assert "read" not in {spec.name for request in talk.requests for spec in request.tools}


async def test_a_grant_given_below_holds_above_and_is_no_wider() -> None:
    ran: list[str] = []
    talk = Talk(reader(ran), delegate(SubagentRequest("")))
    again = [
        calls(call("delegate", task="sub")),
        calls(call("read", path="a")),
        calls(call("read", path="b")),
        say("."),
    ]
    scenes = Scenes(go=again, sub=[calls(call("read", path="a")), say("Below.")])
    replies = iter([{"allow": "always"}, {"deny": "no"}])
    await talk.tell(model=scenes, reply=lambda gate: next(replies))
    assert ran == ["a", "a"]
    assert [gate.arguments for gate in talk.asked] == ['{"path":"a"}', '{"path":"b"}']
    await talk.check()


async def test_what_is_said_to_be_shadowed_does_never_decide() -> None:
    chance = random.Random(7)
    for _ in range(300):
        rules = [*some_rules(chance, "config"), *some_rules(chance, "session")]
        policy = Policy(rules)
        shadowed = [rule.rule for rule in find_shadowed_rules(rules)]
        for value in VALUES:
            cases = Permissions(rules).cases(reader([]).spec, {"path": value}, TurnOptions())
            decided = policy.decide("read", cases).rule
            # Of two that say the same, the other may be equal to it.
            assert decided is None or not any(decided is rule for rule in shadowed)
