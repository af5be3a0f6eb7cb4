"""Permissions of a turn: decides whether a call may run, and which grants a gate offers for it.

The rules of a turn are the tools' own (`execute`), the runtime's, the tenant's, the agent's, the session's, and people's
grants. For a sub-agent run the rules of every parent turn apply as well, and the strictest decision wins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import JsonObject
from everturn.core.gates import Grant
from everturn.core.loop_detection import LOOP_RULE_NAME
from everturn.core.options import REVIEWS, Approval, PermissionMode, TurnOptions, TurnPermissions
from everturn.core.ports import Tool
from everturn.core.requests import ToolSpec
from everturn.core.rules.globs import escape_glob
from everturn.core.rules.patterns import exact_pattern
from everturn.core.rules.policy import (
    MAX_CASES,
    Policy,
    PolicyDecision,
    Rule,
    RuleAction,
    Subject,
    SubjectCase,
    strictest_decision,
)
from everturn.core.rules.subjects import ReadCommand, build_cases, find_commands
from everturn.errors import ConfigError, ToolError

_DEFAULT: Final[Mapping[Approval, RuleAction]] = {"auto": "allow", "always": "ask", "deny": "deny"}
PLAN_REASON: Final = "plan mode is read-only, so {tool} is not available; finish the plan, and the person switches the mode to carry it out"
CACHED_POLICIES: Final = 256  # compiled lists of rules

ReadCommands = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[Subject]]]]


def _no_shell(text: str) -> Sequence[Subject]:
    raise ConfigError("permission rules for shell commands need everturn[shell]: pip install 'everturn[shell]'")


async def _no_shells(texts: Sequence[str]) -> Sequence[Sequence[Subject]]:
    return [_no_shell(text) for text in texts]


class _CachedToolFacts(Struct, frozen=True):
    """Cached facts about a tool, valid while its spec is the same object."""

    spec: ToolSpec
    identity: str
    own: PolicyDecision | None  # the decision of its own `execute`


class CallDecision(Struct, frozen=True):
    """The decision about a call, and the cases it was made on."""

    decision: PolicyDecision
    cases: Sequence[SubjectCase] = ()  # empty if the tool's own `execute` decided


class Permissions:
    """The rules of a runtime, and cached facts about its tools."""

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        read_command: ReadCommand = _no_shell,
        read_commands: ReadCommands = _no_shells,
    ) -> None:
        self._read_command, self._read_commands = read_command, read_commands
        self._rules_of_tenants: Mapping[str, Sequence[Rule]] = {}
        self._tenants = WeakValueDictionary[str, Permissions]()
        self._is_complete: asyncio.Event | None = None  # None: the rules are complete
        self._known: dict[str, _CachedToolFacts] = {}
        self._policies: dict[bytes, Policy] = {}
        self.replace(rules)

    def replace(self, rules: Iterable[Rule], of_tenants: Mapping[str, Sequence[Rule]] | None = None) -> None:
        """Replace the rules: each call is decided by the rules that are set when it is about to start.

        `of_tenants` are rules for the calls of one tenant each; without it they stay as they are.
        """
        rules = tuple(rules)
        policies = {tenant: Policy((*rules, *own)) for tenant, own in (of_tenants or {}).items()}  # it may raise
        self.policy = Policy(rules)
        self._loops = _loop_rules(rules)
        if of_tenants is not None:
            self._rules_of_tenants = of_tenants
        for tenant, permissions in self._tenants.items():
            self._pass_on(tenant, permissions, policies.get(tenant))

    def of_tenant(self, tenant: str) -> Permissions:
        """The permissions of one tenant: these rules and the tenant's own. They follow every later `replace`."""
        found = self._tenants.get(tenant)
        if found is None:
            found = Permissions((), self._read_command, self._read_commands)
            found._known, found._policies = self._known, self._policies
            found._is_complete = self._is_complete
            self._pass_on(tenant, found)
            self._tenants[tenant] = found
        return found

    def _pass_on(self, tenant: str, permissions: Permissions, policy: Policy | None = None) -> None:
        """Give the permissions of a tenant the rules that are in effect for it."""
        own = self._rules_of_tenants.get(tenant, ())
        if own:
            permissions.policy = policy or Policy((*self.policy.rules, *own))
        else:
            permissions.policy = self.policy
        permissions._loops = (*self._loops, *_loop_rules(own))

    def hold(self) -> None:
        """Let decisions wait until `release`: more rules are being read, and one of them may deny the call."""
        self._is_complete = asyncio.Event()
        for permissions in self._tenants.values():
            permissions._is_complete = self._is_complete

    def release(self) -> None:
        """Let decisions be made: the rules are complete."""
        if self._is_complete is not None:
            self._is_complete.set()
            for permissions in (self, *self._tenants.values()):
                permissions._is_complete = None

    def identity(self, spec: ToolSpec) -> str:
        """The identity of a tool, cached."""
        return self._know(spec).identity

    def _know(self, spec: ToolSpec) -> _CachedToolFacts:
        known = self._known.get(spec.name)
        if known is None or known.spec is not spec:
            known = self._known[spec.name] = _CachedToolFacts(spec, spec.identity, _own_decision(spec))
        return known

    def _policy(self, rules: Sequence[Rule]) -> Policy | None:
        """Compile rules other than the runtime's, cached: most turns of a session have the same."""
        if not rules:
            return None
        key = msgspec.json.encode(rules)
        if (policy := self._policies.get(key)) is None:
            if len(self._policies) >= CACHED_POLICIES:
                self._policies.clear()
            policy = self._policies[key] = Policy(rules)
        return policy

    def _policies_for(self, own: Sequence[Rule], grants: Sequence[Rule]) -> list[Policy]:
        policies = (self.policy if self.policy.rules else None, self._policy(own), self._policy(grants))
        return [policy for policy in policies if policy is not None]

    def own_decision(self, spec: ToolSpec, options: TurnOptions) -> PolicyDecision | None:
        """The decision of the tool's own `execute` if no other rule can apply; None: rules must be checked."""
        if (
            self._is_complete is not None
            or self.policy.rules
            or options.rules
            or options.mode
            or options.lineage is not None
            or spec.subjects
        ):
            return None
        return self._know(spec).own

    def rules_from_grants(
        self, grants: Iterable[Grant], tool_named: Callable[[str], Tool | None], by: str, folder: str = ""
    ) -> list[Rule]:
        """The grants that cover a turn of this user in this folder, as rules.

        A grant does not cover another tool of the same name, nor another user or folder if it was given for one.
        """
        rules: list[Rule] = []
        for grant in grants:
            tool = tool_named(grant.tool)
            if grant.asker not in ("", by) or grant.folder not in ("", folder):
                continue
            if tool is not None and self.identity(tool.spec) == grant.identity:
                rules.append(grant.rule)
        return rules

    async def decide(
        self,
        spec: ToolSpec,
        arguments: JsonObject,
        validated: JsonObject,
        options: TurnOptions,
        grants: Callable[[], Awaitable[Sequence[Rule]]],
    ) -> CallDecision:
        """Decide about a call: the only code path, for turns as well as for explanations.

        `arguments` are those as written, `validated` as the tool reads them, with defaults. Both are checked: arguments
        as written may be forbidden although the validated ones are not. Grants are loaded only if they could change
        the result.
        """
        if self._is_complete is not None:
            await self._is_complete.wait()
        decision = await self._decide(spec, validated, options, grants)
        if validated is arguments or validated == arguments or decision.decision.action == "deny":
            return decision
        if not (self.policy.rules or options.rules or options.lineage):
            return decision
        try:
            other = self.decide_cases(spec, await self.read_cases(spec, arguments, options), options)
        except ToolError as error:
            return CallDecision(_denied_unreadable(error))
        is_stricter = other.action == "deny" or (other.action == "ask" and other.is_final)
        return CallDecision(other, decision.cases) if is_stricter else decision

    async def _decide(
        self, spec: ToolSpec, validated: JsonObject, options: TurnOptions, load: Callable[[], Awaitable[Sequence[Rule]]]
    ) -> CallDecision:
        if (own := self.own_decision(spec, options)) is not None:
            return CallDecision(own)
        try:
            cases = await self.read_cases(spec, validated, options)
            decision = self.decide_cases(spec, cases, options)
            if decision.action != "ask" or decision.is_final or not (grants := await load()):
                return CallDecision(decision, cases)
            cases = await self.read_cases(spec, validated, options, grants)
        except ToolError as error:
            return CallDecision(_denied_unreadable(error))
        return CallDecision(self.decide_cases(spec, cases, options, grants), cases)

    async def read_cases(
        self, spec: ToolSpec, arguments: JsonObject, options: TurnOptions, grants: Sequence[Rule] = ()
    ) -> list[SubjectCase]:
        """Lay out the cases of a call. Command lines are parsed in bounded time, and off the event loop if long.

        Raises:
            ToolError: the arguments cannot be parsed; such a call is denied.
        """
        texts = find_commands(spec.subjects, arguments) if spec.subjects else []
        if not texts:
            return self._cases(spec, arguments, options, grants, self._read_command)
        parsed = dict(zip(texts, await self._read_commands(texts), strict=True))
        return self._cases(spec, arguments, options, grants, parsed.__getitem__)

    def cases(
        self, spec: ToolSpec, arguments: JsonObject, options: TurnOptions, grants: Sequence[Rule] = ()
    ) -> list[SubjectCase]:
        """The same without awaiting: a long command line is not parsed."""
        return self._cases(spec, arguments, options, grants, self._read_command)

    def _cases(
        self,
        spec: ToolSpec,
        arguments: JsonObject,
        options: TurnOptions,
        grants: Sequence[Rule],
        read_command: ReadCommand,
    ) -> list[SubjectCase]:
        names = self.policy.names
        if not options.rules and not grants and options.lineage is None:
            return [*build_cases(spec.subjects, arguments, read_command, names)]
        within = options.lineage.ancestors if options.lineage is not None else ()
        for rules in (options.rules, grants, *(authority.rules for authority in within)):
            if (policy := self._policy(rules)) is not None:
                names = names | policy.names
        return [*build_cases(spec.subjects, arguments, read_command, names)]

    def decide_cases(
        self, spec: ToolSpec, cases: Sequence[SubjectCase], options: TurnOptions, grants: Sequence[Rule] = ()
    ) -> PolicyDecision:
        """Allow, ask or deny."""
        own = self._know(spec).own
        decision = apply_mode(options.mode, spec, self._decide_by_layers(spec, cases, own, options.rules, grants))
        if options.lineage is None:
            return decision
        above = (self._decide_for_ancestor(spec, cases, authority, grants) for authority in options.lineage.ancestors)
        return strictest_decision(decision, *above)

    def _decide_by_layers(
        self,
        spec: ToolSpec,
        cases: Sequence[SubjectCase],
        own: PolicyDecision | None,
        rules: Sequence[Rule],
        grants: Sequence[Rule],
    ) -> PolicyDecision:
        """Decide each case by itself: the strictest decision of several lists of rules, and then the strictest case."""
        policies = self._policies_for(rules, grants)
        if not policies and own is not None:
            return own
        if len(cases) > MAX_CASES:
            return self.policy.decide(spec.name, cases)
        tool, acts = spec.name, needs_named_rule(spec)
        decisions: list[PolicyDecision] = []
        for case in cases or ({},):
            results = [decision for policy in policies for decision in policy.decide_each(tool, [case], acts)]
            matched = [decision for decision in results if decision.is_final or decision.rule is not None]
            decisions.append(
                strictest_decision(*matched, *([own] if own is not None else ()))
                if matched or own
                else _no_rule(tool, case)
            )
        return strictest_decision(*decisions)

    def _decide_for_ancestor(
        self, spec: ToolSpec, cases: Sequence[SubjectCase], above: TurnPermissions, grants: Sequence[Rule]
    ) -> PolicyDecision:
        if not _has_tool(above, spec):
            return PolicyDecision("deny", reason="the parent turn does not have the tool", is_final=True)
        decision = self._decide_by_layers(spec, cases, self._know(spec).own, above.rules, grants)
        return apply_mode(above.mode, spec, decision)

    def decide_loop(self, tool: str, options: TurnOptions, grants: Sequence[Rule] = ()) -> PolicyDecision:
        """Decide whether a tool may repeat its calls in a loop."""
        cases: list[SubjectCase] = [{"tool": Subject("text", tool)}]
        within = options.lineage.ancestors if options.lineage is not None else ()
        decisions: list[PolicyDecision] = []
        for rules in (options.rules, *(authority.rules for authority in within)):
            loop_rules = (*self._loops, *_loop_rules(rules), *_loop_rules(grants))
            decisions.append(Policy(loop_rules).decide(LOOP_RULE_NAME, cases))
        return strictest_decision(*decisions)

    def offered_tools(self, tools: Mapping[str, Tool], options: TurnOptions) -> list[ToolSpec]:
        """The tools that are offered to a model: all but those denied outright."""
        return [tool.spec for tool in tools.values() if not self.is_denied(tool.spec, options)]

    def is_denied(self, spec: ToolSpec, options: TurnOptions) -> bool:
        """Whether no call of a tool can be allowed, whatever its arguments."""
        if spec.approval == "deny" or self.policy.denies_outright(spec.name):
            return True
        within = options.lineage.ancestors if options.lineage is not None else ()
        if any(mode == "plan" for mode in (options.mode, *(parent.mode for parent in within))) and acts(spec):
            return True
        if not all(_has_tool(authority, spec) for authority in within):
            return True
        lists = (options.rules, *(authority.rules for authority in within))
        return any(policy.denies_outright(spec.name) for rules in lists if (policy := self._policy(rules)))


