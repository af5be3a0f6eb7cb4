"""Rules: deny beats ask beats allow, whatever the order; what no rule fits is asked."""

import random
import shlex
import tomllib
from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.core.rules.patterns import SUBJECT_KINDS
from everturn.core.rules.policy import (
    LAYERS,
    MAX_CASES,
    STRICTEST_FIRST,
    Layer,
    Policy,
    PolicyDecision,
    Rule,
    RuleAction,
    Subject,
    SubjectCase,
    SubjectKind,
    strictest_decision,
)
from everturn.core.rules.shadowed_rules import find_shadowed_rules


def command(line: str) -> SubjectCase:
    return {"command": Subject("command", line, tuple(shlex.split(line)))}


def path(text: str) -> SubjectCase:
    return {"path": Subject("path", text)}


def judged(rules: Sequence[Rule], tool: str, *cases: SubjectCase) -> RuleAction:
    return Policy(rules).decide(tool, cases).action


LOG = Rule("run_shell", "allow", {"command": "git log *"}, source="everturn.toml:1")
NO_RM = Rule("run_shell", "deny", {"command": "rm *"})


# -------------------------------------------------------------------------------------------------------- one by one


def test_what_no_rule_fits_is_asked_and_can_be_granted() -> None:
    judgement = Policy([LOG]).decide("run_shell", [command("git push")])

    assert (judgement.action, judgement.rule, judgement.is_final) == ("ask", None, False)
    assert judgement.case == {"command": "git push"}
    assert (
        judged([LOG, Rule("run_shell", "allow", {"command": "git push"}, "grants")], "run_shell", command("git push"))
        == "allow"
    )


def test_an_ask_that_a_rule_demands_beats_a_grant() -> None:
    ask = Rule("run_shell", "ask", {"command": "git push *"}, "defaults")
    judgement = Policy([ask, Rule("run_shell", "allow", {}, "grants")]).decide("run_shell", [command("git push")])

    assert (judgement.action, judgement.rule, judgement.is_final) == ("ask", ask, True)


def test_a_call_is_as_good_as_its_worst_case() -> None:
    policy = Policy([LOG, NO_RM])

    assert policy.decide("run_shell", [command("git log"), command("git log x")]).action == "allow"
    assert policy.decide("run_shell", [command("git log"), command("ls")]).action == "ask"
    worst = policy.decide("run_shell", [command("git log"), command("ls"), command("rm x")])
    assert (worst.action, worst.rule, worst.case) == ("deny", NO_RM, {"command": "rm x"})


def test_an_ask_that_a_rule_demands_is_named_before_one_for_want_of_a_rule() -> None:
    ask = Rule("run_shell", "ask", {"command": "git push"})
    judgement = Policy([ask]).decide("run_shell", [command("ls"), command("git push")])

    assert (judgement.rule, judgement.is_final) == (ask, True)


def test_a_call_without_cases_is_judged_by_its_tool_alone() -> None:
    assert judged([], "clock") == "ask"
    assert judged([Rule("clock", "allow")], "clock") == "allow"
    assert judged([Rule("clock", "allow", {"zone": "*"})], "clock") == "ask"


def test_a_rule_does_not_fit_a_case_that_lacks_what_it_looks_at() -> None:
    rules = [Rule("read", "allow", {"path": "src/**", "mode": "text"})]

    assert judged(rules, "read", {**path("src/a"), "mode": Subject("text", "text")}) == "allow"
    assert judged(rules, "read", {**path("src/a"), "mode": Subject("text", "raw")}) == "ask"
    assert judged(rules, "read", {**path("src/a"), "mode": None}) == "ask"
    assert judged(rules, "read", path("src/a")) == "ask"


