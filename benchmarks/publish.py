"""Publish measurements: run benchmarks, keep their figures with the commit they describe, write the tables of pages from them.

    python benchmarks/publish.py measure turn calls durable …   # run these; figures go to benchmarks/results/NAME.json
    python benchmarks/publish.py write                          # the tables of the pages, from what is kept
    python benchmarks/publish.py check                          # that the pages say what is kept (CI runs this)

A table on a page is never typed: it stands between `<!-- NAME -->` and `<!-- /NAME -->`, and says at which commit, on
which Python and beside which load it was measured. `measure` refuses a checkout with changes that are not committed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGES = tuple(
    ROOT / "docs" / page
    for page in (
        "performance.md",
        *(f"deploy/{name}.md" for name in ("engines", "scaling", "failure-tests", "rate-limits", "cells")),
        *("guides/schedules.md", "guides/webhooks.md", "guides/providers.md"),
    )
)
RESULTS = HERE / "results"
sys.path += [str(HERE), str(HERE / "peers"), str(ROOT)]

import campaigns  # noqa: E402
from machine import MachineLoad  # noqa: E402

PEERS = [
    "raw",
    "everturn",
    "everturn_run",
    "bare_aiohttp",
    "bare_httpx",
    "openai_sdk",
    "openai_agents",
    "pydantic_ai",
    "langgraph",
]
NAMES = {
    "raw": "bytes read, nothing parsed",
    "everturn": "**everturn**, `Chat`",
    "everturn_run": "**everturn**, `Agent.run`",
    "bare_aiohttp": "a loop by hand on aiohttp",
    "bare_httpx": "a loop by hand on httpx",
    "openai_sdk": "openai SDK",
    "openai_agents": "openai-agents",
    "pydantic_ai": "pydantic-ai",
    "langgraph": "langgraph",
}
SIDES = {
    "insert": "one INSERT per result, by hand (PostgreSQL)",
    "restate": "a bare Restate handler",
    "cluster": "**everturn** on Restate, PostgreSQL and NATS",
    "postgres": "**everturn**, one process, PostgreSQL only",
    "sqlite": "**everturn**, one process, SQLite",
    "memory": "**everturn**, one process, memory",
}

# How each is run: the arguments behind the program; FILE is where its figures go.
COMMANDS: dict[str, list[str]] = {
    "peers": ["peers/run.py", "--phase", "seq", "--repeats", "5", "--rows", "FILE"],
    "turn": ["turn.py", "--json", "FILE"],
    "calls": ["calls.py", "--repeats", "15", "--json", "FILE"],
    "rules": ["rules.py", "--json", "FILE"],
    "reading": ["reading.py", "--json", "FILE"],
    "durable": ["durable.py", "--json", "FILE"],
    "wal": ["wal.py", "--json", "FILE"],
    "streams": ["streams.py", "--json", "FILE"],
    "cluster": ["cluster.py", "--json", "FILE"],
    "engines": ["engines.py", "--json", "FILE"],
    "heartbeats": ["engines.py", "--heartbeats", "2", "5", "10", "--json", "FILE"],
    "size": ["size.py", "--json", "FILE"],
    "retention": ["retention.py", "--json", "FILE"],
    "capacity": ["capacity.py", "--json", "FILE"],
}


# Measuring ----------------------------------------------------------------------------------------------------------


def measure(name: str, is_short: bool = False, more: str = "") -> None:
    """Run a benchmark, and keep what it found. The short form is for a machine that others use, too: its best samples
    are as good, there are fewer of them.
    """
    changed = _git("status", "--porcelain", "--untracked-files=no").splitlines()
    written = ("benchmarks/results/", *(str(page.relative_to(ROOT)) for page in PAGES))
    if foreign := [line for line in changed if not any(each in line for each in written)]:
        sys.exit(f"publish: commit first, or the figures describe no commit: {foreign[0].strip()}")
    is_campaign = name in campaigns.COMMANDS
    program, *arguments = campaigns.COMMANDS[name][1:] if is_campaign else COMMANDS[name]
    if is_short:
        arguments.insert(0, "--short")
    arguments = [*more.split(), *arguments]
    load, commit = os.getloadavg()[0], _git("rev-parse", "--short", "HEAD")
    run = ["-m", program] if is_campaign else [str(HERE / program)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures"
        words = [str(file) if each == "FILE" else each for each in arguments]
        with MachineLoad() as machine:
            ended = subprocess.run([sys.executable, *run, *words], check=not is_campaign, cwd=ROOT)
        if ended.returncode and not file.exists():
            sys.exit(f"publish: {name} ended with {ended.returncode}")
        text = file.read_text(encoding="utf-8")
    figures = [json.loads(line) for line in text.splitlines()] if name == "peers" else json.loads(text)
    record = {
        "commit": commit,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": round(load, 1),
        **(machine.figures() if is_campaign else {}),
        "command": " ".join(
            [
                f"python -m {program}" if is_campaign else f"python benchmarks/{program}",
                *(each for each in arguments if each not in ("FILE", "--json" if is_campaign else "")),
            ]
        ),
        "figures": _rounded(figures),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _rounded(value: Any) -> Any:
    """Five digits are more than any of these figures has."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


