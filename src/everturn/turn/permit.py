"""What a turn may do: rules → a judgement of one call, and what `always` would mean for it.

The rules of a turn are the tools' own (`execute`), the runtime's, the agent's and the session's, and what people have
granted. A sub-turn is judged by those of every turn above it as well, and the strictest counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

import msgspec
from msgspec import Struct

from everturn.core.asking import Grant
from everturn.core.canonical import JsonObject
from everturn.core.globs import escape
from everturn.core.options import Authority, ResultPolicy, TurnOptions
from everturn.core.patterns import exactly
from everturn.core.policy import MOST_CASES, Action, Case, Judgement, Policy, Rule, Subject, strictest
from everturn.core.ports import Tool
from everturn.core.requests import Execute, ToolSpec
from everturn.core.subjects import cases_of, commands_of
from everturn.errors import ConfigError, ToolError

DOOM_LOOP: Final = "doom_loop"  # the name under which rules speak of loops
_DEFAULT: Final[Mapping[Execute, Action]] = {"auto": "allow", "ask": "ask", "deny": "deny"}
REMEMBERED: Final = 256  # lists of rules
_REVIEWS: Final[Sequence[ResultPolicy]] = ("auto", "on_error", "ask")

ReadCommand = Callable[[str], Sequence[Subject]]
ReadCommands = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[Subject]]]]


def _no_shell(text: str) -> Sequence[Subject]:
    raise ConfigError("to judge shell commands, install everturn[shell]")


async def _no_shells(texts: Sequence[str]) -> Sequence[Sequence[Subject]]:
    return [_no_shell(text) for text in texts]


class _Known(Struct, frozen=True):
    """What was worked out of a tool, for as long as it is the same."""

    spec: ToolSpec
    identity: str
    own: Judgement | None  # what it says of itself, by `execute`


class Decision(Struct, frozen=True):
    """What becomes of a call, and what it is about, as the rules saw it."""

    judgement: Judgement
    cases: Sequence[Case] = ()  # none where the tool's own word was enough


class Permits:
    """The rules of a runtime, and what is known of its tools."""

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        read_command: ReadCommand = _no_shell,
        read_commands: ReadCommands = _no_shells,
    ) -> None:
        self._read_command, self._read_commands = read_command, read_commands
        self.replace(rules)
        self._known: dict[str, _Known] = {}
        self._policies: dict[bytes, Policy] = {}

    def replace(self, rules: Iterable[Rule]) -> None:
        """Let these be the rules from now on: each call is judged by those that are there when it is about to start."""
        rules = tuple(rules)
        self.policy = Policy(rules)
        self._loops = _about_loops(rules)

    def identity(self, spec: ToolSpec) -> str:
        """The identity of a tool, worked out once."""
        return self._know(spec).identity

    def _know(self, spec: ToolSpec) -> _Known:
        known = self._known.get(spec.name)
        if known is None or known.spec is not spec:
            known = self._known[spec.name] = _Known(spec, spec.identity, _own(spec))
        return known

    def _policy(self, rules: Sequence[Rule]) -> Policy | None:
        """Rules beside the runtime's, compiled once: most turns of a session have the same."""
        if not rules:
            return None
        key = msgspec.json.encode(rules)
        if (policy := self._policies.get(key)) is None:
            if len(self._policies) >= REMEMBERED:
                self._policies.clear()
            policy = self._policies[key] = Policy(rules)
        return policy

    def _policies_for(self, own: Sequence[Rule], grants: Sequence[Rule]) -> list[Policy]:
        found = (self.policy if self.policy.rules else None, self._policy(own), self._policy(grants))
        return [policy for policy in found if policy is not None]

    def unruled(self, spec: ToolSpec, options: TurnOptions) -> Judgement | None:
        """What a tool says of itself, where nobody else has anything to say; None: there is more to look at."""
        if self.policy.rules or options.rules or options.above is not None or spec.subjects:
            return None
        return self._know(spec).own

    def granted(self, grants: Iterable[Grant], tool_named: Callable[[str], Tool | None], by: str) -> list[Rule]:
        """What people have allowed from now on, as rules for a turn that this user asked for.

        Another tool of the same name has no part in it, nor has another user where it was given for one.
        """
        found: list[Rule] = []
        for grant in grants:
            tool = tool_named(grant.tool)
            if tool is not None and self.identity(tool.spec) == grant.identity and grant.asker in ("", by):
                found.append(grant.rule)
        return found

    async def decide(
        self,
        spec: ToolSpec,
        given: JsonObject,
        meant: JsonObject,
        options: TurnOptions,
        grants: Callable[[], Awaitable[Sequence[Rule]]],
    ) -> Decision:
        """What becomes of a call: the one path that a turn goes, and that whoever explains goes.

        `given` is as it was written, `meant` as the tool reads it, with its defaults. Grants are looked at only where they
        could help. What is written may be forbidden though what is meant is not.
        """
        decided = await self._decide(spec, meant, options, grants)
        if meant is given or meant == given or decided.judgement.action == "deny":
            return decided
        if not (self.policy.rules or options.rules or options.above):
            return decided
        try:
            other = self.judge(spec, await self.read_cases(spec, given, options), options)
        except ToolError as error:
            return Decision(_unjudged(error))
        is_stricter = other.action == "deny" or (other.action == "ask" and other.is_final)
        return Decision(other, decided.cases) if is_stricter else decided

    async def _decide(
        self, spec: ToolSpec, meant: JsonObject, options: TurnOptions, load: Callable[[], Awaitable[Sequence[Rule]]]
    ) -> Decision:
        if (own := self.unruled(spec, options)) is not None:
            return Decision(own)
        try:
            cases = await self.read_cases(spec, meant, options)
            judged = self.judge(spec, cases, options)
            if judged.action != "ask" or judged.is_final or not (grants := await load()):
                return Decision(judged, cases)
            cases = await self.read_cases(spec, meant, options, grants)
        except ToolError as error:
            return Decision(_unjudged(error))
        return Decision(self.judge(spec, cases, options, grants), cases)

    async def read_cases(
        self, spec: ToolSpec, arguments: JsonObject, options: TurnOptions, grants: Sequence[Rule] = ()
    ) -> list[Case]:
        """What a call is about, as rules see it. Command lines are read in bounded time, and off the event loop if long.

        Raises:
            ToolError: it cannot be told; such a call is denied.
        """
        texts = commands_of(spec.subjects, arguments) if spec.subjects else []
        if not texts:
            return self._cases(spec, arguments, options, grants, self._read_command)
        read = dict(zip(texts, await self._read_commands(texts), strict=True))
        return self._cases(spec, arguments, options, grants, read.__getitem__)

    def cases(
        self, spec: ToolSpec, arguments: JsonObject, options: TurnOptions, grants: Sequence[Rule] = ()
    ) -> list[Case]:
        """The same here and now, for those who cannot wait: a long command line is not read."""
        return self._cases(spec, arguments, options, grants, self._read_command)

    def _cases(
        self,
        spec: ToolSpec,
        arguments: JsonObject,
        options: TurnOptions,
        grants: Sequence[Rule],
        read_command: ReadCommand,
    ) -> list[Case]:
        names = self.policy.names
        if not options.rules and not grants and options.above is None:
            return [*cases_of(spec.subjects, arguments, read_command, names)]
        within = options.above.within if options.above is not None else ()
        for rules in (options.rules, grants, *(authority.rules for authority in within)):
            if (policy := self._policy(rules)) is not None:
                names = names | policy.names
        return [*cases_of(spec.subjects, arguments, read_command, names)]

    def judge(
        self, spec: ToolSpec, cases: Sequence[Case], options: TurnOptions, grants: Sequence[Rule] = ()
    ) -> Judgement:
        """Allow, ask or deny."""
        own = self._know(spec).own
        judged = self._judge(spec, cases, own, options.rules, grants)
        if options.above is None:
            return judged
        above = (self._judge_above(spec, cases, one, grants) for one in options.above.within)
        return strictest(judged, *above)

    def _judge(
        self,
        spec: ToolSpec,
        cases: Sequence[Case],
        own: Judgement | None,
        rules: Sequence[Rule],
        grants: Sequence[Rule],
    ) -> Judgement:
        """Every case by itself; of what several lists of rules say of it the strictest, and the strictest case."""
        policies = self._policies_for(rules, grants)
        if not policies and own is not None:
            return own
        if len(cases) > MOST_CASES:
            return self.policy.judge(spec.name, cases)
        tool, acts = spec.name, is_acting(spec)
        found: list[Judgement] = []
        for case in cases or ({},):
            said = [judged for policy in policies for judged in policy.judge_each(tool, [case], acts)]
            matched = [judged for judged in said if judged.is_final or judged.rule is not None]
            found.append(
                strictest(*matched, *([own] if own is not None else ())) if matched or own else _nothing(tool, case)
            )
        return strictest(*found)

    def _judge_above(
        self, spec: ToolSpec, cases: Sequence[Case], above: Authority, grants: Sequence[Rule]
    ) -> Judgement:
        if not _has(above, spec):
            return Judgement("deny", reason="the turn above this one does not have the tool", is_final=True)
        return self._judge(spec, cases, self._know(spec).own, above.rules, grants)

    def judge_loop(self, tool: str, options: TurnOptions, grants: Sequence[Rule] = ()) -> Judgement:
        """Whether a tool may go round in circles."""
        cases: list[Case] = [{"tool": Subject("text", tool)}]
        within = options.above.within if options.above is not None else ()
        found: list[Judgement] = []
        for rules in (options.rules, *(one.rules for one in within)):
            about = (*self._loops, *_about_loops(rules), *_about_loops(grants))
            found.append(Policy(about).judge(DOOM_LOOP, cases))
        return strictest(*found)

    def offered(self, tools: Mapping[str, Tool], options: TurnOptions) -> list[ToolSpec]:
        """The tools a model is told of: those denied outright are not."""
        return [tool.spec for tool in tools.values() if not self.is_denied(tool.spec, options)]

    def is_denied(self, spec: ToolSpec, options: TurnOptions) -> bool:
        """Whether no call of a tool can be allowed, whatever its arguments."""
        if spec.execute == "deny" or self.policy.denies_outright(spec.name):
            return True
        within = options.above.within if options.above is not None else ()
        if not all(_has(one, spec) for one in within):
            return True
        lists = (options.rules, *(one.rules for one in within))
        return any(policy.denies_outright(spec.name) for rules in lists if (policy := self._policy(rules)))


