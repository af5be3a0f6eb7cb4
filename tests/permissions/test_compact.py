"""Rules on one line, as they are shown and as people type them on a command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.core.rules.patterns import explain_invalid_pattern
from everturn.core.rules.policy import Rule, RuleAction
from everturn.errors import ConfigError
from everturn.permissions.rule_text import parse_rule
from everturn.permissions.rules_file import DEFAULT_KINDS

ACTIONS = st.sampled_from(["allow", "ask", "deny"])
CHARS = st.characters(exclude_categories=["Cs"])
TOOLS = st.text(CHARS, min_size=1, max_size=20).filter(lambda text: text.isprintable() and text == text.strip())
NAMES = st.sampled_from(["path", "command", "url"]) | st.text(CHARS, min_size=1, max_size=12)
MATCHES = st.dictionaries(NAMES, st.text(CHARS, min_size=1, max_size=30), max_size=3)


def is_sound(match: dict[str, str]) -> bool:
    return not any(explain_invalid_pattern(match[name], kind) for name, kind in DEFAULT_KINDS.items() if name in match)


@given(TOOLS, ACTIONS, MATCHES.filter(is_sound))
def test_a_rule_is_read_back_as_it_is_shown(tool: str, action: RuleAction, match: dict[str, str]) -> None:
    rule = Rule(tool, action, match, "session", "--allow")
    assert parse_rule(str(rule), action, "--allow") == rule


@given(st.text(CHARS, max_size=60), ACTIONS)
def test_whatever_is_typed_is_a_rule_or_a_line_that_says_why_not(text: str, action: RuleAction) -> None:
    try:
        rule = parse_rule(text, action, "--deny")
    except ConfigError:
        return
    assert rule.action == action
    assert parse_rule(str(rule), action, "--deny") == rule


@pytest.mark.parametrize(
    ("text", "tool", "match"),
    [
        ("read_file", "read_file", {}),
        ("mcp_*", "mcp_*", {}),
        ("run_shell(git status *)", "run_shell", {"command": "git status *"}),
        ("run_shell(command=git log --format=%h, *)", "run_shell", {"command": "git log --format=%h, *"}),
        ("write_file(path=secrets/**)", "write_file", {"path": "secrets/**"}),
        ("write_file(secrets/**)", "write_file", {"path": "secrets/**"}),
        ("fetch_url(https://example.org/**)", "fetch_url", {"url": "https://example.org/**"}),
        ("send(to.city=Bern, text=Dear (Ada) *)", "send", {"to.city": "Bern", "text": "Dear (Ada) *"}),
        ('{tool = "a", match = {to.city = "Bern"}}', "a", {"to.city": "Bern"}),
    ],
)
def test_short_forms_mean_what_they_say(text: str, tool: str, match: dict[str, str]) -> None:
    assert parse_rule(text, "deny", "--deny") == Rule(tool, "deny", match, "session", "--deny")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a rule is TOOL"),
        ("send(Dear *)", "which argument of send is meant"),
        ("read_file()", "for all calls write read_file"),
        ("read_file(a", "a rule is TOOL"),
        ("run_shell(command=)", "it is empty"),
        ("a(b=1, b=2)", "b is there twice"),
        ('{tool = "a", action = "deny"}', "the rule has the action deny, but is passed as a rule to allow"),
        ('{tool = "a"}\nother = 1', "more than one rule"),
        ('{tool = "a", when = "x"}', "a rule has no 'when'"),
        ("{tool", "not a TOML table"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_hint(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match="--allow") as refused:
        parse_rule(text, "allow", "--allow")
    assert why in str(refused.value)


def test_a_grant_that_a_gate_offers_can_be_pasted() -> None:
    offered = Rule("save", "allow", {"path": "notes/a.md"}, "grants")
    assert parse_rule(str(offered), "allow", "x") == replace(offered, layer="session", source="x")
