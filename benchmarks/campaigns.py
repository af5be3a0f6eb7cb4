"""Tables of the campaigns: how `publish.py` runs each of them, and what its page shows of the figures."""

from __future__ import annotations

from typing import Any

# The arguments behind `python`; FILE is where the figures go.
COMMANDS: dict[str, list[str]] = {
    "kill_points": ["-m", "tools.chaos.kill", "--engine", "postgres", "--json", "FILE"],
    "random_kills": [
        *("-m", "tools.chaos.random_kills", "--engine", "postgres", "--kills", "110", "--lanes", "50"),
        *("--faults", "--json", "FILE"),
    ],
    "rolling_restart": ["-m", "tools.chaos.rolling_restart", "--json", "FILE"],
    "schedules": ["-m", "tools.chaos.schedules", "--json", "FILE"],
    "webhooks": ["-m", "tools.chaos.webhooks", "--kills", "20", "--json", "FILE"],
    "rate_limits": ["-m", "tools.chaos.rate_limits", "--json", "FILE"],
    "temporal_kills": [
        *("-m", "tools.chaos.random_kills", "--engine", "temporal", "--kills", "30", "--lanes", "12", "--json", "FILE"),
    ],
    "failover": ["-m", "tools.chaos.failover", "--json", "FILE"],
    "failover_asynchronous": ["-m", "tools.chaos.failover", "--asynchronous", "--json", "FILE"],
    "cells": ["-m", "tools.cells.campaign", "--json", "FILE"],
    "two_releases": ["-m", "tools.chaos.two_releases", "--turns", "200", "--json", "FILE"],
}

HEARTBEAT = 10.0  # seconds, the default of the Temporal engine
FAULTS = {
    "kill": "kill -9 of a busy process",
    "SIGSTOP": "a process is stopped (SIGSTOP)",
    "wedge": "a tool blocks the event loop of its process",
    "cut": "every database connection is cut",
    "pause": "the database answers nobody for 3 s (from the beginning of the pause)",
    "restart": "the database crashes and restarts (from the crash)",
    "back": "the same from the moment at which it accepts connections",
}

Row = tuple[str, str, str]
"""What, what was seen, and the goal."""


def at_most(seen: float, limit: float, unit: str = " s", digits: int = 1) -> tuple[str, str]:
    """A figure, and its goal; which says when it was missed."""
    return f"{seen:.{digits}f}{unit}", f"≤ {limit:g}{unit}" + ("" if seen <= limit else ", **missed**")


def none_of(name: str, found: dict[str, Any]) -> Row:
    """How many violations the campaign found."""
    count = len(found["violations"])
    return name, str(count), "0" + (", **missed**" if count else "")


def _progress(
    name: str, times: dict[str, float], limit: float, again: int = 0, last: dict[str, float] | None = None
) -> Row:
    seen, goal = at_most(times["p99"], limit)
    sessions = f"{times['count']:,.0f} sessions"
    if again:
        sessions += f", {again:,} of which another fault hit before that"
    if again and last:
        sessions += f"; without these p99 {last['p99']:.1f} s, max {last['max']:.1f} s"
    return name, f"p50 {times['p50']:.1f} s, p99 {seen}, max {times['max']:.1f} s ({sessions})", f"p99 {goal}"


def kill_points(found: dict[str, Any]) -> list[Row]:
    """A kill at every point of a turn."""
    return [
        ("kills, at different named points of a turn", f"{found['kills']}, at {found['points']}", "≥ 60 points"),
        none_of("turns lost, effects lost or done twice, logs that differ", found),
        _progress("from the kill to the next event", found["progress"], 5.0),
    ]


def random_kills(found: dict[str, Any], limit: float = 5.0) -> list[Row]:
    """Kills and other faults under load."""
    others = ", ".join(f"{count} {name}" for name, count in found["faults"].items())
    return [
        ("kills; other faults; turns", f"{found['kills']}; {others or 'none'}; {found['turns']:,}", ""),
        none_of("turns lost, effects lost or done twice, logs that differ", found),
        *(
            _progress(
                f"{FAULTS[how]}: to the next event of a session",
                times,
                limit,
                found.get("again", {}).get(how, 0),
                found.get("last", {}).get(how),
            )
            for how, times in found["progress"].items()
        ),
        *_away(found.get("away", {})),
    ]