def _about_loops(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Only those that name it: who allows everything has not thought of going round in circles."""
    return tuple(rule for rule in rules if rule.tool == DOOM_LOOP)


def _own(spec: ToolSpec) -> Judgement | None:
    action = _DEFAULT.get(spec.execute)
    if action is None:
        return None
    rule = Rule(spec.name, action, layer="defaults", source="its own `execute`")
    reason = {"allow": "runs by itself", "ask": "asks every time", "deny": "may not be used"}[action]
    return Judgement(action, rule, is_final=True, reason=f"{spec.name} {reason}")


def _unjudged(error: ToolError) -> Judgement:
    return Judgement("deny", reason=str(error), is_final=True)


def _nothing(tool: str, case: Case) -> Judgement:
    said = {name: subject.text for name, subject in case.items() if subject is not None}
    return Judgement("ask", None, said, reason=f"no rule says anything of this call of {tool}")


def is_acting(spec: ToolSpec) -> bool:
    """Whether a tool does something that a rule for every tool does not cover: 0113 says why.

    One that only reads does not, nor does one that its author lets run by itself. What an MCP server says of its own
    tools is a claim.
    """
    return spec.execute != "auto" and (spec.effects != "read" or spec.origin.startswith("mcp:"))


def _has(above: Authority, spec: ToolSpec) -> bool:
    """Whether a turn has a tool. What a group holds only a registry knows; it offers no more than that."""
    names = above.tools
    if names is None or spec.origin == "builtin" or any(name.startswith("@") for name in names):
        return True
    return is_selected(spec.name, names)


def is_selected(name: str, patterns: Iterable[str]) -> bool:
    """Whether a tool's name is among those meant by patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_by_hand(spec: ToolSpec, options: TurnOptions) -> bool:
    """Whether a person runs it."""
    return spec.by_hand or (bool(options.by_hand) and is_selected(spec.name, options.by_hand))


def needs_review(spec: ToolSpec, options: TurnOptions, worked: bool) -> bool:
    """Whether a person reads the result before the model does."""
    if spec.result == options.result == "auto":
        return False
    policy = max(spec.result, options.result, key=_REVIEWS.index)
    return policy == "ask" or (policy == "on_error" and not worked)


def offers_for(spec: ToolSpec, cases: Sequence[Case], is_open: Callable[[Case], bool]) -> tuple[Rule, ...]:
    """The rules that `always` could store for a call, the narrowest first; none where one rule would not do."""
    if not spec.subjects:
        return (Rule(escape(spec.name), "allow", layer="grants"),)
    asked = [case for case in cases if is_open(case)]
    if len(asked) != 1:
        return ()
    said = {name: subject for name in spec.subjects if (subject := asked[0].get(name)) is not None}
    narrow = {name: exact for name, subject in said.items() if (exact := exactly(subject))}
    if len(narrow) < len(said) or not said:
        return ()
    wide = {name: _wider(subject) for name, subject in said.items()}
    found = [Rule(escape(spec.name), "allow", narrow, "grants")]
    if wide != narrow and all(wide.values()):
        found.append(Rule(escape(spec.name), "allow", wide, "grants"))
    return tuple(found)


# Programs that show what is there, and have no option by which they run a command or write a file. Of any other no two
# words say what is meant: `git config *` sets what git runs, and `go test *` has -exec.
_SHOWING: Final = frozenset(
    "basename cat cksum cmp comm cut df diff dirname du echo egrep expand fgrep fmt fold grep head id join jq ls md5sum nl od "
    "paste pwd readlink realpath rev seq sha1sum sha256sum stat strings tac tail tr uname wc which whoami".split()
)


def _wider(subject: Subject) -> str:
    """A pattern for more of the same; nothing where that would be for anything at all."""
    if subject.kind == "command" and len(subject.words) > 1:
        return f"{subject.words[0]} *" if subject.words[0] in _SHOWING else ""
    if subject.kind == "url" and subject.text.count("/") >= 3:
        return escape("/".join(subject.text.split("/")[:3])) + "/**"
    if subject.kind == "path" and "/" in subject.text.strip("/"):
        return escape(subject.text.rsplit("/", 1)[0]) + "/**"
    return exactly(subject)
