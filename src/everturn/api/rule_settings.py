"""Permission rules of administrators, and what a draft of them would have decided about past calls."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from everturn.api.base import Body, Id, Name, View
from everturn.api.permissions import RuleView
from everturn.core.rules.policy import RuleAction
from everturn.core.tenants.settings import StoredRule

RuleScope = Literal["installation", "tenant"]
"""Whose calls stored rules decide: those of all tenants, or those of the caller's tenant only."""

DraftRules = Annotated[tuple[StoredRule, ...], Meta(max_length=500)]


class StoredRuleView(View, frozen=True, kw_only=True):
    """A stored rule, in TOML as well, and why it can never decide, if another rule shadows it."""

    rule: StoredRule
    text: str
    shadow: str = ""
    is_idle: bool = False  # no tool has this name at present


class RuleSettingsView(View, frozen=True, kw_only=True):
    """One version of the stored rules; version 0 has none. `problem` says why they are not in use."""

    version: int
    by: str
    at: float
    problem: str = ""
    rules: list[StoredRuleView]


class AllRulesView(View, frozen=True, kw_only=True):
    """The stored rules of the installation or of the tenant, and the rules that are fixed for the caller: those of files
    and, for the rules of a tenant, those of the installation. `problem`: why nothing can be changed.
    """

    is_editable: bool
    scope: RuleScope = "installation"
    scopes: list[RuleScope] = []  # those whose rules the caller may change
    problem: str = ""
    fixed: list[RuleView] = []
    stored: RuleSettingsView | None = None


class RuleVersionList(View, frozen=True, kw_only=True):
    """The versions of the stored rules, newest first."""

    versions: list[RuleSettingsView]


class NewRuleSettings(Body, frozen=True, kw_only=True):
    """All stored rules. `version` is the one that was seen, 0 before the first."""

    rules: DraftRules
    version: int | None = None


class DryRunRules(Body, frozen=True, kw_only=True):
    """A draft of the stored rules, to be compared with those in effect over the last `calls` calls of the tenant."""

    rules: DraftRules
    calls: Annotated[int, Meta(ge=1, le=1000)] = 200


class ExplainDraft(Body, frozen=True, kw_only=True):
    """Explain what a draft of the stored rules would decide about a call. Nothing is run."""

    rules: DraftRules
    tool: Id
    arguments: dict[str, Any] = {}
    agent: Name = ""  # "": the first one


class RuleChangeView(View, frozen=True, kw_only=True):
    """A rule that a draft adds or removes; `loosens`: it may allow what was asked about or denied."""

    text: str
    is_added: bool
    loosens: bool
    is_idle: bool = False  # it is added, and no tool has this name at present


class DryRunExample(View, frozen=True, kw_only=True):
    """A past call that a draft decides otherwise, in a conversation that the caller may see."""

    session: str
    turn: str
    title: str
    at: float
    arguments: str  # JSON, shortened
    recorded: RuleAction  # what was decided then
    rule: RuleView | None  # of the draft, that decides


class DryRunGroup(View, frozen=True, kw_only=True):
    """Past calls of a tool that a draft decides otherwise."""

    tool: str
    before: RuleAction  # by the rules in effect
    after: RuleAction  # by the draft
    count: int
    private: int  # of these, in conversations that the caller may not see
    loosens: bool
    examples: list[DryRunExample]


class DryRunView(View, frozen=True, kw_only=True):
    """What a draft of the rules would have decided about the last calls of the tenant. Nothing was run."""

    calls: int  # that were decided again
    skipped: int  # whose tool does not exist any more, or whose arguments do not fit it
    since: float  # when the first of them was made; 0: there is none
    groups: list[DryRunGroup]
    changes: list[RuleChangeView]
    hidden_below: int = (
        0  # of conversations that the caller may not see, fewer changes of a group are not counted; 0: all are
    )