def apply_mode(mode: PermissionMode, spec: ToolSpec, decision: PolicyDecision) -> PolicyDecision:
    """Apply a permission mode to what the rules decided.

    Plan denies everything that acts. Auto-edit allows a file edit that no rule covers; a rule that asks or denies, and
    a tool that always requires approval, stay as they are.
    """
    if mode == "plan" and acts(spec):
        return PolicyDecision("deny", reason=PLAN_REASON.format(tool=spec.name), is_final=True)
    if mode == "auto_edit" and decision.action == "ask" and decision.rule is None and not decision.is_final:
        if edits_files(spec):
            return PolicyDecision("allow", reason="auto-edit mode allows file edits")
    return decision


def acts(spec: ToolSpec) -> bool:
    """Whether a tool does more than read: plan mode does not have it.

    A sub-agent's own calls are decided in its run, which has the mode of its parent. An MCP server's annotation of its
    own tools as read-only is not trusted.
    """
    if spec.origin in ("agent", "builtin"):
        return False
    return not spec.read_only or spec.origin.startswith("mcp:")


def edits_files(spec: ToolSpec) -> bool:
    """Whether a tool is one of the built-in tools that write files of a folder."""
    return spec.origin.startswith("files:") and not spec.read_only


def _loop_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules that name loops: an author who allows everything did not think of loops."""
    return tuple(rule for rule in rules if rule.tool == LOOP_RULE_NAME)


def _own_decision(spec: ToolSpec) -> PolicyDecision | None:
    action = _DEFAULT.get(spec.approval)
    if action is None:
        return None
    rule = Rule(spec.name, action, layer="defaults", source="its own `approval`")
    reason = {"allow": "runs by itself", "ask": "always requires approval", "deny": "may not be used"}[action]
    return PolicyDecision(action, rule, is_final=True, reason=f"{spec.name} {reason}")


def _denied_unreadable(error: ToolError) -> PolicyDecision:
    return PolicyDecision("deny", reason=str(error), is_final=True)


def _no_rule(tool: str, case: SubjectCase) -> PolicyDecision:
    texts = {name: subject.text for name, subject in case.items() if subject is not None}
    return PolicyDecision("ask", None, texts, reason=f"no rule covers this call of {tool}")


def needs_named_rule(spec: ToolSpec) -> bool:
    """Whether a rule for every tool (`*`) does not cover this tool, because it acts: decision 0113 says why.

    A tool that only reads does not act, nor does one whose `execute` is `auto`. An MCP server's annotation of its own
    tools as read-only is not trusted.
    """
    return spec.approval != "auto" and (not spec.read_only or spec.origin.startswith("mcp:"))


def _has_tool(above: TurnPermissions, spec: ToolSpec) -> bool:
    """Whether a turn has a tool. Only the registry knows the members of a group, and it offers no others."""
    names = above.tools
    if names is None or spec.origin == "builtin" or any(name.startswith("@") for name in names):
        return True
    return is_selected(spec.name, names)


def is_selected(name: str, patterns: Iterable[str]) -> bool:
    """Whether a tool's name matches one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_manual(spec: ToolSpec, options: TurnOptions) -> bool:
    """Whether a person runs the calls of this tool by hand."""
    return spec.manual or (bool(options.manual) and is_selected(spec.name, options.manual))