@pytest.mark.parametrize(
    ("pattern", "tool", "allowed", "denied"),
    [
        ("read_file", "read_file", True, True),
        ("read_file", "Read-File", False, True),
        ("read_*", "read_file", True, True),
        ("READ-*", "read_file", False, True),
        ("read_*", "write_file", False, False),
        ("*", "anything", True, True),
        ("mcp?files?*", "mcp/files/read", True, True),
        ("read_file", "read_files", False, False),
    ],
)
def test_a_tool_is_allowed_by_its_name_and_denied_by_any_spelling(
    pattern: str, tool: str, allowed: bool, denied: bool
) -> None:
    assert (judged([Rule(pattern, "allow")], tool) == "allow") is allowed
    assert (judged([Rule(pattern, "deny")], tool) == "deny") is denied


@pytest.mark.parametrize("subject", [Subject("path", "a\0"), Subject("url", "no url"), Subject("command", "ls")])
def test_what_cannot_be_read_is_denied_even_where_everything_is_allowed(subject: Subject) -> None:
    judgement = Policy([Rule("*", "allow")]).decide("tool", [{"it": subject}])

    assert (judgement.action, judgement.is_final) == ("deny", True)
    assert "cannot be read" in judgement.reason


def test_too_many_cases_are_denied() -> None:
    policy = Policy([Rule("*", "allow")])

    assert policy.decide("tool", [path("a")] * MAX_CASES).action == "allow"
    judgement = policy.decide("tool", [path("a")] * (MAX_CASES + 1))
    assert (judgement.action, judgement.is_final) == ("deny", True)
    assert "257 cases" in judgement.reason


def test_of_equally_strict_rules_the_highest_layer_is_named_then_the_one_that_says_most_then_the_last() -> None:
    low = Rule("read", "deny", {"path": "src/a.py"}, "defaults")
    wide, narrow = Rule("read", "deny", {"path": "src/**"}), Rule("read", "deny", {"path": "src/a*"})
    twin = replace(narrow, source="later")

    def named(*rules: Rule) -> Rule | None:
        return Policy(rules).decide("read", [path("src/a.py")]).rule

    assert named(low, wide) is wide
    assert named(wide, low) is wide
    assert named(narrow, wide, low) is narrow
    assert named(narrow, twin) is twin
    assert named(wide, Rule("*", "deny", {}, "grants")) == Rule("*", "deny", {}, "grants")


def test_a_tool_is_denied_outright_only_if_no_argument_could_help() -> None:
    policy = Policy(
        [
            Rule("shell", "deny"),
            Rule("web_*", "deny", {"url": "*"}),
            Rule("read", "deny", {"path": "/etc/**"}),
            Rule("ask", "ask"),
            Rule("ok", "allow"),
        ]
    )

    assert [
        tool for tool in ("shell", "Shell", "web_get", "read", "ask", "ok", "other") if policy.denies_outright(tool)
    ] == [
        "shell",
        "Shell",
        "web_get",
    ]


def test_the_names_that_rules_look_at() -> None:
    assert Policy([LOG, NO_RM, Rule("a", "allow", {"to.city": "Bern"})]).names == {"command", "to.city"}


def test_nothing_to_judge_is_asked() -> None:
    assert strictest_decision().action == "ask"


# -------------------------------------------------------------------------------------------------------- as it reads


def test_a_rule_reads_as_it_is_written() -> None:
    assert str(LOG) == '{tool = "run_shell", match = {command = "git log *"}, action = "allow"}'
    assert str(Rule("*", "deny")) == '{tool = "*", action = "deny"}'


@given(st.text(), st.dictionaries(st.text(), st.text(), max_size=3))
def test_whatever_a_rule_says_can_be_read_again_from_how_it_reads(tool: str, match: dict[str, str]) -> None:
    rule = Rule(tool, "ask", match)
    again = tomllib.loads(f"rule = {rule}")["rule"]

    assert Rule(again["tool"], again["action"], again.get("match", {})) == rule
    assert str(rule).isprintable()


# --------------------------------------------------------------------------------------------------------- in general