# Writing ------------------------------------------------------------------------------------------------------------


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _goal(seen: float, limit: float, unit: str) -> list[str]:
    return [f"{_figure(seen)} {unit}".strip(), f"{limit:g} {unit}".strip() + ("" if seen <= limit else ", **missed**")]


def scenarios() -> str:
    """What one turn is in each column of `peers`, from the definition that the benchmark runs."""
    from peers.scenarios import SCENARIOS

    lines: list[str] = []
    for name in "ABCDE":
        scenario = SCENARIOS[name]
        parts: list[str] = []
        if scenario.history:
            parts.append(f"{scenario.history} messages of history")
        if scenario.calls:
            steps = scenario.calls // 3 if scenario.calls > 1 else 1
            shape = "one call" if scenario.calls == 1 else f"{scenario.calls} calls in {steps} steps"
            parts.append(f"{shape}, arguments of each in {scenario.pieces - 1:,} chunks")
        parts.append(f"{scenario.text:,} chunks of text")
        lines.append(f"- **{name}**: {'; '.join(parts)}")
    return "\n".join(lines)


def peers(rows: list[dict[str, Any]]) -> str:
    from peers.tables import Found

    found = Found(rows)
    lines = [
        [NAMES[peer], *(_figure(min(found.of("seq", name, peer).values()) * 1000) for name in "ABCDE")]
        for peer in PEERS
        if found.of("seq", "A", peer)
    ]
    return f"{scenarios()}\n\n{_table(['ms of CPU', *'ABCDE'], lines)}"


def turn(found: dict[str, Any]) -> str:
    rows = [[goal["text"], *_goal(goal["measured"], goal["limit"], "")] for goal in found["goals"]]
    return _table(["what", "seen", "goal"], rows)


def calls(found: dict[str, Any]) -> str:
    costs, bare = found["calls"], found["calls"]["bare"]["best"]
    rows = [
        [f"an allowed call, {kind}", *_goal(cost["best"] - bare, found["goal"], "μs")]
        for kind, cost in costs.items()
        if kind != "bare"
    ]
    return _table(["CPU above the bare function, recorded and judged", "seen", "goal"], rows)


def rules(found: dict[str, Any]) -> str:
    rows = [
        [name, f"{_figure(cost['bare'])} μs", f"{_figure(cost['judged'])} μs", f"{_figure(cost['first'])} μs"]
        for name, cost in found.items()
        if isinstance(cost, dict)
    ]
    return _table(["rules", "a bare loop over them", "judged", "first time, compiled"], rows)


def reading(found: list[dict[str, Any]]) -> str:
    rows = [[row["format"], row["answer"], f"{row['read'] - row['bare']:.1f} μs"] for row in found]
    return _table(["format", "answer", "CPU above native, a piece"], rows)


def durable(found: dict[str, Any]) -> str:
    from durable import goals_table

    def spread(values: list[float]) -> str:
        return f"{values[0]:.2f} ({values[1]:.2f}–{values[2]:.2f})" if values else ""

    rows = [
        [
            str(row["at_once"]),
            SIDES[row["side"]],
            spread(row["total"]),
            ", ".join(f"{part} {cost:.1f}" for part, cost in {**row["parts"], "sender": row["sender"]}.items() if cost),
            f"{row['turns_per_second']:.0f}",
        ]
        for row in found["rows"]
    ]
    head = ["at once", "side", "CPU s per 1,000 turns", "of which", "turns/s"]
    return f"{_table(head, rows)}\n\n{goals_table(found)}"


