"""Rules that hold: whatever a model writes, what is not allowed does not run, here or below."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from everturn import tool
from everturn.calls.output import OutputLimits
from everturn.core.chunks import MAX_CALLS_PER_STEP, TOO_MANY_CALLS
from everturn.core.events import CallFinished, CallStarted, PermissionDecided
from everturn.core.gates import Gate
from everturn.core.ports import Tool
from everturn.core.rules.policy import Layer, Rule
from everturn.core.rules.shadowed_rules import find_shadowed_rules
from everturn.core.store_ports import Store
from everturn.testing import MemoryStore, call, calls, say
from tests.helpers.conversations import Talk, check_judged, never
from tests.helpers.shell_corpus import ASKED, BENIGN, HOSTILE
from tests.trust.vectors import AT_HOME, INSIDE, PATHS, SCOPED, SECRETS, URLS

GIT_LOG = Rule("run_shell", "allow", {"command": "git log *"})
WIDE = OutputLimits(parallel=64)


def none_of_it(gate: Gate) -> dict[str, Any]:
    return {"deny": "no", "others": True}


def shell(ran: list[str]) -> Tool:
    @tool(approval="ask", subjects={"command": "command"}, repeatable=True)
    async def run_shell(command: str) -> str:
        ran.append(command)
        return "ok"

    return run_shell


def reader(ran: list[str]) -> Tool:
    @tool(approval="ask", subjects={"path": "path"}, repeatable=True)
    async def read(path: str) -> str:
        ran.append(path)
        return "ok"

    return read


def fetcher(ran: list[str]) -> Tool:
    @tool(approval="ask", subjects={"url": "url"}, repeatable=True)
    async def fetch(url: str) -> str:
        ran.append(url)
        return "ok"

    return fetch


async def attempt(talk: Talk, name: str, key: str, values: Sequence[str]) -> None:
    """Let a model call a tool with all of these, as many at once as it may, and a person deny what they are asked."""
    tool_calls = [call(name, **{key: value}) for value in values]
    steps = [calls(*tool_calls[at : at + MAX_CALLS_PER_STEP]) for at in range(0, len(tool_calls), MAX_CALLS_PER_STEP)]
    await talk.tell(*steps, say("Done."), reply=none_of_it)
    await talk.check()
    settled = await talk.settled()
    assert len(settled) == len(values)
    assert not any(TOO_MANY_CALLS in event.output.text for event in settled)  # every one of them was judged


# Commands -------------------------------------------------------------------------------------------------------------


async def test_no_command_that_does_more_than_it_may_is_run_and_every_one_that_does_not_is(store: Store) -> None:
    ran: list[str] = []
    talk = Talk(shell(ran), rules=[GIT_LOG], limits=WIDE, store=store)
    # In a database hundreds of questions take their time, and rules know nothing of stores: there every tenth line.
    await attempt(talk, "run_shell", "command", HOSTILE if isinstance(store, MemoryStore) else HOSTILE[::10])
    assert len(set(HOSTILE)) >= 300
    assert ran == []
    assert await talk.events(CallStarted) == []

    other = Talk(shell(ran), rules=[GIT_LOG], limits=WIDE)
    plain = [line for line in BENIGN if line not in ASKED]
    await attempt(other, "run_shell", "command", plain)
    assert sorted(ran) == sorted(plain)
    assert other.asked == []


async def test_where_everything_else_is_denied_nobody_is_asked() -> None:
    """Deny beats allow, so `all else` is said by what it is; what cannot be read is denied in any case."""
    ran: list[str] = []
    rules = [GIT_LOG, *(Rule("run_shell", "deny", {"command": f"{name} *"}) for name in ("rm", "git push", ">", "<"))]
    talk = Talk(shell(ran), rules=rules, limits=WIDE)
    lines = ["git log; rm x", "/bin/rm x", "RM x", "git log $(rm x)", "git push", "git log > x", "git log '"]
    await attempt(talk, "run_shell", "command", [*lines, "git log -1"])
    assert (ran, talk.asked) == (["git log -1"], [])
    assert [event.state for event in await talk.settled()].count("denied") == len(lines)


# Order and layers -----------------------------------------------------------------------------------------------------

OVERLAPPING = [
    Rule("read", "allow", {"path": "**"}),
    Rule("read", "ask", {"path": "docs/draft/**"}),
    Rule("read", "deny", {"path": "docs/draft/secret*"}),
    Rule("*", "allow", {"path": "docs/draft/secret.txt"}),
]
PLACES = ("runtime", "agent", "session")


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
async def test_deny_beats_ask_beats_allow_in_whatever_order_and_wherever_the_rules_stand(order: Sequence[int]) -> None:
    rules = [OVERLAPPING[at] for at in order]
    for shift in range(len(PLACES) + 1):
        ran: list[str] = []
        placed: dict[str, list[Rule]] = {place: [] for place in PLACES}
        for at, rule in enumerate(rules):  # the last shift puts all of them into one place
            place = PLACES[(at + shift) % 3] if shift < 3 else "runtime"
            layer: Layer = "config" if place == "runtime" else "agent" if place == "agent" else "session"
            placed[place].append(Rule(rule.tool, rule.action, rule.match, layer))
        talk = Talk(reader(ran), rules=placed["runtime"])
        talk.options["rules"] = (*placed["agent"], *placed["session"])
        await attempt(talk, "read", "path", ["docs/draft/secret.txt", "docs/draft/a.md", "docs/a.md"])
        assert ran == ["docs/a.md"]
        assert [gate.arguments for gate in talk.asked] == ['{"path":"docs/draft/a.md"}']
        judged = {event.call: event for event in await talk.events(PermissionDecided)}
        denied = next(event for event in judged.values() if event.rule is not None and event.rule.action == "deny")
        assert "docs/draft/secret*" in denied.why  # it names the rule that decided


async def test_a_grant_is_beaten_by_a_deny_and_by_an_explicit_ask_and_by_nothing_else() -> None:
    ran: list[str] = []
    talk = Talk(reader(ran))
    script = [calls(call("read", path="a")), say("1")]
    await talk.tell(*script, reply=lambda gate: {"allow": "always"})
    assert (ran, len(talk.asked)) == (["a"], 1)

    async def again(rules: list[Rule], own: tuple[Rule, ...] = ()) -> tuple[list[str], list[str]]:
        """The same in another turn of another process: what ran, and what was asked."""
        ran.clear()
        talk.asked.clear()
        talk.rules, talk.options["rules"] = rules, own
        script.extend([calls(call("read", path="a")), say("more")])
        await talk.tell(*script, reply=never)
        return list(ran), [gate.kind for gate in talk.asked]

    assert await again([]) == (["a"], [])
    for layer in ("defaults", "config", "agent", "session"):
        assert await again([Rule("read", "deny", {"path": "a"}, layer)]) == ([], [])
        assert await again([Rule("read", "ask", {"path": "a"}, layer)]) == ([], ["call"])
        assert await again([], (Rule("read", "deny", {"path": "a"}, layer),)) == ([], [])
        assert await again([], (Rule("read", "ask", {"path": "a"}, layer),)) == ([], ["call"])
    assert talk.asked[-1].offers == ()  # what a rule demands to be asked cannot be allowed once and for all
    assert await again([Rule("read", "ask", {"path": "b"}), Rule("*", "deny", {"path": "c"})]) == (["a"], [])
    await talk.check()


async def test_what_no_rule_fits_is_asked_and_a_tool_that_runs_by_itself_can_be_held_back() -> None:
    ran: list[str] = []

    @tool(read_only=True)
    async def look(path: str) -> str:
        ran.append(path)
        return "ok"

    talk = Talk(reader(ran), rules=[Rule("read", "allow", {"path": "a"})])
    await attempt(talk, "read", "path", ["a", "b", "aa", "A"])
    assert (ran, len(talk.asked)) == (["a"], 3)
    ran.clear()
    free = Talk(look, rules=[Rule("look", "deny", {"path": "*secret*"}), Rule("look", "ask", {"path": "draft*"})])
    await attempt(free, "look", "path", ["open", "a secret", "A SECRET", "draft 1"])
    assert (ran, [gate.arguments for gate in free.asked]) == (["open"], ['{"path":"draft 1"}'])


@pytest.mark.parametrize(
    "rule", [Rule("read", "deny"), Rule("re*", "deny"), Rule("*", "deny"), Rule("READ", "deny", {"path": "**"})]
)
@pytest.mark.parametrize("where", ["runtime", "turn"])
async def test_what_is_denied_outright_is_not_offered_and_not_run(rule: Rule, where: str) -> None:
    ran: list[str] = []

    @tool
    async def other() -> str:
        return "ok"

    talk = Talk(reader(ran), other, rules=[rule] if where == "runtime" else [])
    talk.options["rules"] = (rule,) if where == "turn" else ()
    await attempt(talk, "read", "path", ["a"])
    assert "read" not in [spec.name for spec in talk.requests[0].tools]
    assert (ran, talk.asked, [event.state for event in await talk.settled()]) == ([], [], ["denied"])


async def test_a_tool_that_was_not_selected_is_not_offered_and_not_run() -> None:
    ran: list[str] = []
    talk = Talk(reader(ran), shell(ran), rules=[Rule("*", "allow")], tools=("run_*",))
    await attempt(talk, "read", "path", ["a"])
    assert [spec.name for spec in talk.requests[0].tools] == ["run_shell"]
    assert (ran, [event.state for event in await talk.settled()]) == ([], ["failed"])


# Paths and addresses --------------------------------------------------------------------------------------------------


async def test_no_path_outside_of_what_is_allowed_is_read() -> None:
    ran: list[str] = []
    assert len(set(PATHS)) >= 50
    await attempt(Talk(reader(ran), rules=[Rule("read", "allow", {"path": "docs/**"})]), "read", "path", PATHS)
    assert ran == []
    await attempt(Talk(reader(ran), rules=[Rule("read", "allow", {"path": "docs/**"})]), "read", "path", INSIDE)
    assert sorted(ran) == sorted(INSIDE)


async def test_no_path_that_leads_to_what_is_denied_is_read() -> None:
    ran: list[str] = []
    rules = [Rule("read", "allow", {"path": "**"}), Rule("read", "deny", {"path": "secrets/**"})]
    await attempt(talk := Talk(reader(ran), rules=rules), "read", "path", [*SECRETS, *PATHS[:9], "free/a"])
    assert {path for path in ran if "secret" in path.lower()} <= {"docs/../secret", "docs/a/../../secret"} | set(PATHS)
    assert [path for path in ran if path in SECRETS] == []
    assert "free/a" in ran
    assert not any("secrets" in gate.arguments.lower() for gate in talk.asked if "../docs" not in gate.arguments)


async def test_no_address_outside_of_what_is_allowed_is_fetched() -> None:
    ran: list[str] = []
    assert len(set(URLS)) >= 50
    home = [Rule("fetch", "allow", {"url": "https://docs.example.com/**"})]
    await attempt(Talk(fetcher(ran), rules=home), "fetch", "url", URLS)
    assert ran == []
    await attempt(Talk(fetcher(ran), rules=home), "fetch", "url", AT_HOME)
    assert sorted(ran) == sorted(AT_HOME)
    ran.clear()
    scoped = [Rule("fetch", "allow", {"url": "https://docs.example.com/public/**"})]
    await attempt(Talk(fetcher(ran), rules=scoped), "fetch", "url", SCOPED)
    assert ran == []


async def test_no_address_that_leads_to_what_is_denied_is_fetched() -> None:
    ran: list[str] = []
    rules = [Rule("fetch", "allow", {"url": "https://**"}), Rule("fetch", "allow", {"url": "http://**"})]
    rules.append(Rule("fetch", "deny", {"url": "https://evil.com/**"}))
    vectors = [
        "https://evil.com", "https://evil.com/", "https://EVIL.com/a", "HTTPS://evil.COM/a", "https://evil.com:443/a", "https://evil.com./a", "https://evil.com?x", "https://evil.com#x",
        "https://user@evil.com/a", "https://\uff45vil.com/a", "https://evil\u3002com/a", "https://evil.com/../a", "https://evil.com//a", "https://%65vil.com/a", "https://evil.com\\a", "https://ok.com@evil.com/",
    ]  # fmt: skip
    await attempt(talk := Talk(fetcher(ran), rules=rules), "fetch", "url", [*vectors, "https://ok.com/a"])
    assert ran in ([], ["https://ok.com/a"])
    assert {event.state for event in await talk.settled()} <= {"denied", "completed"}


# What is told of rules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "by"),
    [
        (Rule("read", "allow", {"path": "a"}), Rule("read", "deny")),
        (Rule("read", "allow", {"path": "docs/a/**"}), Rule("read", "deny", {"path": "docs/**"})),
        (Rule("run_shell", "allow", {"command": "git log *"}), Rule("run_shell", "deny", {"command": "*"})),
        (Rule("run_shell", "allow", {"command": "git log -1"}), Rule("run_shell", "ask", {"command": "git *"})),
        (Rule("read", "ask", {"path": "a"}), Rule("*", "deny")),
        (Rule("read", "allow"), Rule("re*", "ask")),
    ],
)
def test_a_rule_that_can_never_decide_is_named_with_the_one_in_its_way(rule: Rule, by: Rule) -> None:
    for rules in ([rule, by], [by, rule]):
        [shadowed] = find_shadowed_rules(rules)
        assert (shadowed.rule, shadowed.by) == (rule, by)
        assert shadowed.why
    distinct_rules = [Rule("read", "allow", {"path": "docs/**"}), Rule("read", "deny", {"path": "docs/secret"})]
    assert find_shadowed_rules(distinct_rules) == []


def test_the_checker_finds_a_start_that_was_not_judged() -> None:
    judged = PermissionDecided(turn="t", call="c", tool="x", identity="i", hash="0" * 64, allowed=True, why="")
    start = CallStarted(turn="t", call="c", tool="x", arguments="{}", hash="0" * 64, key="c")
    assert check_judged([judged, start]) == 1
    other = CallStarted(turn="t", call="c", tool="x", arguments="{}", hash="1" * 64, key="c")
    between = CallFinished(turn="t", call="d", state="failed", output=None)  # pyright: ignore[reportArgumentType]
    for wrong in (
        [start],
        [judged, other],
        [start, judged],
        [judged, between, start],
        [judged, judged, start],
        [judged],
    ):
        with pytest.raises(AssertionError):
            check_judged(wrong)
