"""Calls that go round in circles: somebody is asked at the call that completes the third round, whoever makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from everturn import ToolContext, tool
from everturn.core.events import LimitReached
from everturn.core.gates import Gate
from everturn.core.ports import SubagentRequest, Tool
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.models.scripted import ScriptedCall
from everturn.testing import ScriptedHang, ScriptedModel, call, calls, say
from tests.helpers.conversations import Reply, Scenes, Talk, never, once
from tests.helpers.waiting import wait_until


class World:
    """Tools that count."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def tools(self) -> list[Tool]:
        ran = self.ran

        @tool(read_only=True)
        async def look(path: str, deep: bool = False) -> str:
            ran.append(path)
            return "nothing new"

        @tool(idempotent=True)
        async def put(path: str) -> str:
            ran.append(f"put {path}")
            return "done"

        @tool(read_only=True, repeatable=True)
        async def poll(job: str) -> str:
            ran.append(f"poll {job}")
            return "not yet"

        @tool(idempotent=True, repeatable=True)
        async def delegate(task: str, ctx: ToolContext) -> str:
            return (await ctx.run_subagent(SubagentRequest(task, max_steps=40))).text

        @tool(idempotent=True)
        async def agent(task: str, ctx: ToolContext) -> str:
            return (await ctx.run_subagent(SubagentRequest(task, max_steps=40))).text

        return [look, put, poll, delegate, agent]


def steps(letters: str, each: int = 1) -> list[Any]:
    """A script that looks at these, so many in one step, and then says so."""
    tool_calls = [call("look", path=letter) for letter in letters]
    return [*(calls(*tool_calls[at : at + each]) for at in range(0, len(tool_calls), each)), say("Done.")]


async def run_script(script: Sequence[Any], reply: Reply = never, **more: Any) -> tuple[World, Talk]:
    """A turn of that script, and what came of it."""
    world = World()
    talk = Talk(*world.tools(), **more)
    await talk.tell(*script, reply=reply)
    await talk.check()
    return world, talk


def looked_at(gates: Sequence[Gate]) -> list[str]:
    return [gate.arguments.removeprefix('{"path":"').removesuffix('"}') for gate in gates]


# What goes round ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [1, 2, 3, 12])
@pytest.mark.parametrize("before", ["", "x", "xyz"])
@pytest.mark.parametrize("pattern", ["a", "ab", "abc", "abcd", "aab", "aabb", "abb"])
async def test_somebody_is_asked_at_the_call_that_completes_the_third_round(
    pattern: str, before: str, each: int
) -> None:
    rounds = before + pattern * 3
    world, talk = await run_script(steps(rounds, each), reply=never)
    assert [(gate.kind, gate.tool) for gate in talk.asked] == [("loop", "look")]
    assert looked_at(talk.asked) == [pattern[-1]]
    assert sorted(world.ran) == sorted(rounds[:-1])
    [offer] = talk.asked[0].offers
    assert (offer.tool, offer.match, offer.action) == ("doom_loop", {"tool": "look"}, "allow")
    short, quiet = await run_script(steps(rounds[:-1], each))
    assert (quiet.asked, sorted(short.ran)) == ([], sorted(rounds[:-1]))


@pytest.mark.parametrize(
    "rounds", ["abcde" * 4, "ab" * 2 + "c" + "ab" * 2, "aabaab", "abcabdabc", "aabbccddaabbccdd", "abacabad", "aa"]
)
async def test_what_does_not_come_round_a_third_time_is_never_asked_about(rounds: str) -> None:
    world, talk = await run_script(steps(rounds))
    assert (talk.asked, world.ran) == ([], list(rounds))


@pytest.mark.parametrize("pattern", ["a", "ab", "abcd"])
async def test_it_is_asked_about_once_in_a_model_that_never_stops_and_is_told_no(pattern: str) -> None:
    world, talk = await run_script(steps(pattern * 6), reply=never)
    assert world.ran == list(pattern * 3)[:-1]
    assert len(talk.asked) == 1


SAME = [
    '{"path":"a","deep":true}',
    '{"deep":true,"path":"a"}',
    '{ "path" : "a" , "deep" : true }',
    '{\n\t"deep": true,\r\n  "path": "a"\n}\n',
    '{"p\\u0061th":"\\u0061","deep":true}',
]


@pytest.mark.parametrize("at", range(len(SAME)))
async def test_the_same_call_in_other_words_is_the_same_call(at: int) -> None:
    texts = (SAME[at:] + SAME[:at])[:3]
    names = ("look", "Look", "LOOK")
    script = [calls(ScriptedCall(name, text)) for name, text in zip(names, texts, strict=True)]
    world, talk = await run_script([*script, say("Done.")])
    assert ([gate.kind for gate in talk.asked], world.ran) == (["loop"], ["a", "a"])