def _away(times: dict[str, float]) -> list[Row]:
    if not times.get("max"):
        return []
    seen = f"p50 {times['p50']:.1f} s, max {times['max']:.1f} s"
    return [("of this, the database itself: from the crash until it accepts connections", seen, "")]


def temporal_kills(found: dict[str, Any]) -> list[Row]:
    """The same with Temporal. Each kill costs a heartbeat timeout, so the goal is about the last one before an event."""
    times, last = found["progress"]["kill"], found.get("last", found["progress"])["kill"]
    seen, goal = at_most(last["max"], HEARTBEAT + 5.0)
    return [
        ("kills; turns", f"{found['kills']}; {found['turns']:,}", ""),
        none_of("turns lost, effects lost or done twice, logs that differ", found),
        (
            "from the last kill of its driver to the next event of a session",
            f"p50 {last['p50']:.1f} s, p99 {last['p99']:.1f} s, max {seen} ({last['count']:,.0f} sessions)",
            f"max {goal}",
        ),
        (
            "from the first kill, where more than one driver was killed before the next event",
            f"max {times['max']:.1f} s ({found.get('again', {}).get('kill', 0)} sessions)",
            "",
        ),
    ]


def rolling_restart(found: dict[str, Any]) -> list[Row]:
    """Streams over a rolling restart."""
    return [
        (
            "readers of an answer of 40 s over HTTP; replacements of all processes",
            f"{found['streams']}; {found['restarts']}",
            "",
        ),
        none_of("turns failed or completed twice, readers whose text differs from the stored one", found),
        ("reconnects of readers", str(found["reconnects"]), ""),
        ("steps that another process began again", str(found["step_restarts"]), ""),
        ("longest time without news, of any reader", f"{found['longest_gap']:.1f} s", ""),
    ]


def schedules(found: dict[str, Any]) -> list[Row]:
    """Schedules while their processes are killed."""
    return [
        (
            f"schedules due within {found['window'] / 60:g} minutes; kills",
            f"{found['schedules']:,}; {found['kills']}",
            "",
        ),
        none_of("planned times with no turn, with two, or with one that has not ended", found),
        ("from the planned time to the start, p50", f"{found['lag_p50']:.2f} s", ""),
        ("the same, p99", *at_most(found["lag_p99"], 5.0, digits=2)),
        ("the same, the latest", f"{found['lag_max']:.2f} s", ""),
        ("processor time of all processes", f"{found['cpu']:.0f} s", ""),
    ]


def webhooks(found: dict[str, Any]) -> list[Row]:
    """Webhooks to a receiver that fails half the time."""
    requests = f"{found['requests']:,}, of which {found['refused']:,} were answered with 500"
    return [
        ("events; kills of senders", f"{found['deliveries']:,}; {found['kills']}", ""),
        none_of("events not delivered, with a wrong signature, or under two ids", found),
        (f"requests in {found['seconds']:.0f} s", requests, ""),
        (
            "events delivered more than once: a sender was killed before it had recorded the answer",
            str(found["repeated"]),
            "",
        ),
    ]


def rate_limits(found: dict[str, Any]) -> list[Row]:
    """One limit, shared."""
    return [
        (f"requests that the provider refused, of {found['requests']:.0f}", *at_most(100 * found["refused"], 1, " %")),
        ("the small tenant's p99 from message to answer, alone", f"{found['alone_p99']:.1f} s", ""),
        ("the same beside the flood", f"{found['beside_p99']:.1f} s", ""),
        ("the ratio of both", *at_most(found["wait_ratio"], 3, " times")),
        ("part of the limit that was used", f"{100 * found['limit_used']:.0f} %", ""),
        ("the same after one of the processes was killed", f"{100 * found['limit_used_after_kill']:.0f} %", ""),
    ]


def failover(found: dict[str, Any]) -> list[Row]:
    """The primary dies."""
    return [
        ("turns; of which ran when the primary died", f"{found['turns']}; {found['running']}", ""),
        none_of("acknowledged inputs lost, turns without an end, effects lost or done twice", found),
        (
            "from the death of the primary to the end of the next turn; promoted after 2 s",
            f"{found['resumed']:.1f} s",
            "",
        ),
    ]


