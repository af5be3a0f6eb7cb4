"""Checks: every kind holds where it must, and fails where it must not."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.core.parts import Usage
from everturn.errors import ConfigError
from everturn.evals import EvalCall, Trajectory, make_check
from everturn.evals.checks import KEYS
from everturn.replay import Recording

LOOK = EvalCall("t-1-1", "get_order", "a", {"number": "4512"}, "allow", None, True, False, "completed")
PAY = EvalCall("t-2-1", "refund", "b", {"number": "4512", "amount": 40}, "ask", True, True, True, "completed")
NOT_RUN = EvalCall("t-3-1", "delete", "c", {}, "deny", None, False, True, "failed")
RUN = Trajectory(
    Recording(()), "completed", '{"refunded": 40}', (LOOK, PAY, NOT_RUN), 3, Usage(input=90, output=10, cost=0.02), 5.0
)
OTHER = Trajectory(Recording(()), "completed", "No.", (LOOK,), 1)
SCHEMA = {"type": "object", "properties": {"refunded": {"type": "integer"}}, "required": ["refunded"]}
HOLDS: list[dict[str, Any]] = [
    {"kind": "contains", "text": "refunded"},
    {"kind": "not_contains", "text": "sorry"},
    {"kind": "regex", "pattern": r"\d{2}"},
    {"kind": "not_regex", "pattern": r"\d{3}"},
    {"kind": "json_schema", "schema": SCHEMA},
    {"kind": "called", "tool": "refund", "arguments": {"amount": 40}},
    {"kind": "called", "tool": "refund", "min": 1, "max": 1},
    {"kind": "not_called", "tool": "delete"},
    {"kind": "not_called", "tool": "refund", "arguments": {"amount": 41}},
    {"kind": "order", "tools": ["get_order", "refund"]},
    {"kind": "gate_asked", "tool": "refund"},
    {"kind": "gate_not_asked", "tool": "get_order"},
    {"kind": "denied", "tool": "delete"},
    {"kind": "status", "status": "completed"},
    {"kind": "max_steps", "max": 3},
    {"kind": "max_calls", "max": 3},
    {"kind": "max_tokens", "max": 100},
    {"kind": "max_cost", "max": 0.02},
    {"kind": "max_seconds", "max": 5},
]
FAILS: list[dict[str, Any]] = [
    {"kind": "contains", "text": "sorry"},
    {"kind": "not_contains", "text": "refunded"},
    {"kind": "regex", "pattern": r"\d{3}"},
    {"kind": "not_regex", "pattern": r"\d{2}"},
    {"kind": "json_schema", "schema": {"type": "array"}},
    {"kind": "called", "tool": "refund", "arguments": {"amount": 41}},
    {"kind": "called", "tool": "refund", "min": 2},
    {"kind": "called", "tool": "delete"},  # it was called, and did not run
    {"kind": "not_called", "tool": "refund"},
    {"kind": "order", "tools": ["refund", "get_order"]},
    {"kind": "gate_asked", "tool": "get_order"},
    {"kind": "gate_not_asked", "tool": "refund"},
    {"kind": "denied", "tool": "refund"},
    {"kind": "status", "status": "failed"},
    {"kind": "max_steps", "max": 2},
    {"kind": "max_calls", "max": 2},
    {"kind": "max_tokens", "max": 99},
    {"kind": "max_cost", "max": 0.01},
    {"kind": "max_seconds", "max": 4},
    {"kind": "same_calls"},
]


@pytest.mark.parametrize("table", HOLDS, ids=str)
def test_a_check_holds(table: dict[str, Any]) -> None:
    assert make_check(table)(RUN, OTHER) is True


@pytest.mark.parametrize("table", FAILS, ids=str)
def test_a_check_fails_and_says_why(table: dict[str, Any]) -> None:
    reason = make_check(table)(RUN, OTHER)
    assert isinstance(reason, str)
    assert reason


def test_every_kind_is_tried_both_ways() -> None:
    elsewhere = {"python", "judge", "same_log"}
    assert {table["kind"] for table in FAILS} | elsewhere == set(KEYS)
    assert {table["kind"] for table in HOLDS} | elsewhere | {"same_calls"} == set(KEYS)


def test_acts_count_and_reads_and_words_do_not() -> None:
    again = Trajectory(Recording(()), "completed", "Other words.", (PAY,))
    assert make_check({"kind": "same_calls"})(again, RUN) is True


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"kind": "contain", "text": "a"}, "there is no check of kind 'contain'"),
        ({"kind": "contains"}, "needs text"),
        ({"kind": "contains", "text": "a", "case": True}, "has no 'case'"),
        ({"kind": "regex", "pattern": "("}, "is not a regular expression"),
    ],
)
def test_a_check_that_cannot_be_meant_is_an_error(table: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make_check(table)
