"""Which changes of rules may allow something that was asked about or denied before."""

from __future__ import annotations

import pytest

from everturn.core.rules.loosened_rules import RuleChange, compare_rules
from everturn.core.rules.policy import Rule

DENY_PAY, ASK_PAY, ALLOW_PAY = (Rule("pay", action) for action in ("deny", "ask", "allow"))
ALLOW_SEVEN = Rule("pay", "allow", {"amount": "7"})
DENY_SEVEN = Rule("pay", "deny", {"amount": "7"})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([DENY_PAY], []),
        ([ASK_PAY], []),
        ([DENY_PAY], [ASK_PAY]),
        ([DENY_PAY], [DENY_SEVEN]),
        ([], [ALLOW_PAY]),
        ([ALLOW_SEVEN], [ALLOW_PAY]),
        ([DENY_PAY, ALLOW_SEVEN], [ALLOW_SEVEN]),
        ([Rule("*", "ask")], [Rule("look", "ask")]),
    ],
)
def test_it_loosens(before: list[Rule], after: list[Rule]) -> None:
    assert any(change.loosens for change in compare_rules(before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([ALLOW_PAY], []),
        ([], [DENY_PAY, ASK_PAY]),
        ([ASK_PAY], [DENY_PAY]),
        ([DENY_SEVEN], [DENY_PAY]),
        ([DENY_PAY], [Rule("*", "deny")]),
        ([DENY_PAY], [DENY_PAY, ALLOW_SEVEN]),  # it never decides
        ([ALLOW_PAY], [ALLOW_PAY, ALLOW_SEVEN]),
        ([ALLOW_PAY], [ALLOW_SEVEN]),
        ([DENY_PAY, ALLOW_PAY], [ALLOW_PAY, DENY_PAY]),  # the order decides nothing
    ],
)
def test_it_does_not_loosen(before: list[Rule], after: list[Rule]) -> None:
    assert not any(change.loosens for change in compare_rules(before, after))


def test_a_rule_that_moves_is_no_change_and_the_source_does_not_matter() -> None:
    moved = Rule("pay", "deny", source="settings:2")
    assert compare_rules([DENY_PAY, ALLOW_SEVEN], [ALLOW_SEVEN, moved]) == []
    assert compare_rules([DENY_PAY], [ASK_PAY]) == [
        RuleChange(DENY_PAY, is_added=False, loosens=True),
        RuleChange(ASK_PAY, is_added=True, loosens=False),
    ]