TOOLS = st.sampled_from(["read", "Read", "re-ad", "re_ad", "run", "*", "r*", "re?d"])
PATTERNS = st.sampled_from(
    [
        "*",
        "**",
        "a",
        "A",
        "a/*",
        "a/**",
        "*b",
        "a *",
        "a b",
        "https://a.com/**",
        "https://*/b",
        "/a",
        "../*",
        "'",
        "a?b",
    ]
)
VALUES = st.sampled_from(["a", "A", "a/b", "a/b/c", "/a", "../a", "a b", "b", "a b c", "https://a.com/b", "a\0", ""])
RULES = st.builds(
    Rule,
    TOOLS,
    st.sampled_from(get_args(RuleAction)),
    st.dictionaries(st.sampled_from(["x", "y"]), PATTERNS, max_size=2),
    st.sampled_from(get_args(Layer)),
)
SUBJECTS = st.builds(
    lambda kind, text: Subject(kind, text, tuple(text.split())), st.sampled_from(SUBJECT_KINDS), VALUES
)
CASES = st.lists(st.dictionaries(st.sampled_from(["x", "y"]), st.none() | SUBJECTS, max_size=2), max_size=3)
CALLED = st.sampled_from(["read", "Read", "re_ad", "run", "walk"])


def strictness(action: RuleAction) -> int:
    return -STRICTEST_FIRST.index(action)


@given(st.lists(RULES, max_size=8), CALLED, CASES, st.randoms(use_true_random=False))
def test_the_order_of_rules_never_matters(
    rules: list[Rule], tool: str, cases: list[SubjectCase], chance: random.Random
) -> None:
    first = Policy(rules).decide(tool, cases)
    chance.shuffle(rules)
    second = Policy(rules).decide(tool, cases)

    assert (first.action, first.is_final) == (second.action, second.is_final)
    assert first.rule == second.rule or (first.rule and second.rule and first.rule.layer == second.rule.layer)


@given(st.lists(RULES, max_size=8), st.sampled_from(LAYERS), CALLED, CASES)
def test_layers_never_matter_to_what_is_decided(
    rules: list[Rule], layer: Layer, tool: str, cases: list[SubjectCase]
) -> None:
    assert judged(rules, tool, *cases) == judged([replace(rule, layer=layer) for rule in rules], tool, *cases)


@given(st.lists(RULES, max_size=8), RULES, CALLED, CASES)
def test_one_more_rule_moves_a_judgement_only_its_own_way(
    rules: list[Rule], more: Rule, tool: str, cases: list[SubjectCase]
) -> None:
    before, after = Policy(rules).decide(tool, cases), Policy([*rules, more]).decide(tool, cases)

    if more.action == "allow":  # it may answer what nobody asked about, and nothing else
        assert strictness(after.action) <= strictness(before.action)
        assert after.action == before.action or not before.is_final
    else:
        assert strictness(after.action) >= strictness(before.action)
        assert after.action in (before.action, more.action)


@given(st.lists(RULES, max_size=5), st.lists(RULES, max_size=5), CALLED, CASES)
def test_a_child_never_has_more_authority_than_its_parent(
    mine: list[Rule], parents: list[Rule], tool: str, cases: list[SubjectCase]
) -> None:
    child, parent = Policy(mine).decide(tool, cases), Policy(parents).decide(tool, cases)
    both = strictest_decision(child, parent)

    assert strictness(both.action) == max(strictness(child.action), strictness(parent.action))
    assert both in (child, parent)
    assert strictest_decision(parent, child).action == both.action
    assert both.is_final or not any(
        decision.is_final and decision.action == both.action for decision in (child, parent)
    )