def wal(found: dict[str, Any]) -> str:
    """What a turn writes, by table with its indexes; each run beside the others."""
    from wal import GOAL, by_table

    runs = {name: found[name] for name in ("many", "prose", "insert")}
    tables = {name: by_table(run["records"]) for name, run in runs.items()}
    names = sorted({*tables["many"], *tables["prose"], *tables["insert"]})
    names.sort(key=lambda name: -tables["many"].get(name, (0.0, 0.0))[1])
    rows = [
        [
            name,
            *(
                f"{_figure(table[name][0])} | {_figure(table[name][1])}" if name in table else " | "
                for table in tables.values()
            ),
        ]
        for name in names
        if max(table.get(name, (0.0, 0.0))[1] for table in tables.values()) >= 10
    ]
    sums = [
        f"{_figure(sum(r for r, _ in table.values()))} | {_figure(sum(b for _, b in table.values()))}"
        for table in tables.values()
    ]
    rows.append(["**all**, without page images", *sums])
    rows.append(["page images", *(f" | {_figure(run['wal_bytes'] - run['row_bytes'])}" for run in runs.values())])
    head = ["table with its indexes"]
    for title in ("repeated text", "prose", "bare INSERT"):
        head += [f"records, {title}", "bytes"]
    summary = [
        ["WAL of a turn", *_goal(runs["many"]["wal_bytes"], GOAL, "bytes")],
        ["the same, with prose as content", *_goal(runs["prose"]["wal_bytes"], GOAL, "bytes")],
        ["rows of the log", f"{_figure(runs['many']['event_rows'])} for {_figure(runs['many']['events'])} events", ""],
        ["updates of the session's row", f"{_figure(runs['many']['session_updates'])}", ""],
    ]
    split = [[row[0], *(cell for pair in row[1:] for cell in pair.split(" | "))] for row in rows]
    return f"{_table(['what', 'seen', 'goal'], summary)}\n\n{_table(head, split)}"


def streams(found: dict[str, dict[str, float]]) -> str:
    idle, fan_out, storm = found["idle"], found["fan_out"], found["storm"]
    rows = [
        [f"{idle['streams']:,.0f} idle streams, memory of each", *_goal(idle["kB each"], 40, "kB")],
        ["all of them together, idle", *_goal(idle["% CPU idle"], 1, "% of a core")],
        [f"one message to one of {fan_out['readers']:,.0f} readers", *_goal(fan_out["μs CPU per delivery"], 25, "μs")],
        ["the same in a bare ASGI loop", f"{_figure(fan_out['μs of a bare loop'])} μs", ""],
        [
            f"{storm['readers']:,.0f} readers that come back at once from random cursors, each",
            f"{_figure(storm['ms CPU each'])} ms; {storm['with the same text']:,.0f} with exactly the stored text",
            "",
        ],
    ]
    return _table(["what", "seen", "goal"], rows)


def cluster(found: list[dict[str, Any]]) -> str:
    rows = [
        [
            f"{measurement['turns']}",
            f"{measurement['pace']:g} s",
            *_goal(measurement["added ms"]["p50"], 60, "ms"),
            str(measurement["load"]),
        ]
        for measurement in found
    ]
    return _table(["turns at once", "a delta of each every", "added to a delta, p50", "goal", "load"], rows)


ENGINES = {
    "inline": "in the process",
    "postgres": "PostgreSQL only",
    "restate": "Restate",
    "temporal": "Temporal (development server)",
}


def engines(found: dict[str, Any]) -> str:
    rows = [
        [
            str(row["at_once"]),
            ENGINES[row["engine"]],
            "{:.2f} ({:.2f}–{:.2f})".format(*row["total"]),
            ", ".join(f"{part} {cost:.2f}" for part, cost in row["parts"].items()),
            f"{_figure(row['p50'])} ms",
            f"{_figure(row['p99'])} ms",
        ]
        for row in found["rows"]
    ]
    return _table(["at once", "engine", "CPU s per 1,000 wakes", "of which", "wake to drive, p50", "p99"], rows)


