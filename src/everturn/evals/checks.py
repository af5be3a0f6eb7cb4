"""Checks: what a run must fulfil, as data (in TOML) or as Python functions. Pure.

A check is called with the trajectory of the run and the recorded one, and returns True, or what is wrong as a text.
Acts count before words: without a check of its own, a case must make the same calls that act as its recording.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from msgspec import Struct

from everturn.core.canonical_json import encode_canonical, parse_json
from everturn.core.json_schema import validate_schema
from everturn.errors import ConfigError
from everturn.evals.trajectory import EvalCall, Trajectory
from everturn.replay.compare import differences

CheckOutcome = bool | str | None
"""True: it holds (None, too). False or a text: it does not; the text says why."""
CheckFunction = Callable[[Trajectory, Trajectory], CheckOutcome | Awaitable[CheckOutcome]]
SHOWN: Final = 200  # characters of a text that a reason shows


class Check(Struct, frozen=True):
    """A check by its kind, with the other keys of its table; `name` is what reports call it."""

    kind: str
    values: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """What reports call it."""
        if chosen := self.values.get("name"):
            return str(chosen)
        subject = next(
            (self.values[key] for key in ("tool", "text", "pattern", "tools", "max") if key in self.values), ""
        )
        return f"{self.kind} {subject if isinstance(subject, str) else encode_canonical(subject)}".strip()

    def __call__(self, run: Trajectory, recorded: Trajectory) -> CheckOutcome:
        """Apply the check to a run."""
        return KINDS[self.kind](self.values, run, recorded)


class CheckResult(Struct, frozen=True, omit_defaults=True):
    """The outcome of one check of one run."""

    name: str
    passed: bool
    reason: str = ""


def make_check(table: Mapping[str, Any]) -> Check:
    """Make a check of a TOML table.

    Raises:
        ConfigError: there is no such kind, or a key is missing or unknown.
    """
    values = dict(table)
    kind = str(values.pop("kind", ""))
    if kind not in KEYS:
        raise ConfigError(f"there is no check of kind {kind!r}; there are: {', '.join(sorted(KEYS))}")
    required, optional = KEYS[kind]
    if missing := [key for key in required if key not in values]:
        raise ConfigError(f"a check of kind {kind} needs {missing[0]}")
    if unknown := [key for key in values if key not in (*required, *optional, "name")]:
        raise ConfigError(f"a check of kind {kind} has no {unknown[0]!r}; it has: {', '.join((*required, *optional))}")
    if kind in ("regex", "not_regex"):
        try:
            re.compile(values["pattern"])
        except re.error as error:
            raise ConfigError(
                f"a check of kind {kind}: {values['pattern']!r} is not a regular expression: {error}"
            ) from None
    return Check(kind, values)


# The kinds ----------------------------------------------------------------------------------------------------------


def _contains(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    return values["text"] in run.text or f"the answer does not contain {values['text']!r}: {_shorten(run.text)}"


def _not_contains(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    return values["text"] not in run.text or f"the answer contains {values['text']!r}: {_shorten(run.text)}"


def _regex(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    return bool(re.search(values["pattern"], run.text)) or f"the answer does not match: {_shorten(run.text)}"


def _not_regex(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    return not re.search(values["pattern"], run.text) or f"the answer matches: {_shorten(run.text)}"


def _json_schema(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    try:
        violations = validate_schema(parse_json(run.text), values["schema"])
    except ValueError:
        return f"the answer is not JSON: {_shorten(run.text)}"
    return not violations or "; ".join(str(violation) for violation in violations)


def _called(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    matching = [call for call in run.calls if call.has_run and _fits(call, values)]
    least, most = int(values.get("min", 1)), values.get("max")
    if len(matching) < least or (most is not None and len(matching) > int(most)):
        return f"{_wanted(values)} ran {len(matching)} times; the run called {_list_calls(run)}"
    return True


def _not_called(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    matching = [call for call in run.calls if call.has_run and _fits(call, values)]
    return not matching or f"{matching[0]} ran"


def _order(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    names = [call.tool for call in run.calls if call.has_run]
    remaining = iter(names)
    return all(tool in remaining for tool in values["tools"]) or f"the order was {', '.join(names) or 'no call'}"


def _gate_asked(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    matching = [call for call in run.calls if call.decision == "ask" and _fits(call, values)]
    return bool(matching) or f"no approval was requested for {_wanted(values)}"


def _gate_not_asked(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    matching = [call for call in run.calls if call.decision == "ask" and _fits(call, values)]
    return not matching or f"an approval was requested for {matching[0]}"


def _denied(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    matching = [
        call for call in run.calls if _fits(call, values) and (call.decision == "deny" or call.approved is False)
    ]
    return bool(matching) or f"{_wanted(values)} was not denied"


def _status(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    return run.status == values["status"] or f"the turn is {run.status}{f': {run.problem}' if run.problem else ''}"


def _at_most(attribute: str, unit: str) -> Callable[[Mapping[str, Any], Trajectory, Trajectory], CheckOutcome]:
    def check(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
        value = len(run.calls) if attribute == "calls" else getattr(run, attribute)
        return value <= values["max"] or f"{value:g} {unit}, and at most {values['max']:g} are allowed"

    return check


def _same_calls(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    """The calls that act are the recorded ones, in the recorded order; reads may differ, and so may words."""
    ran, wanted = ([str(call) for call in trajectory.actions] for trajectory in (run, recorded))
    if ran == wanted:
        return run.status == recorded.status or f"the turn is {run.status}, and was {recorded.status}"
    return f"the recorded actions are {'; '.join(wanted) or 'none'}, and now {'; '.join(ran) or 'none'}"


def _same_log(values: Mapping[str, Any], run: Trajectory, recorded: Trajectory) -> CheckOutcome:
    differing = differences(recorded.recording, run.recording)
    return not differing or "; ".join(differing[:3])


Kind = Callable[[Mapping[str, Any], Trajectory, Trajectory], CheckOutcome]
KINDS: Final[Mapping[str, Kind]] = {
    "contains": _contains,
    "not_contains": _not_contains,
    "regex": _regex,
    "not_regex": _not_regex,
    "json_schema": _json_schema,
    "called": _called,
    "not_called": _not_called,
    "order": _order,
    "gate_asked": _gate_asked,
    "gate_not_asked": _gate_not_asked,
    "denied": _denied,
    "status": _status,
    "max_steps": _at_most("steps", "steps"),
    "max_calls": _at_most("calls", "calls"),
    "max_tokens": _at_most("tokens", "tokens"),
    "max_cost": _at_most("cost", "US dollars"),
    "max_seconds": _at_most("seconds", "seconds"),
    "same_calls": _same_calls,
    "same_log": _same_log,
}
_ABOUT_CALLS: Final = (("tool",), ("arguments",))
KEYS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "contains": (("text",), ()),
    "not_contains": (("text",), ()),
    "regex": (("pattern",), ()),
    "not_regex": (("pattern",), ()),
    "json_schema": (("schema",), ()),
    "called": (("tool",), ("arguments", "min", "max")),
    "not_called": _ABOUT_CALLS,
    "order": (("tools",), ()),
    "gate_asked": _ABOUT_CALLS,
    "gate_not_asked": _ABOUT_CALLS,
    "denied": _ABOUT_CALLS,
    "status": (("status",), ()),
    **{f"max_{unit}": (("max",), ()) for unit in ("steps", "calls", "tokens", "cost", "seconds")},
    "same_calls": ((), ()),
    "same_log": ((), ()),
    "python": (("function",), ()),
    "judge": (("rubric",), ("compare",)),
}
"""Kind → the keys that it needs, and those that it may have. `python` and `judge` need more than a trajectory."""
DEFAULT_CHECKS: Final = (Check("same_calls"),)


def _fits(call: EvalCall, values: Mapping[str, Any]) -> bool:
    """Whether a call is of the tool, and has at least these arguments with these values."""
    if call.tool != values["tool"]:
        return False
    wanted = cast("Mapping[str, Any]", values.get("arguments", {}))
    return all(name in call.arguments and call.arguments[name] == value for name, value in wanted.items())


def _wanted(values: Mapping[str, Any]) -> str:
    arguments = values.get("arguments")
    return f"{values['tool']} {encode_canonical(arguments)}" if arguments else str(values["tool"])


def _list_calls(run: Trajectory) -> str:
    return "; ".join(str(call) for call in run.calls if call.has_run) or "nothing"


def _shorten(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")
