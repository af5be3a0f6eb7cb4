"""Permission rules, grants, and what they would decide about a call."""

from __future__ import annotations

from typing import Any, Literal

from everturn.api.base import Body, Id, Name, View
from everturn.core.gates import Grant
from everturn.core.rules.policy import Rule, RuleAction


class ExplainCall(Body, frozen=True, kw_only=True):
    """Explain what the rules would decide about a call. Nothing is run."""

    tool: Id
    arguments: dict[str, Any] = {}
    agent: Name = ""  # "": that of the session, or the first one
    session: Id | None = None  # its grants count, too


RuleOrigin = Literal["", "file", "installation", "tenant"]


class RuleView(View, frozen=True, kw_only=True):
    """A rule in TOML, where it was set, and why it can never decide, if another rule shadows it."""

    rule: Rule
    text: str
    shadow: str = ""
    scope: RuleOrigin = ""  # of a rule of files or of administrators; the layer of the rule says the rest


class ToolRules(View, frozen=True, kw_only=True):
    """The permission settings of a tool itself, which apply if no rule does."""

    name: str
    origin: str
    group: str
    approval: str
    review: str  # whether a person reviews its results before the model reads them
    read_only: bool
    idempotent: bool
    is_offered: bool  # False: it is denied outright, and not offered to the model
    manual: bool
    egress: bool
    subjects: dict[str, str]  # the arguments that rules match, and their kinds


class RulesView(View, frozen=True, kw_only=True):
    """Everything that decides about the calls of an agent, except grants."""

    agent: str
    rules: list[RuleView]  # the widest layer first
    tools: list[ToolRules]


class CaseView(View, frozen=True, kw_only=True):
    """The decision about one case of a call."""

    case: dict[str, str]
    action: RuleAction
    rule: RuleView | None
    reason: str


class ExplainView(View, frozen=True, kw_only=True):
    """The decision about a call, the rule that makes it, and the other rules that match."""

    action: RuleAction
    reason: str
    rule: RuleView | None
    is_final: bool  # False: no rule matches, so that a grant could decide it
    cases: list[CaseView]
    others: list[RuleView]  # rules that also match and do not decide
    lines: list[str]  # the explanation as text
    problem: str = ""  # why the arguments are invalid: no gate would open and nothing would run
    manual: bool = False  # a person runs it by hand
    review: str = "never"  # whether a person reviews the result before the model reads it
    warnings: list[str] = []  # what the agent lacks whatever is called: tools that no model is offered


class GrantView(View, frozen=True, kw_only=True):
    """A grant, the session it was given in, and the title of the session that it covers."""

    grant: Grant
    origin: str
    title: str


class GrantList(View, frozen=True, kw_only=True):
    """Grants, newest first."""

    grants: list[GrantView]