@pytest.mark.parametrize(
    "texts",
    [
        ['{"path":"a"}', '{"path":"a",}', "{'path':'a'}"],
        ['{"path":"a",}', "{'path':'a'}", '{path:"a"}'],
        ['{"path":"a"}', '{"path":"a"}', '{path:"a"}'],
    ],
)
async def test_what_is_repaired_to_the_same_call_is_the_same_call(texts: list[str]) -> None:
    script = [calls(ScriptedCall("look", text)) for text in texts]
    world, talk = await run_script([*script, say("Done.")])
    assert ([gate.kind for gate in talk.asked], world.ran) == (["loop"], ["a", "a"])


async def test_calls_that_fail_count_as_calls() -> None:
    bad, good = calls(call("look", wrong=1)), calls(call("look", path="a"))
    unknown = calls(call("nothing_like_that"))
    world, talk = await run_script([bad, good, bad, good, bad, good, say("Done.")])
    assert (looked_at(talk.asked), world.ran) == (["a"], ["a", "a"])
    # In between they part what would be three in a row, and make a pattern of two of it.
    world, talk = await run_script([good, unknown, good, unknown, good, unknown, good, say("Done.")])
    assert (looked_at(talk.asked), world.ran) == (["a"], ["a", "a", "a"])


async def test_three_identical_calls_in_one_step_run_twice() -> None:
    world, talk = await run_script(steps("aaa", each=3))
    assert (world.ran, len(talk.asked)) == (["a", "a"], 1)


async def test_what_is_meant_to_be_repeated_is_never_flagged_and_leaves_no_mark() -> None:
    polls = [calls(call("poll", job="j")) for _ in range(20)]
    world, talk = await run_script([*polls, say("Done.")])
    assert (talk.asked, len(world.ran)) == ([], 20)
    look = calls(call("look", path="a"))
    world, talk = await run_script([look, *polls[:2], look, *polls[:3], look, say("Done.")])
    assert looked_at(talk.asked) == ["a"]
    assert world.ran.count("a") == 2


async def test_two_that_differ_are_never_flagged() -> None:
    script = [calls(call("look", path=str(at))) for at in range(20)]
    world, talk = await run_script([*script, say("Done.")])
    assert (talk.asked, len(world.ran)) == ([], 20)
    mixed = [calls(call("look", path="a")), calls(call("put", path="a"))]
    world, talk = await run_script([*mixed, *mixed, say("Done.")])
    assert (talk.asked, len(world.ran)) == ([], 4)


# What is answered -----------------------------------------------------------------------------------------------------


async def test_once_is_for_this_time_and_it_is_asked_again_the_next() -> None:
    world, talk = await run_script(steps("aaaaa"), reply=once)
    assert (len(talk.asked), world.ran) == (3, ["a"] * 5)


async def test_a_denial_is_reported_to_the_model() -> None:
    _, talk = await run_script(steps("aaa"), reply=lambda gate: {"deny": "you have seen it"})
    assert "you have seen it" in str(talk.requests[-1].messages[-2])  # the last says that it is over
    assert [event.state for event in await talk.settled()] == ["completed", "completed", "denied"]


@pytest.mark.parametrize("rules", [[], [Rule("doom_loop", "deny", {"tool": "look"})]], ids=["a person", "a rule"])
async def test_a_denied_loop_ends_the_turn_however_the_model_insists(rules: list[Rule]) -> None:
    world, talk = await run_script(steps("aaaaaaa"), reply=never, rules=rules)
    last = talk.requests[-1]
    assert (len(talk.asked), len(talk.requests), world.ran) == (0 if rules else 1, 4, ["a", "a"])
    assert (last.tools, "going on with them was denied" in str(last.messages[-1])) == ([], True)
    reached = [entry.event for entry in await talk.store.events(talk.session) if isinstance(entry.event, LimitReached)]
    assert [(event.limit, event.scope) for event in reached] == [("loop", "turn")]


def always(gate: Gate) -> dict[str, Any]:
    return {"allow": "always"}


async def test_always_is_for_this_tool_in_this_session_after_a_restart_too(store: Store) -> None:
    world = World()
    talk = Talk(*world.tools(), store=store)
    script: list[Any] = steps("aaaaa")
    await talk.tell(*script, reply=always)
    assert (len(talk.asked), world.ran) == (1, ["a"] * 5)

    script += steps("bbb")  # another process, and another pattern of the same tool
    await talk.tell(*script, reply=never)
    assert (len(talk.asked), world.ran[5:]) == (1, ["b"] * 3)

    script += [*(calls(call("put", path="a")) for _ in range(3)), say("Done.")]
    await talk.tell(*script, reply=never)
    assert [gate.tool for gate in talk.asked] == ["look", "put"]
    assert world.ran[8:] == ["put a"] * 2

    talk.session = "another"
    await talk.tell(*steps("aaa"), reply=never)
    assert [gate.tool for gate in talk.asked] == ["look", "put", "look"]
    await talk.check()


