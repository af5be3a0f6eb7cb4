"""Stored rules: reads the permission rules that administrators have set, which have the form of those in a file."""

from __future__ import annotations

from typing import Final

from everturn.core.rules.policy import Rule
from everturn.core.tenants.settings import RuleSettings, StoredRule
from everturn.errors import ConfigError
from everturn.permissions.rules_file import DEFAULT_KINDS, read_rule

__all__ = ["SOURCE", "UNREADABLE_RULE", "read_stored_rule", "read_stored_rules"]

SOURCE: Final = "settings"
"""The source of a stored rule, with its number in the list: `settings:3`."""

UNREADABLE_RULE: Final = Rule("*", "ask", source=f"{SOURCE} (unreadable)")
"""It stands for stored rules that cannot be read: one of them may have denied any call, so a person decides on each."""


def read_stored_rules(settings: RuleSettings) -> list[Rule]:
    """The rules that are enabled.

    Raises:
        ConfigError: one of them is invalid, enabled or not; the message names its number.
    """
    rows = [(read_stored_rule(row, number), row.enabled) for number, row in enumerate(settings.rules, 1)]
    return [rule for rule, is_enabled in rows if is_enabled]


def read_stored_rule(row: StoredRule, number: int) -> Rule:
    """Read one rule of the list; `number` is its place, from 1.

    Raises:
        ConfigError: it is invalid.
    """
    fields = {"tool": row.tool, "action": row.action, "match": row.match}
    try:
        return read_rule(fields, "config", f"{SOURCE}:{number}", DEFAULT_KINDS)
    except ConfigError as error:
        raise ConfigError(f"rule {number}: {error}") from None