@given(st.lists(RULES, max_size=8), CALLED, CASES)
def test_the_rule_that_decides_is_the_first_that_fits(rules: list[Rule], tool: str, cases: list[SubjectCase]) -> None:
    policy = Policy(rules)
    for case, judgement in zip(cases, policy.decide_each(tool, cases), strict=True):
        fitting = policy.matching_rules(tool, case)
        if judgement.rule is not None:
            assert fitting[0] == judgement.rule
            assert all(strictness(rule.action) <= strictness(judgement.action) for rule in fitting)
        elif judgement.action == "ask":
            assert not fitting


@given(st.lists(RULES, max_size=6), CALLED, SUBJECTS, SUBJECTS)
def test_a_tool_that_is_denied_outright_is_denied_whatever_its_values(
    rules: list[Rule], tool: str, x: Subject, y: Subject
) -> None:
    policy = Policy(rules)

    assert not policy.denies_outright(tool) or policy.decide(tool, [{"x": x, "y": y}]).action == "deny"


# ----------------------------------------------------------------------------------------------------------- shadows


@settings(max_examples=300)
@given(st.lists(RULES, min_size=2, max_size=5), CALLED, CASES)
def test_a_shadowed_rule_never_decides_and_is_not_missed(
    rules: list[Rule], tool: str, cases: list[SubjectCase]
) -> None:
    rules = [replace(rule, source=str(place)) for place, rule in enumerate(rules)]
    policy = Policy(rules)
    for shadowed in find_shadowed_rules(rules):
        judgement = policy.decide(tool, cases)
        assert judgement.rule != shadowed.rule
        assert Policy(rule for rule in rules if rule != shadowed.rule).decide(tool, cases) == judgement


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ({}, {"path": "a"}),
        ({"path": "**"}, {"path": "src/*"}),
        ({"path": "src/**"}, {"path": "src/core/*"}),
        ({"command": "git *"}, {"command": "git log *"}),
        ({"command": "git *"}, {"command": "git push"}),
        ({"url": "https://a.com/**"}, {"url": "https://a.com/x/*"}),
        ({"path": "src/a"}, {"path": "src/a"}),
        ({"path": "src/a"}, {"path": "src/a", "mode": "raw"}),
    ],
)
def test_an_allow_under_a_wider_deny_is_shadowed(wide: dict[str, str], narrow: dict[str, str]) -> None:
    deny, allow = Rule("*", "deny", wide), Rule("tool", "allow", narrow)

    assert [(found.rule, found.by) for found in find_shadowed_rules([allow, deny])] == [(allow, deny)]
    assert find_shadowed_rules([replace(allow, action="deny"), replace(deny, action="allow")]) == []


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ({"path": "src/*"}, {"path": "src/**"}),
        ({"path": "src/**"}, {"path": "src/../*"}),
        ({"path": "a"}, {}),
        ({"path": "a", "mode": "raw"}, {"path": "a"}),
        ({"command": "git lo*"}, {"command": "git log *"}),
        ({"a path": "git *"}, {"a path": "git */x"}),
        ({"a path": "git *"}, {"a path": "git **"}),
    ],
)
def test_an_allow_that_may_still_decide_is_not_shadowed(wide: dict[str, str], narrow: dict[str, str]) -> None:
    assert find_shadowed_rules([Rule("tool", "deny", wide), Rule("tool", "allow", narrow)]) == []


def test_of_two_that_say_the_same_the_one_that_is_never_named_is_shadowed() -> None:
    once, again = Rule("a", "deny", source="1"), Rule("a", "deny", source="2")
    granted = Rule("a", "deny", layer="grants", source="0")

    assert [found.rule.source for found in find_shadowed_rules([once, again])] == ["1"]
    assert [found.rule.source for found in find_shadowed_rules([granted, once])] == ["1"]


def test_kinds_and_actions_are_those_the_rules_are_written_with() -> None:
    assert set(SUBJECT_KINDS) == set(get_args(SubjectKind))
    assert set(STRICTEST_FIRST) == set(get_args(RuleAction))
    assert set(LAYERS) == set(get_args(Layer))
    assert PolicyDecision("ask").is_final is False
