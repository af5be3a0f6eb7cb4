"""Stored rules: reads the permission rules that administrators have set, which have the form of those in a file."""

from __future__ import annotations

from typing import Final

from everturn.core.rules.policy import Rule
from everturn.core.tenants.settings import RuleSettings, StoredRule
from everturn.errors import ConfigError
from everturn.permissions.rules_file import DEFAULT_KINDS, read_rule

__all__ = ["SOURCE", "TENANT_SOURCE", "read_stored_rule", "read_stored_rules", "rule_for_unreadable"]

SOURCE: Final = "settings"
"""The source of a stored rule of the installation, with its number in the list: `settings:3`."""

TENANT_SOURCE: Final = "tenant settings"
"""The source of a stored rule of one tenant: `tenant settings:3`."""


def rule_for_unreadable(source: str = SOURCE) -> Rule:
    """The rule that stands for stored rules that cannot be read: one of them may have denied any call, so a person
    decides on each.
    """
    return Rule("*", "ask", source=f"{source} (unreadable)")


def read_stored_rules(settings: RuleSettings, source: str = SOURCE) -> list[Rule]:
    """The rules that are enabled.

    Raises:
        ConfigError: one of them is invalid, enabled or not; the message names its number.
    """
    rows = [(read_stored_rule(row, number, source), row.enabled) for number, row in enumerate(settings.rules, 1)]
    return [rule for rule, is_enabled in rows if is_enabled]


def read_stored_rule(row: StoredRule, number: int, source: str = SOURCE) -> Rule:
    """Read one rule of the list; `number` is its place, from 1.

    Raises:
        ConfigError: it is invalid.
    """
    fields = {"tool": row.tool, "action": row.action, "match": row.match}
    try:
        return read_rule(fields, "config", f"{source}:{number}", DEFAULT_KINDS)
    except ConfigError as error:
        raise ConfigError(f"rule {number}: {error}") from None