def heartbeats(found: dict[str, Any]) -> str:
    rows = [
        [f"{row['timeout']:g} s", f"{row['sessions']:,.0f}", f"{row['again']:,.0f}", f"{row['load']:.0f}"]
        for row in found["rows"]
    ]
    return _table(["heartbeat timeout", "sessions driven", "of which a second time", "load"], rows)


def size(found: dict[str, Any]) -> str:
    rows_of_log = sum(table["rows"] for name, table in found["tables"].items() if re.fullmatch(r"events(_\d+)?", name))
    events = found.get("events", rows_of_log)
    disk = sum(table["bytes"] for table in found["tables"].values())
    summary = (
        f"{found['sessions'] / 1e6:.3g} M sessions, {found['turns'] / 1e6:.3g} M turns, {events / 1e6:.3g} M events and "
        f"{found['gates']:,} open gates in {rows_of_log / 1e6:.3g} M rows of the log: {disk / 1e9:.1f} GB with indexes."
    )
    rows = [
        [
            row["what"],
            row["before"],
            *_goal(row["median"], 200, "ms"),
            f"{_figure(row['slowest'])} ms",
            f"{row['cpu']:.1f} ms",
            f"{row['size']:,}",
        ]
        for row in found["rows"]
    ]
    head = ["question", "earlier review", "median", "goal", "slowest", "CPU of the server", "bytes or lines"]
    return f"{summary}\n\n{_table(head, rows)}"


def capacity(found: dict[str, Any]) -> str:
    from tools.capacity import page

    return page(found)


def retention(found: dict[str, Any]) -> str:
    rows = [[row["what"], row["seen"]] for row in found["rows"]]
    return _table(["what", "seen"], rows)


RENDERERS: dict[str, Callable[[Any], str]] = {
    "peers": peers,
    "turn": turn,
    "calls": calls,
    "rules": rules,
    "reading": reading,
    "durable": durable,
    "wal": wal,
    "streams": streams,
    "cluster": cluster,
    "engines": engines,
    "heartbeats": heartbeats,
    "size": size,
    "retention": retention,
    "capacity": capacity,
}


def campaign(name: str, found: Any) -> str:
    return _table(["what", "seen", "goal"], [list(row) for row in campaigns.RENDERERS[name](found)])


def measured_at(record: dict[str, Any]) -> str:
    """At which commit, and beside which load."""
    beside = f"load {record['load_before']} before it began"
    if "load_mean" in record:
        beside += (
            f", {record['load_mean']} on average and at most {record['load_max']} while it ran; it used {record['own_cpu']:,} s "
            f"of processor time, and other programs {record['other_cpu']:,} s"
        )
    return (
        f"Measured by `{record['command']}` at commit {record['commit']}: Python {record['python']}, {record['cores']} cores, "
        f"{beside}."
    )


def rendered(page: str) -> str:
    """The page, with each table as its figures have it."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        if name == "scenarios":  # what is measured, not what was found
            return f"<!-- {name} -->\n\n{scenarios()}\n\n<!-- /{name} -->"
        record = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        found = record["figures"]
        table = campaign(name, found) if name in campaigns.RENDERERS else RENDERERS[name](found)
        return f"<!-- {name} -->\n\n{table}\n\n{measured_at(record)}\n\n<!-- /{name} -->"

    return re.sub(r"<!-- (?P<name>\w+) -->\n.*?<!-- /(?P=name) -->", block, page, flags=re.DOTALL)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["measure", "write", "check"])
    parser.add_argument(
        "names",
        nargs="*",
        choices=[*COMMANDS, *campaigns.COMMANDS, []],
        help="which to measure; all of them if none is named",
    )
    parser.add_argument("--short", action="store_true", help="the short form, of those that have one: turn, peers")
    parser.add_argument(
        "--with", dest="more", default="", help="further arguments of the benchmark: '--database NAME --keep'"
    )
    options = parser.parse_args()
    if options.what == "measure":
        for name in options.names or COMMANDS:
            measure(name, options.short, options.more)
        return
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        new = rendered(page)
        if options.what == "write":
            path.write_text(new, encoding="utf-8")
        elif new != page:
            sys.exit(
                f"publish: {path.relative_to(ROOT)} does not say what benchmarks/results has; run "
                "benchmarks/publish.py write"
            )


if __name__ == "__main__":
    main()
