"""Subjects: the values of a call that rules look at, one case for each combination."""

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.canonical_json import JsonObject
from everturn.core.rules.policy import MAX_CASES, Policy, Rule, Subject, SubjectKind
from everturn.core.rules.subjects import UnreadableCall, build_cases
from everturn.errors import ToolError


def read_command(line: str) -> list[Subject]:
    """Commands between semicolons."""
    return [Subject("command", command, tuple(shlex.split(command))) for command in line.split(";") if command.strip()]


def texts(
    subjects: dict[str, SubjectKind], arguments: JsonObject, wanted: frozenset[str] | None = None
) -> list[dict[str, str | None]]:
    cases = build_cases(subjects, arguments, read_command, wanted)
    return [{name: subject and subject.text for name, subject in case.items()} for case in cases]


def test_declared_subjects_are_read_by_their_kind() -> None:
    kinds: dict[str, SubjectKind] = {"path": "path", "url": "url", "command": "command", "note": "text"}
    [case] = build_cases(
        kinds,
        {"path": "a//b/../c", "url": "HTTPS://A.com:443/x/..", "command": "git log", "note": " Hi"},
        read_command,
    )

    assert case == {
        "path": Subject("path", "a/c"),
        "url": Subject("url", "https://a.com/"),
        "command": Subject("command", "git log", ("git", "log")),
        "note": Subject("text", " Hi"),
    }


def test_every_command_of_a_line_is_a_case() -> None:
    assert texts({"command": "command"}, {"command": "git log; rm x"}) == [{"command": "git log"}, {"command": " rm x"}]


def test_other_arguments_are_text_and_other_values_their_json() -> None:
    assert texts({}, {"a": "x", "b": 5, "c": True, "d": None, "e": {"z": 1, "y": "ü"}, "f": [[1], 2]}) == [
        {"a": "x", "b": "5", "c": "true", "d": "null", "e": '{"y":"ü","z":1}', "e.z": "1", "e.y": "ü", "f": "[[1],2]"}
    ]


def test_lists_make_a_case_for_each_value_and_several_lists_for_each_combination() -> None:
    assert texts({"path": "path"}, {"path": ["a", "./b"], "n": [1, "x"]}) == [
        {"path": "a", "n": "1"},
        {"path": "a", "n": "x"},
        {"path": "b", "n": "1"},
        {"path": "b", "n": "x"},
    ]


def test_dots_lead_into_objects_and_into_each_object_of_a_list() -> None:
    arguments = {"edits": [{"path": "a/./b", "new": "x"}, {"path": "/etc/c"}], "to": {"home": {"city": "Bern"}}}

    assert texts({"edits.path": "path"}, arguments, frozenset({"to.home.city"})) == [
        {"edits.path": "a/b", "to.home.city": "Bern"},
        {"edits.path": "/etc/c", "to.home.city": "Bern"},
    ]
    assert {case["edits.new"] for case in texts({}, arguments)} == {"x", None}  # the second edit has none


def test_a_name_that_can_mean_two_things_means_both() -> None:
    assert {case["a.b"] for case in texts({}, {"a.b": "one", "a": {"b": "two"}})} == {"one", "two"}


@pytest.mark.parametrize("arguments", [{}, {"path": None}, {"path": []}])
def test_a_subject_without_a_value_is_a_case_that_no_pattern_fits(arguments: JsonObject) -> None:
    [case] = build_cases({"path": "path"}, arguments, read_command, frozenset())

    assert case == {"path": None}
    assert Policy([Rule("*", "allow", {"path": "**"})]).decide("read", [case]).action == "ask"


def test_a_line_without_commands_is_a_case_too() -> None:
    assert texts({"command": "command"}, {"command": ""}) == [{"command": None}]


def test_only_what_some_rule_looks_at_is_read_and_what_is_declared() -> None:
    arguments = {"path": "a", "text": "x", "other": "y"}

    assert texts({"path": "path"}, arguments, frozenset({"text", "missing"})) == [
        {"path": "a", "text": "x", "missing": None}
    ]
    assert texts({}, arguments, frozenset()) == [{}]


@pytest.mark.parametrize(
    ("kind", "value", "part"),
    [
        ("path", 5, "must be a string or a list of strings; it is int"),
        ("path", {"a": "b"}, "it is dict"),
        ("path", ["a", 5], "it is int"),
        ("path", ["a", ["b"]], "it is list"),
        ("path", ["a", None], "it is NoneType"),
        ("command", True, "it is bool"),
        ("text", 5, "it is int"),
        ("path", "a\0b", "control characters"),
        ("url", "https://me@a.com/", "without a user"),
        ("url", "nonsense", "in full"),
    ],
)
def test_a_declared_value_that_cannot_be_read_is_denied_with_advice(kind: SubjectKind, value: Any, part: str) -> None:
    with pytest.raises(UnreadableCall, match="'it'") as caught:
        build_cases({"it": kind}, {"it": value}, read_command, frozenset())

    assert part in str(caught.value)
    assert isinstance(caught.value, ToolError)
    assert caught.value.code == "denied"


def test_what_the_reader_of_commands_refuses_is_refused() -> None:
    def refuse(line: str) -> list[Subject]:
        raise ToolError("no such shell")

    with pytest.raises(ToolError, match="no such shell"):
        build_cases({"command": "command"}, {"command": "x"}, refuse)


def test_more_cases_than_can_be_looked_at_are_refused_before_they_are_made() -> None:
    assert len(build_cases({}, {"a": [*range(16)], "b": [*range(16)]}, read_command)) == MAX_CASES
    with pytest.raises(UnreadableCall, match=r"17 of a × 16 of b, at most 256"):
        build_cases({}, {"a": [*range(17)], "b": [*range(16)]}, read_command)
    with pytest.raises(UnreadableCall):
        build_cases({}, {str(n): [*range(100)] for n in range(100)}, read_command)


@pytest.mark.parametrize("value", [{"a": "\ud800"}, {"deep": None}])
def test_what_cannot_be_written_as_json_is_refused(value: Any) -> None:
    inner: Any = 1
    for _ in range(100_000 if "deep" in value else 0):
        inner = [inner]
    with pytest.raises(UnreadableCall, match="not plain JSON"):
        build_cases({}, {"x": inner if "deep" in value else value}, read_command, frozenset({"x"}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab.", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "a.b"]), inner, max_size=2),
    max_leaves=6,
)
NAMES = st.sampled_from(["a", "b", "a.b", "b.a.b"])


@given(st.dictionaries(st.sampled_from(["a", "b", "a.b"]), JSON, max_size=3), st.frozensets(NAMES))
def test_what_is_wanted_is_read_the_same_as_when_everything_is(arguments: JsonObject, wanted: frozenset[str]) -> None:
    try:
        whole = build_cases({}, arguments, read_command)
    except UnreadableCall:
        return
    some = build_cases({}, arguments, read_command, wanted)

    for name in wanted:
        assert {case.get(name) for case in whole} == {case[name] for case in some}


def test_what_no_rule_looks_at_is_not_even_read() -> None:
    broken = {"x": {"y": "\ud800"}}

    assert build_cases({}, broken, read_command, frozenset()) == [{}]
    assert build_cases({}, broken, read_command, frozenset({"z"})) == [{"z": None}]
