"""Output of `everturn permissions`: checks a file of rules, and explains what the rules decide for a call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast, get_args

from everturn.access.rules import explain
from everturn.base_app import BaseApp
from everturn.clock import SystemClock
from everturn.core.canonical_json import JsonObject, parse_object, replace_surrogates_in
from everturn.core.gates import Grant
from everturn.core.options import TurnOptions
from everturn.core.ports import Tool
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import Rule, RuleAction, SubjectKind
from everturn.core.rules.shadowed_rules import find_shadowed_rules
from everturn.errors import ConfigError, UnknownSession
from everturn.permissions.explain import escape_invisible
from everturn.permissions.rules_file import load_rules
from everturn.stores.registry import SUFFIXES, get_store

CODES: Final[dict[RuleAction, int]] = {"allow": 0, "ask": 3, "deny": 4}
SHADOWED = 1

PermissionsOutput = tuple[list[str], int]
"""Lines to print, and the exit code."""


def check_rules(path: str) -> PermissionsOutput:
    """List the rules of a file, and those that can never decide a call.

    Raises:
        ConfigError: the file has an invalid rule; the message names its line.
    """
    rules = load_rules(path)
    lines = [f"{escape_invisible(rule.source)}  {_whole(str(rule))}" for rule in rules]
    shadowed = find_shadowed_rules(rules)
    for shadow in shadowed:
        lines.append(f"{shadow.rule.source}  can never decide, because of {shadow.by.source}: {_whole(shadow.why)}")
    count = f"{len(rules)} {'rule' if len(rules) == 1 else 'rules'}"
    lines.append(f"{count}, {len(shadowed)} of them can never decide" if shadowed else f"{count}, all in order")
    return lines, SHADOWED if shadowed else 0


async def explain_call(
    name: str,
    words: Sequence[str],
    app: BaseApp,
    options: TurnOptions,
    *,
    subjects: Sequence[str] = (),
    must_be_there: bool = False,
    store: str = "",
    session: str = "",
) -> PermissionsOutput:
    """Explain what a turn with these options does with a call, and which rule decides.

    Raises:
        ConfigError: the store cannot be read, the tool does not exist, or the words are not arguments.
        BadArguments: the arguments do not match the tool's schema.
    """
    enabled = app.registry_of(options.agent).enabled(options.tools)
    tool = enabled.get(name)
    if tool is None and (
        must_be_there or name in app.tools
    ):  # a tool that the agent does not have is not offered to it
        raise ConfigError(f"there is no tool called {name!r}; there are: {', '.join(enabled)}")
    if tool is not None and subjects:
        raise ConfigError(f"--subject is only for tools that are not loaded; {name} declares its own subjects")
    arguments = _arguments(words, tool)
    is_json = len(words) == 1 and words[0].lstrip().startswith("{")
    assumed = [] if tool is None or is_json else _missing_texts(tool, arguments)
    arguments |= dict.fromkeys(assumed, "")
    validated = arguments if tool is None else tool.validate(arguments) or arguments
    # Without the tool its own declarations are unknown, and only rules decide.
    spec = tool.spec if tool is not None else ToolSpec(name, "", {}, approval="ask", subjects=_subjects(subjects))
    grants = await _grants(store, session) if store else []
    granted = (
        app.permissions.rules_from_grants(grants, app.tools.get, options.by, options.folder)
        if tool is not None
        else _rules_of(grants)
    )
    explanation = await explain.explain_call(app.permissions, spec, arguments, validated, options, granted)
    registered = app.registry_of(options.agent).tools
    warnings = [f"warning: {text}" for text in explain.agent_warnings(app.permissions, enabled, registered, options)]
    notes = [*_notes(spec, tool, subjects), *(f"{each} was not given: an empty text is assumed" for each in assumed)]
    return [*notes, *explanation.lines, *warnings], CODES[explanation.decision.action]


def _rules_of(grants: Sequence[Grant]) -> list[Rule]:
    return [grant.rule for grant in grants]


def _notes(spec: ToolSpec, tool: Tool | None, subjects: Sequence[str]) -> list[str]:
    """Return what else matters for this call besides the rules."""
    if tool is None:
        reading = "as it was said" if subjects else "as plain text; --subject command=command reads one as a command"
        return [
            f"{spec.name} is not a tool of this configuration: only rules decide, and its arguments are read {reading}"
        ]
    notes: list[str] = []
    if spec.manual:
        notes.append(f"{spec.name} is run by a person, who is asked whatever the rules allow")
    if spec.provider is not None:
        notes.append(
            f"{spec.name} is run by the provider of the model and leaves this machine: it is offered as a whole if this "
            "says allow, and left out of the request otherwise; no rule sees a single call, nobody is asked about one, "
            "and neither the loop guard nor a review of results covers it"
        )
        notes.append(f"{spec.name} is left out once private data and untrusted text were read")
    elif spec.egress:
        notes.append(
            f"what {spec.name} is given is sent outside: it asks once private data and untrusted text were read"
        )
    if spec.review != "never":
        notes.append(f"its results are read by a person first{' if it failed' if spec.review == 'on_error' else ''}")
    return notes


def _arguments(words: Sequence[str], tool: Tool | None) -> JsonObject:
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        if (parsed := parse_object(words[0])) is None:
            raise ConfigError(f"these arguments are not a JSON object: {escape_invisible(words[0])}")
        return replace_surrogates_in(parsed)
    arguments: JsonObject = {}
    for word in words:
        name, is_pair, value = word.partition("=")
        if not is_pair or not name:
            raise ConfigError(f"{word!r} is not an argument: write name=value, or all of them as one JSON object")
        arguments[name] = _value(value, _type(tool, name))
    return replace_surrogates_in(arguments)


def _missing_texts(tool: Tool, arguments: JsonObject) -> list[str]:
    """Return the required texts that were not given and that are no subject of a rule, such as a file's content."""
    required = cast("list[str]", tool.spec.schema.get("required", []))
    return [
        name
        for name in required
        if name not in arguments and name not in tool.spec.subjects and _type(tool, name) == "string"
    ]


