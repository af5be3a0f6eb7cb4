"""Rules and a call → what becomes of it, and why, as lines: `everturn permissions`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast, get_args

from everturn.access.explaining import explained
from everturn.clock import SystemClock
from everturn.core.asking import Grant
from everturn.core.canonical import JsonObject, clean_all, parse_object
from everturn.core.options import TurnOptions
from everturn.core.policy import Action, Policy, Rule, SubjectKind
from everturn.core.ports import Tool
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError, UnknownSession
from everturn.permissions import explaining
from everturn.permissions.reading import load_rules
from everturn.stores.named import SUFFIXES, named_store
from everturn.wiring import Runtime

CODES: Final[dict[Action, int]] = {"allow": 0, "ask": 3, "deny": 4}
SHADOWED = 1

Told = tuple[list[str], int]
"""Lines, and the exit code."""


def check(path: str) -> Told:
    """List the rules of a file, and those that can never decide.

    Raises:
        ConfigError: something in it makes no sense; the text says on which line.
    """
    rules = load_rules(path)
    lines = [f"{explaining.visible(rule.source)}  {_whole(str(rule))}" for rule in rules]
    shadowed = Policy(rules).shadowed()
    for one in shadowed:
        lines.append(f"{one.rule.source}  can never decide, because of {one.by.source}: {_whole(one.why)}")
    count = f"{len(rules)} {'rule' if len(rules) == 1 else 'rules'}"
    lines.append(f"{count}, {len(shadowed)} of them can never decide" if shadowed else f"{count}, all in order")
    return lines, SHADOWED if shadowed else 0


async def explain(
    name: str,
    words: Sequence[str],
    runtime: Runtime,
    options: TurnOptions,
    *,
    subjects: Sequence[str] = (),
    must_be_there: bool = False,
    store: str = "",
    session: str = "",
) -> Told:
    """Say what becomes of a call of a turn with these options, and which rule decides.

    Raises:
        ConfigError: the store cannot be read, there is no such tool, or the words are no arguments.
        BadArguments: they do not fit the tool.
    """
    there = runtime.registry.enabled(options.tools)
    tool = there.get(name)
    if tool is None and (
        must_be_there or name in runtime.tools
    ):  # one that the agent does not have is not offered to it
        raise ConfigError(f"there is no tool called {name!r}; there are: {', '.join(there)}")
    if tool is not None and subjects:
        raise ConfigError(f"--subject is for a tool that is not given; {name} says itself what its arguments are")
    arguments = _arguments(words, tool)
    meant = arguments if tool is None else tool.validate(arguments) or arguments
    # Where it is not known what the tool says of itself, only rules do.
    spec = tool.spec if tool is not None else ToolSpec(name, "", {}, execute="ask_once", subjects=_subjects(subjects))
    grants = await _grants(store, session) if store else []
    granted = runtime.permits.granted(grants, runtime.tools.get, options.by) if tool is not None else _rules_of(grants)
    told = await explained(runtime.permits, spec, arguments, meant, options, granted)
    return [*_notes(spec, tool, subjects), *told.lines], CODES[told.judgement.action]


def _rules_of(grants: Sequence[Grant]) -> list[Rule]:
    return [grant.rule for grant in grants]


def _notes(spec: ToolSpec, tool: Tool | None, subjects: Sequence[str]) -> list[str]:
    """What matters beside the rules."""
    if tool is None:
        read = "as it was said" if subjects else "as plain text; --subject command=command reads one as a command"
        return [f"{spec.name} is no tool of this configuration: only rules decide, and its arguments are read {read}"]
    notes: list[str] = []
    if spec.by_hand:
        notes.append(f"{spec.name} is run by a person, who is asked whatever the rules allow")
    if spec.egress:
        notes.append(f"what {spec.name} is given leaves the house: it asks where private data and strangers' words met")
    if spec.result != "auto":
        notes.append(f"its results are read by a person first{' if it failed' if spec.result == 'on_error' else ''}")
    return notes


def _arguments(words: Sequence[str], tool: Tool | None) -> JsonObject:
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        if (given := parse_object(words[0])) is None:
            raise ConfigError(f"these arguments are not a JSON object: {explaining.visible(words[0])}")
        return clean_all(given)
    found: JsonObject = {}
    for word in words:
        name, is_pair, value = word.partition("=")
        if not is_pair or not name:
            raise ConfigError(f"{word!r} is no argument: write name=value, or all of them as one JSON object")
        found[name] = _value(value, _type(tool, name))
    return clean_all(found)


def _type(tool: Tool | None, name: str) -> object:
    if tool is None:
        return "string"
    properties = cast("dict[str, dict[str, Any]]", tool.spec.schema.get("properties", {}))
    return properties.get(name, {}).get("type")


def _value(text: str, type: object) -> Any:
    """A value as its tool would have it: a text, unless it is to be something else and can be read as that."""
    if type != "string":
        with suppress(ValueError):
            return json.loads(text)
    return text


def _subjects(words: Iterable[str]) -> dict[str, SubjectKind]:
    found: dict[str, SubjectKind] = {}
    for word in words:
        name, _, kind = word.partition("=")
        if not name or kind not in get_args(SubjectKind):
            kinds = ", ".join(get_args(SubjectKind))
            raise ConfigError(f"--subject {word}: write NAME=KIND, and a kind is one of {kinds}")
        found[name] = cast("SubjectKind", kind)
    return found


async def _grants(name: str, session: str) -> list[Grant]:
    """What people have allowed from now on in a conversation."""
    if not session:
        raise ConfigError("--store holds many conversations; say which with --session")
    is_file = "://" not in name and Path(name).suffix in SUFFIXES
    if is_file and not await asyncio.to_thread(Path(name).exists):
        raise ConfigError(f"there is no file {name}")  # looking must not make one
    store = named_store(name)
    try:
        return await store.grants(session, SystemClock().now())
    except UnknownSession:
        raise ConfigError(f"there is no conversation {session!r} in {name}") from None
    finally:
        await store.aclose()


def _whole(text: str) -> str:
    return explaining.visible(text, len(text))
