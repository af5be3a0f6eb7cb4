"""What it costs to judge a call: by the number of rules, beside a bare loop of fnmatch over the same patterns.

    python benchmarks/rules.py

The rules are of all kinds, and the one that fits comes last. "One tool" is the worst case: every rule is about the
tool that is called. "Many tools" spreads the same rules over fifty. Both sides run in turns in the same process, so
trust the ratios, not the microseconds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from time import process_time

from everturn.core.canonical_json import JsonObject
from everturn.core.rules.policy import Policy, Rule, RuleAction, Subject, SubjectCase
from everturn.core.rules.subjects import build_cases

SIZES = (10, 100, 1_000, 10_000)
REPEATS = 7
GOAL = 1_000.0  # microseconds, with 1,000 rules
CASE: SubjectCase = {
    "command": Subject("command", "git log --oneline -n 5", ("git", "log", "--oneline", "-n", "5")),
    "path": Subject("path", "src/everturn/core/rules/policy.py"),
    "url": Subject("url", "https://docs.example.com/guide/rules?page=2"),
    "text": Subject("text", "Say what has changed since yesterday, in two sentences."),
}
PATTERNS = (
    ("command", "tool{n} log --since *"),
    ("path", "lib{n}/**/*.py"),
    ("url", "https://*.host{n}.com/**"),
    ("text", "*word{n}*"),
    ("path", "**/file{n}.py"),
)


def rules_of(count: int, tools: int) -> list[Rule]:
    """Rules that do not fit, and in the end one that does."""
    rules: list[Rule] = []
    actions: tuple[RuleAction, ...] = ("deny", "ask", "allow")
    for n in range(count - 1):
        name, pattern = PATTERNS[n % len(PATTERNS)]
        rules.append(Rule(f"tool_{n % tools}", actions[n % 3], {name: pattern.replace("{n}", str(n))}))
    return [*rules, Rule("tool_0", "allow", {"command": "git log *"}, "defaults")]


def microseconds(act: Callable[[], object], times: int) -> float:
    """The CPU time of one."""
    begun = process_time()
    for _ in range(times):
        act()
    return (process_time() - begun) / times * 1e6


def bare(rules: list[Rule]) -> object:
    """What a bare loop does: no kinds, no look-alikes, nothing remembered beyond the patterns."""
    return [
        rule
        for rule in rules
        if rule.tool == "tool_0"
        and all(fnmatchcase(case.text if (case := CASE[name]) else "", text) for name, text in rule.match.items())
    ]


def compare(count: int, tools: int) -> tuple[float, float, float]:
    """Bare and judged, in turns; and what it costs to make the policy and judge for the first time."""
    rules = rules_of(count, tools)
    first = microseconds(lambda: Policy(rules).decide("tool_0", [CASE]), 1)
    policy = Policy(rules)
    assert policy.decide("tool_0", [CASE]).action == "allow"
    times = max(1, 20_000 // count)
    pairs = [
        (microseconds(lambda: bare(rules), times), microseconds(lambda: policy.decide("tool_0", [CASE]), times))
        for _ in range(REPEATS)
    ]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs), first


def reading() -> dict[str, float]:
    """What it costs to lay out the cases of a call."""
    arguments: JsonObject = {"path": "src/a.py", "text": "word " * 200, "to": {"city": "Bern"}}
    none: frozenset[str] = frozenset()
    return {
        "no rule looks at any argument": microseconds(lambda: build_cases({}, arguments, _no_command, none), 20_000),
        "a path is declared": microseconds(lambda: build_cases({"path": "path"}, arguments, _no_command, none), 20_000),
        "everything": microseconds(lambda: build_cases({"path": "path"}, arguments, _no_command), 20_000),
    }


def _no_command(text: str) -> list[Subject]:
    return [Subject("command", text, tuple(text.split()))]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    file: Path | None = parser.parse_args().json
    report: dict[str, object] = {"goal": GOAL}
    print(
        "| rules | about | bare, μs | judged, μs | times bare | made and judged once, μs |\n|---|---|---|---|---|---|"
    )
    for tools, about in ((1, "one tool"), (50, "many tools")):
        for count in SIZES:
            loop, judged, first = compare(count, tools)
            report[f"{about} {count}"] = {"bare": loop, "judged": judged, "first": first}
            print(f"| {count:,} | {about} | {loop:.1f} | {judged:.1f} | {judged / loop:.2f} | {first:.0f} |")
    print("\n| cases of a call | μs |\n|---|---|")
    for label, cost in reading().items():
        report[label] = cost
        print(f"| {label} | {cost:.2f} |")
    if file is not None:
        file.write_text(json.dumps(report, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