def failover_asynchronous(found: dict[str, Any]) -> list[Row]:
    """The same with a standby that lags by a second: here violations are what the campaign has to find."""
    label, seen, _ = none_of("acknowledged inputs lost, turns without an end, effects lost or done twice", found)
    return [(f"with an asynchronous standby that lags by 1 s: {label}", seen, "> 0")]


def _noise(found: dict[str, Any]) -> list[Row]:
    if "noise_p99_ms" not in found:
        return []
    return [("the same of pairs that both go past the router, p99", f"{found['noise_p99_ms']:.1f} ms", "")]


def cells(found: dict[str, Any]) -> list[Row]:
    """A tenant is moved."""
    return [
        ("streams; open gates; kills of the move", f"{found['streams']}; {found['gates']}; {found['kills']}", ""),
        none_of("turns and gates lost, turns completed twice, mails sent twice, readers whose text differs", found),
        ("reconnects of readers", str(found["reconnects"]), ""),
        ("steps that started again in the target", str(found["step_restarts"]), ""),
        ("longest time without news, of any reader", f"{found['longest_gap']:.1f} s", ""),
        (
            "a request past the router, p50, p99",
            f"{found['direct_p50_ms']:.1f} ms, {found['direct_p99_ms']:.1f} ms",
            "",
        ),
        (
            "a request through the router, p50, p99",
            f"{found['router_p50_ms']:.1f} ms, {found['router_p99_ms']:.1f} ms",
            "",
        ),
        ("the router adds, p50 of pairs", f"{found['overhead_p50_ms']:.1f} ms", ""),
        ("the router adds, p99 of pairs", *at_most(found["overhead_p99_ms"], 2, " ms")),
        *_noise(found),
        (
            "the router adds, difference of both p99",
            *at_most(found["router_p99_ms"] - found["direct_p99_ms"], 2, " ms"),
        ),
        ("processor time of the router for a request", f"{found['router_cpu_ms']:.1f} ms", ""),
    ]


def two_releases(found: dict[str, Any]) -> list[Row]:
    """The last release beside this version."""
    effects = ", ".join(f"{count:,} by {name}" for name, count in sorted(found["effects"].items()))
    return [
        (
            f"live turns while workers of {found['release']} and of this commit replaced each other three times; kill -9",
            f"{found['turns']:,}; {found['kills']}",
            "≥ 200 turns",
        ),
        (
            "turns that failed, were lost or have a call twice",
            str(found["failed"]),
            "0" + (", **missed**" if found["failed"] else ""),
        ),
        none_of("violations in their logs and effects", found),
        ("turns in which workers of both versions had a part", str(found["both"]), "> 0"),
        ("effects of tools", effects, ""),
    ]


def model_histories(found: dict[str, Any]) -> list[Row]:
    """Random histories, sent to strict providers (`tests/models/schedules.py`)."""
    missed = ["", ", **missed**"]
    last = found["first_seed"] + found["schedules"] - 1
    return [
        ("random schedules; kinds of models", f"{found['schedules']:,}; {found['groups']}", "≥ 10,000 schedules"),
        ("seeds", f"{found['first_seed']} to {last}", ""),
        ("operations; requests", f"{found['operations']:,}; {found['requests']:,}", ""),
        ("requests refused with status 400", str(found["refused"]), "0" + missed[bool(found["refused"])]),
        ("turns that failed, got stuck or were left over", str(found["others"]), "0" + missed[bool(found["others"])]),
        ("processor time", f"{found['processor_seconds']:,} s", ""),
    ]


RENDERERS = {
    "model_histories": model_histories,
    "kill_points": kill_points,
    "random_kills": random_kills,
    "temporal_kills": temporal_kills,
    "rolling_restart": rolling_restart,
    "schedules": schedules,
    "webhooks": webhooks,
    "rate_limits": rate_limits,
    "failover": failover,
    "failover_asynchronous": failover_asynchronous,
    "cells": cells,
    "two_releases": two_releases,
}