def _type(tool: Tool | None, name: str) -> object:
    if tool is None:
        return "string"
    properties = cast("dict[str, dict[str, Any]]", tool.spec.schema.get("properties", {}))
    return properties.get(name, {}).get("type")


def _value(text: str, type: object) -> Any:
    """Parse a value as its tool expects it: as JSON where the schema wants another type than text, if it is valid."""
    if type != "string":
        with suppress(ValueError):
            return json.loads(text)
    return text


def _subjects(words: Iterable[str]) -> dict[str, SubjectKind]:
    subjects_by_name: dict[str, SubjectKind] = {}
    for word in words:
        name, _, kind = word.partition("=")
        if not name or kind not in get_args(SubjectKind):
            choices = ", ".join(get_args(SubjectKind))
            raise ConfigError(f"--subject {word}: write NAME=KIND, and a kind is one of {choices}")
        subjects_by_name[name] = cast("SubjectKind", kind)
    return subjects_by_name


async def _grants(name: str, session: str) -> list[Grant]:
    """Return the grants of a conversation: what people have allowed from then on."""
    if not session:
        raise ConfigError("--store has many conversations; name one with --session")
    is_file = "://" not in name and Path(name).suffix in SUFFIXES
    if is_file and not await asyncio.to_thread(Path(name).exists):
        raise ConfigError(f"there is no file {name}")  # opening the store would create it
    store = get_store(name)
    try:
        if (check_encryption := getattr(store, "check_encryption", None)) is not None:
            await check_encryption()
        return await store.grants(session, SystemClock().now())
    except UnknownSession:
        raise ConfigError(f"there is no conversation {session!r} in {name}") from None
    finally:
        await store.aclose()


def _whole(text: str) -> str:
    return escape_invisible(text, len(text))