def needs_review(spec: ToolSpec, options: TurnOptions, worked: bool) -> bool:
    """Whether a person reviews the result before the model reads it."""
    if spec.review == options.review == "never":
        return False
    policy = max(spec.review, options.review, key=REVIEWS.index)
    return policy == "always" or (policy == "on_error" and not worked)


def offer_grants(
    spec: ToolSpec, cases: Sequence[SubjectCase], is_open: Callable[[SubjectCase], bool], *, in_folder: bool = False
) -> tuple[Rule, ...]:
    """The grants that a gate offers for a call ("always allow"), the narrowest first; none if one rule is not enough.

    In a turn that works in a folder, the last offer of a file edit is for every edit with that tool: the tool cannot leave the
    folder or write protected files, and auto-edit mode allows the same.
    """
    if not spec.subjects:
        return (Rule(escape_glob(spec.name), "allow", layer="grants"),)
    undecided = _without_options([case for case in cases if is_open(case)])
    if len(undecided) != 1:
        return ()
    values = {name: subject for name in spec.subjects if (subject := undecided[0].get(name)) is not None}
    narrow = {name: exact for name, subject in values.items() if (exact := exact_pattern(subject))}
    if len(narrow) < len(values) or not values:
        return ()
    wide = {name: _wider_pattern(subject) for name, subject in values.items()}
    offers = [Rule(escape_glob(spec.name), "allow", narrow, "grants")]
    if wide != narrow and all(wide.values()):
        offers.append(Rule(escape_glob(spec.name), "allow", wide, "grants"))
    if in_folder and edits_files(spec):
        offers.append(Rule(escape_glob(spec.name), "allow", dict.fromkeys(values, "**"), "grants"))
    return tuple(offers)


