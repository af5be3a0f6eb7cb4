"""Tool options: the keyword arguments of `@tool`, strictly validated.

A typing error must not turn a tool that asks into one that runs, nor make private results public.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, TypedDict, cast, get_args

from everturn.core.hooks import CallContext
from everturn.core.options import Approval, Review
from everturn.core.rules.policy import SubjectKind
from everturn.errors import ConfigError

TOOL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")  # every provider accepts these names
CallHook = Callable[[CallContext], Awaitable[None] | None]


class ToolOptions(TypedDict, total=False):
    """The keyword arguments of `@tool` besides the name; `tool` describes them."""

    read_only: bool
    idempotent: bool
    resumable: bool
    approval: Approval
    timeout: float
    review: Review
    subjects: Mapping[str, SubjectKind]
    repeatable: bool
    egress: bool
    untrusted: bool
    private: tuple[str, ...] | list[str]
    limit: int
    before: CallHook | None
    after: CallHook | None
    to_model: Callable[[Any], object] | None


_WORDS = {"approval": get_args(Approval), "review": get_args(Review)}
_SWITCHES = ("read_only", "idempotent", "resumable", "repeatable", "egress", "untrusted")
_CALLED = ("before", "after", "to_model")


def spec_fields(name: str, choices: ToolOptions, parameters: Collection[str]) -> dict[str, Any]:
    """Validate the options, and return those that are fields of a `ToolSpec`; the callbacks stay with the tool.

    Raises:
        ConfigError: an option is invalid; the message lists the valid values.
    """
    options = cast("dict[str, Any]", dict(choices))
    if unknown := options.keys() - ToolOptions.__annotations__.keys():
        raise TypeError(f"tool {name!r}: there is no option {', '.join(sorted(unknown))}; {_nearest_option(unknown)}")
    for key, value in options.items():
        if trouble := _trouble(key, value, parameters):
            raise ConfigError(f"tool {name!r}: {key}={value!r}; {trouble}")
    fields = {key: value for key, value in options.items() if key not in _CALLED}
    if "subjects" in fields:
        fields["subjects"] = dict(fields["subjects"])
    if "private" in fields:
        fields["private"] = tuple(fields["private"])
    return fields


NAMES_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        ("requires_approval", "require_approval", "needs_approval", "approval_mode", "confirm", "human_in_the_loop"),
        'approval="ask": a person approves each call',
    ),
    **dict.fromkeys(("title", "tool_name", "name_override"), "name="),
    **dict.fromkeys(("docstring", "description_override"), "description="),
}
"""What other libraries call an option of a tool, and what to write here."""


def _nearest_option(unknown: Collection[str]) -> str:
    from difflib import get_close_matches

    known = ("name", "description", *ToolOptions.__annotations__)
    for word in sorted(unknown):
        if word in NAMES_ELSEWHERE:
            return f"write {NAMES_ELSEWHERE[word]}"
        if close := get_close_matches(word, known, 1, 0.75):
            return f"did you mean {close[0]}?"
    return f"there are: {', '.join(known)}"


def _trouble(key: str, value: Any, parameters: Collection[str]) -> str:
    """Why the value of an option is invalid, or ""."""
    if key in _WORDS:
        if isinstance(value, str) and value in _WORDS[key]:
            return ""
        hint = '; "ask" means that a person approves each call' if key == "approval" and value is True else ""
        return f"there are: {', '.join(_WORDS[key])}{hint}"
    if key in _SWITCHES:
        return "" if isinstance(value, bool) else "it is True or False"
    if key == "to_model" and inspect.iscoroutinefunction(value):
        return "it is a plain function, of what the tool returned"
    if key in _CALLED:
        return "" if value is None or callable(value) else "it is a function"
    if key == "timeout":
        is_time = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value) and value > 0
        return "" if is_time else "it must be a number of seconds, more than 0"
    if key == "limit":
        is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return "" if is_count else "it is a number of characters; 0: as many as of any result"
    if key == "private":
        is_list = isinstance(value, tuple | list) and all(
            isinstance(field, str) and field for field in cast("list[Any]", value)
        )
        return "" if is_list else 'it is a list of names of fields: private=("email",)'
    return _subject_trouble(value, parameters)


def _subject_trouble(subjects: Any, parameters: Collection[str]) -> str:
    if not isinstance(subjects, Mapping):
        return 'it says what kind of thing a parameter names: subjects={"path": "path"}'
    for parameter, kind in cast("Mapping[Any, Any]", subjects).items():
        if parameter not in parameters:
            return f"there is no parameter {parameter!r}; there are: {', '.join(parameters) or 'none'}"
        if kind not in get_args(SubjectKind):
            return f"there is no kind {kind!r}; there are: {', '.join(get_args(SubjectKind))}"
        if kind == "command" and not _has_shell():
            return "to judge shell commands, install everturn[shell]"
    return ""


def _has_shell() -> bool:
    """Whether the shell parser is installed; this is better known now than at the first call."""
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError:
        return False
    return bool(tree_sitter and tree_sitter_bash)
