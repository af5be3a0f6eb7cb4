"""Rules as people write them, and why a call was judged as it was."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.rules.policy import Policy, Rule, Subject, SubjectCase
from everturn.errors import ConfigError
from everturn.permissions.explain import escape_invisible, explain_decision
from everturn.permissions.rules_file import load_rules, read_rules

WRITTEN = """\
model = "x"

[[permissions]]
tool = "run_shell"
match = { command = "git log *" }
action = "allow"

  [[ permissions ]]  # nobody
tool = "*"
action = "deny"
match.to.city = "Bern"

[[tables]]
"""


def test_rules_are_read_with_the_line_they_stand_on() -> None:
    assert read_rules(WRITTEN, "everturn.toml", "session") == [
        Rule("run_shell", "allow", {"command": "git log *"}, "session", "everturn.toml:3"),
        Rule("*", "deny", {"to.city": "Bern"}, "session", "everturn.toml:8"),
    ]


def test_rules_may_stand_in_a_list() -> None:
    text = 'permissions = [\n  {tool = "a", action = "ask"},\n\n  {tool = "b", action = "deny"},\n]'

    assert [(rule.tool, rule.source) for rule in read_rules(text, "x")] == [("a", "x:2"), ("b", "x:4")]


def test_a_line_that_only_looks_like_a_rule_does_not_move_the_others() -> None:
    text = 'note = """\n[[permissions]]\n"""\n[[permissions]]\ntool = "a"\naction = "ask"\n'

    assert [rule.source for rule in read_rules(text, "x")] == ["x:2"]  # the first mention: all that is certain


@pytest.mark.parametrize("text", ["", "model = 1", "permissions = []"])
def test_a_text_without_rules_has_none(text: str) -> None:
    assert read_rules(text, "x") == []


REFUSED = {
    "an unknown key": ('tool = "a"\naction = "ask"\npattern = "x"', "no 'pattern'; it has tool, match and action"),
    "an unknown action": ('tool = "a"\naction = "Allow"', "must be allow, ask or deny; it is 'Allow'"),
    "an action of a wrong type": ('tool = "a"\naction = ["deny"]', "must be allow, ask or deny"),
    "no action": ('tool = "a"', "`action` must be allow, ask or deny; it is missing"),
    "no tool": ('action = "ask"', "`tool` must be the name of a tool"),
    "an empty tool": ('action = "ask"\ntool = " "', "`tool` must be the name of a tool"),
    "a tool with a line break": ('action = "ask"\ntool = "a\\n"', "no tool has a name like"),
    "match as a text": ('tool = "a"\naction = "ask"\nmatch = "x"', "`match` must be a table of patterns"),
    "a number as a pattern": ('tool = "a"\naction = "ask"\nmatch = {n = 5}', "'n' must be a text in quotes; it is 5"),
    "an empty table in match": ('tool = "a"\naction = "ask"\nmatch = {n = {}}', "'n' must be a text in quotes"),
    "an empty pattern": ('tool = "a"\naction = "ask"\nmatch = {n = ""}', "* is for anything"),
    "an open quotation mark": ('tool = "a"\naction = "deny"\nmatch = {command = "rm \'"}', "never closed"),
    "an address without a scheme": ('tool = "a"\naction = "deny"\nmatch = {url = "a.com"}', "scheme"),
    "a path that climbs from a star": ('tool = "a"\naction = "deny"\nmatch = {path = "*/../a"}', "after a wildcard"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused_with_its_line_and_what_does(name: str) -> None:
    row, part = REFUSED[name]
    with pytest.raises(ConfigError) as caught:
        read_rules(f'[[permissions]]\ntool = "x"\naction = "ask"\n\n[[permissions]]\n{row}\n', "here.toml")

    assert str(caught.value).startswith("here.toml:5: ")
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a = 1\nb = ?\n", "x:2: this is not valid TOML"),
        ('\n[permissions]\ntool = "a"', "x:2: write each rule in its own table"),
        ("permissions = 5", "x:1: write each rule in its own table"),
        ("permissions = [5]", "x:1: a rule is a table"),
        ('[[permission]]\ntool = "a"', "there is 'permission'; rules go under [[permissions]]"),
        ('[[Permissions]]\ntool = "a"', "rules go under [[permissions]]"),
    ],
)
def test_a_text_that_is_not_rules_is_refused(text: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_rules(text, "x")

    assert part in str(caught.value)


def test_the_kinds_of_subjects_say_which_patterns_make_sense() -> None:
    text = """[[permissions]]\ntool = "a"\naction = "deny"\nmatch = {page = "a.com", command = "it's"}"""

    assert read_rules(text, "x", kinds={})[0].match == {"page": "a.com", "command": "it's"}
    with pytest.raises(ConfigError, match="scheme"):
        read_rules(text, "x", kinds={"page": "url"})


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(WRITTEN, encoding="utf-8")

    assert load_rules(file) == read_rules(WRITTEN, str(file))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"none\.toml: the rules cannot be read: No such file"):
        load_rules(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_rules(tmp_path / "bytes.toml")


TOOLS = st.text(min_size=1).filter(lambda text: text.isprintable() and text == text.strip())


@given(TOOLS, st.dictionaries(st.text(), st.text(min_size=1), max_size=3))
def test_a_rule_that_was_shown_can_be_written_down_and_read_again(tool: str, match: dict[str, str]) -> None:
    rule = Rule(tool, "ask", match, "config", "x:1")

    assert read_rules(f"permissions = [{rule}]", "x", kinds={}) == [rule]


# -------------------------------------------------------------------------------------------------------- explaining


def command(line: str) -> SubjectCase:
    return {"command": Subject("command", line, tuple(shlex.split(line)))}


LOG = Rule("run_shell", "allow", {"command": "git log *"}, "config", "everturn.toml:3")
NO_RM = Rule("run_*", "deny", {"command": "rm *"}, "defaults", "defaults:1")
ASK = Rule("*", "ask", {"command": "git push *"}, "agent")
POLICY = Policy([LOG, NO_RM, ASK, Rule("run_shell", "allow", {}, "grants", "grant_1")])


def explained(policy: Policy, *lines: str) -> list[str]:
    cases = [command(line) for line in lines]
    return explain_decision(
        policy, "run_shell", {"command": "; ".join(lines)}, cases, policy.decide("run_shell", cases)
    )


def test_a_denial_names_the_rule_the_case_what_lost_and_what_would_help() -> None:
    assert explained(POLICY, "git log", "rm x") == [
        "run_shell: deny",
        '  arguments: {"command":"git log; rm x"}',
        '  decided by {tool = "run_*", match = {command = "rm *"}, action = "deny"} (defaults:1, defaults)',
        "  on command = rm x",
        '  case 1 of 2: command = git log: allow, by {tool = "run_shell", action = "allow"} (grant_1, grants)',
        '  case 2 of 2: command = rm x: deny, by {tool = "run_*", match = {command = "rm *"}, action = "deny"} '
        "(defaults:1, defaults)",
        '  fits as well, and does not decide: {tool = "run_shell", action = "allow"} (grant_1, grants)',
        '  fits as well, and does not decide: {tool = "run_shell", match = {command = "git log *"}, action = "allow"} '
        "(everturn.toml:3, config)",
        "  to change it: that rule must go or fit less: no rule that allows beats one that says deny",
    ]


def test_what_no_rule_fits_comes_with_the_exact_rule_that_would_allow_it() -> None:
    last = explained(Policy([LOG]), "git log", "ls *.py")[-1]
    prefix = "  to change it: a rule that allows it, such as "

    assert last.startswith(prefix)
    rules = read_rules(f"permissions = [{last.removeprefix(prefix)}]", "x")
    assert Policy([LOG, *rules]).decide("run_shell", [command("git log"), command("ls '*.py'")]).action == "allow"
    assert Policy([LOG, *rules]).decide("run_shell", [command("ls a.py")]).action == "ask"


def test_an_ask_that_a_rule_demands_says_that_no_answer_is_remembered() -> None:
    assert "no answer is remembered" in explained(POLICY, "git push")[-1]


def test_an_allowed_call_and_an_unreadable_one_are_explained_too() -> None:
    assert explained(POLICY, "git log")[0] == "run_shell: allow"
    lines = explain_decision(POLICY, "run_shell", {}, [], POLICY.decide("run_shell", [{"path": Subject("path", "\0")}]))
    assert lines[0] == "run_shell: deny"
    assert "  because path cannot be read as a path, so it is denied" in lines
    assert "can be read" in lines[-1]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb", "a\\u200bb"),
        ("a\nb\x1b[2J", "a\\x0ab\\x1b[2J"),
        ("a\u00a0b", "a\\xa0b"),
        ("\u3164\ufe0f\U000e0041\ud800", "\\u3164\\ufe0f\\U000e0041\\ud800"),
        ("Zürich → 東京 🙂", "Zürich → 東京 🙂"),
        ("x" * 201, "x" * 200 + "… (1 more)"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert escape_invisible(text) == shown


@given(st.text(st.sampled_from("a \u202e\u200b\n\u2028\x00\ud800\"'\\*"), max_size=8))
def test_no_line_holds_what_cannot_be_seen(text: str) -> None:
    policy = Policy([Rule(f"{text}*", "ask", {text: f"{text}*"}, source=text)])
    cases: list[SubjectCase] = [{text: Subject("text", text)}, {}]

    for line in explain_decision(policy, f"{text}x", {text: text}, cases, policy.decide(f"{text}x", cases)):
        assert line.isprintable()