def _without_options(cases: Sequence[SubjectCase]) -> list[SubjectCase]:
    """The cases without those that an exact rule for another one covers: options of the same command."""
    commands = {subject.words for case in cases for subject in case.values() if subject is not None}
    return [
        case
        for case in cases
        if not any(subject and subject.option_of and subject.option_of in commands for subject in case.values())
    ]


# Programs that only print, and have no option that runs a command or writes a file. For any other program a prefix of
# two words is not safe: `git config *` sets what git runs, and `go test *` has -exec.
READ_ONLY_PROGRAMS: Final = frozenset(
    "basename cat cksum cmp comm cut df diff dirname du echo egrep expand fgrep fmt fold grep head id join jq ls "
    "md5sum nl od "
    "paste pwd readlink realpath rev seq sha1sum sha256sum stat strings tac tail tr uname wc which whoami".split()
)


def _wider_pattern(subject: Subject) -> str:
    """A wider pattern for similar values; "" if it would match everything."""
    if subject.kind == "command" and len(subject.words) > 1:
        return f"{subject.words[0]} *" if subject.words[0] in READ_ONLY_PROGRAMS else ""
    if subject.kind == "url" and subject.text.count("/") >= 3:
        return escape_glob("/".join(subject.text.split("/")[:3])) + "/**"
    if subject.kind == "path" and "/" in subject.text.strip("/"):
        return escape_glob(subject.text.rsplit("/", 1)[0]) + "/**"
    return exact_pattern(subject)