@pytest.mark.parametrize("action", ["allow", "deny", "ask"])
@pytest.mark.parametrize("where", ["runtime", "turn"])
async def test_a_rule_about_loops_decides_without_a_person(action: Any, where: str) -> None:
    rule = Rule("doom_loop", action, {"tool": "look"})
    world = World()
    talk = Talk(*world.tools(), rules=[rule] if where == "runtime" else [])
    talk.options["rules"] = (rule,) if where == "turn" else ()
    script = [*steps("aaa")[:-1], *(calls(call("put", path="a")) for _ in range(3)), say("Done.")]
    await talk.tell(*script, reply=never)
    assert [gate.tool for gate in talk.asked] == {"allow": ["put"], "deny": [], "ask": ["look"]}[action]
    assert world.ran.count("a") == (3 if action == "allow" else 2)
    third = (await talk.settled())[2]
    assert third.state == ("completed" if action == "allow" else "denied")
    if action == "deny":
        assert "third time" in third.output.text
    await talk.check()


async def test_a_rule_that_allows_a_tool_does_not_allow_it_to_go_round() -> None:
    world, talk = await run_script(steps("aaa"), rules=[Rule("look", "allow", {"path": "*"}), Rule("*", "allow")])
    assert (len(talk.asked), world.ran) == (1, ["a", "a"])


# Elsewhere ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["a", "ab", "abcd"])
@pytest.mark.parametrize("rest", [1, 2])
async def test_it_is_found_although_the_process_ends_in_the_middle(pattern: str, rest: int, store: Store) -> None:
    rounds = pattern * 3
    stop = len(rounds) - rest
    world = World()
    talk = Talk(*world.tools(), store=store)
    model = ScriptedModel(*steps(rounds)[:stop], [ScriptedHang()])
    async with talk.process(model=model) as chat:
        turn = await chat.send("go")
        await wait_until(lambda: len(model.requests) > stop)
    async with talk.process(*steps(rounds)) as chat:
        await talk.play(chat, chat.turn(turn.id), never)
    assert (looked_at(talk.asked), world.ran) == ([pattern[-1]], list(rounds[:-1]))
    await talk.check()


@pytest.mark.parametrize("pattern", ["a", "ab", "abcd"])
async def test_it_is_found_in_a_sub_turn(pattern: str) -> None:
    world = World()
    talk = Talk(*world.tools())
    scenes = Scenes(go=[calls(call("delegate", task="sub")), say("Done.")], sub=steps(pattern * 3))
    await talk.tell(model=scenes, reply=never)
    assert (looked_at(talk.asked), world.ran) == ([pattern[-1]], list(pattern * 3)[:-1])
    assert talk.asked[0].session != talk.session
    await talk.check()


@pytest.mark.parametrize("by", ["delegate", "agent"])
@pytest.mark.parametrize(
    ("above", "below"), [("aa", "a"), ("a", "aa"), ("abab", "ab"), ("aba", "bab"), ("abcdabcd", "abcd")]
)
async def test_what_a_turn_began_its_sub_turn_completes(by: str, above: str, below: str) -> None:
    world = World()
    talk = Talk(*world.tools())
    scenes = Scenes(go=[*steps(above)[:-1], calls(call(by, task="sub")), say("Done.")], sub=steps(below))
    await talk.tell(model=scenes, reply=never)
    assert (looked_at(talk.asked), world.ran) == ([below[-1]], list(above + below)[:-1])
    await talk.check()


async def test_the_same_task_given_over_and_over_is_a_loop_as_well() -> None:
    world = World()
    talk = Talk(*world.tools())
    scenes = Scenes(go=[*(calls(call("agent", task="sub")) for _ in range(3)), say("Done.")], sub=[say("Nothing.")])
    await talk.tell(model=scenes, reply=never)
    assert [(gate.kind, gate.tool) for gate in talk.asked] == [("loop", "agent")]
    assert sum("sub" in str(request.messages[0].parts) for request in scenes.requests) == 2


async def test_what_is_repeatable_above_leaves_no_mark_below() -> None:
    world = World()
    talk = Talk(*world.tools())
    look, poll = calls(call("look", path="a")), calls(call("poll", job="j"))
    scenes = Scenes(go=[look, poll, look, poll, calls(call("delegate", task="sub")), say("Done.")], sub=steps("a"))
    await talk.tell(model=scenes, reply=never)
    assert (looked_at(talk.asked), world.ran.count("a")) == (["a"], 2)


async def test_a_loop_allowed_once_and_for_all_below_is_allowed_above() -> None:
    world = World()
    talk = Talk(*world.tools())
    scenes = Scenes(go=[calls(call("delegate", task="sub")), *steps("bbb")], sub=steps("aaaa"))
    await talk.tell(model=scenes, reply=always)
    assert (len(talk.asked), world.ran) == (1, ["a"] * 4 + ["b"] * 3)
