"""Provider tools: tools that the provider of a model runs, as each wire format declares them, and their replay.

A provider accepts its own calls and results back only as it sent them, in pairs, and only where their tool is declared.
`find_replayable` says which parts of a history can go back like this; every other one is written as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeGuard

from everturn.core.canonical_json import encode_canonical
from everturn.core.modality import SEARCHES
from everturn.core.parts import ProviderToolPart, provider_tool_note
from everturn.core.requests import ModelRequest, RequestMessage, ToolSpec
from everturn.errors import ModelError
from everturn.models.profile import Profile

Json = dict[str, Any]
MAX_TITLE: Final = 200  # characters

# Format, or set of a profile -> our name of a tool -> what its declaration has in any case.
_FORMATS: Final[Mapping[str, Mapping[str, Json]]] = {
    "messages": {
        "web_search": {"type": "web_search_20250305", "name": "web_search"},
        "web_fetch": {"type": "web_fetch_20250910", "name": "web_fetch"},
        "code_execution": {"type": "code_execution_20250825", "name": "code_execution"},
    },
    "responses": {
        "web_search": {"type": "web_search"},
        "file_search": {"type": "file_search"},
        "code_execution": {"type": "code_interpreter", "container": {"type": "auto"}},
        "image_generation": {"type": "image_generation"},
        "mcp": {"type": "mcp", "require_approval": "never"},
    },
    "gemini": {
        "web_search": {"googleSearch": {}},
        "web_fetch": {"urlContext": {}},
        "code_execution": {"codeExecution": {}},
    },
}
DECLARATIONS: Final[Mapping[str, Mapping[str, Json]]] = {
    **_FORMATS,
    # Azure makes images only in answers that are not streamed, with a deployment that a header names.
    "azure": {name: tool for name, tool in _FORMATS["responses"].items() if name != "image_generation"},
    "vertex": {**_FORMATS["gemini"], "file_search": {"retrieval": {}}},
    "vertex-claude": {"web_search": _FORMATS["messages"]["web_search"]},
}
# Format -> the keyword of `provider_tool` with the options of that vendor.
VENDOR_OPTIONS: Final[Mapping[str, str]] = {
    "messages": "anthropic",
    "responses": "openai",
    "gemini": "google",
}


def supported_tools(profile: Profile) -> frozenset[str]:
    """The tools that the provider of a profile runs."""
    return frozenset(_declarations(profile))


def _declarations(profile: Profile) -> Mapping[str, Json]:
    return DECLARATIONS.get(profile.provider_tool_set or profile.format, {}) if profile.provider_tools else {}


def offered_tools(request: ModelRequest, profile: Profile) -> list[ToolSpec]:
    """The provider tools that a request declares; one that the provider does not have is left out."""
    known = _declarations(profile)
    offered = [spec for spec in request.provider_tools if spec.name in known]
    if profile.provider_tools == "searches" and any(spec.name in SEARCHES for spec in offered):
        return [spec for spec in offered if spec.name in SEARCHES]
    return offered


def declare_tools(request: ModelRequest, profile: Profile) -> list[Json]:
    """The declarations of a request's provider tools.

    Raises:
        ModelError: an option would overwrite what says which tool it is.
    """
    known = _declarations(profile)
    return [
        _declare(spec, known[spec.name], VENDOR_OPTIONS[profile.format]) for spec in offered_tools(request, profile)
    ]


def _declare(spec: ToolSpec, fixed: Json, vendor: str) -> Json:
    options: Json = (spec.provider or {}).get(vendor) or {}
    if "name" in options:
        raise ModelError(
            f"provider_tool({spec.name!r}, {vendor}={{'name': …}}): the name is fixed; leave it out", kind="request"
        )
    if vendor == "google":  # a tool is one field there, and its value has the options
        others = {name: value for name, value in options.items() if name != "type"}
        return {str(options.get("type") or name): others for name in fixed}
    return {**fixed, **options}  # a `type` in the options chooses another version of the tool


def find_replayable(
    messages: Sequence[RequestMessage], issuer: str, declared: Iterable[str], *, has_pairs: bool
) -> set[int]:
    """The ids (`id(part)`) of the parts that can be sent back to their issuer as they are.

    With `has_pairs`, a call and its result are two parts: each needs the other in the same run of answers, which only
    results of our own tools may interrupt. The last answer may have calls without results if the provider is to go on
    there: after a pause, or when it ran our calls first.
    """
    names, found = frozenset(declared), set[int]()
    run: list[ProviderToolPart] = []
    last: list[ProviderToolPart] = []  # those of the last answer of the run
    ending = ""  # how the run ends: with an answer, a paused one, or results
    for message in messages:
        if message.role == "user":
            found |= _paired(run, ()) if has_pairs else {id(part) for part in run}
            run, last, ending = [], [], ""
        elif message.role == "tool":
            ending = "results"
        else:
            last = [part for part in message.parts if _is_own(part, issuer, names)]
            run += last
            ending = "paused" if message.paused else "answer"
    if not has_pairs:
        return found | {id(part) for part in run}
    return found | _paired(run, last if ending in ("paused", "results") else ())


def _is_own(part: object, issuer: str, names: frozenset[str]) -> TypeGuard[ProviderToolPart]:
    return (
        isinstance(part, ProviderToolPart)
        and part.opaque is not None
        and part.opaque.issuer == issuer
        and part.name in names
    )


def _paired(run: Sequence[ProviderToolPart], may_be_open: Sequence[ProviderToolPart]) -> set[int]:
    calls: dict[str, ProviderToolPart] = {}
    found: set[int] = set()
    for part in run:
        if part.state == "called":
            calls.setdefault(part.id, part)
        elif (call := calls.get(part.id)) is not None and id(call) not in found:
            found |= {id(call), id(part)}
    answered = {part.id for part in run if part.state != "called"}
    return found | {
        id(part)
        for part in may_be_open
        if part.state == "called" and part.id not in answered and calls.get(part.id) is part
    }


def as_text(part: ProviderToolPart) -> str:
    """A call or result as text, with an empty line between it and what follows."""
    return provider_tool_note(part) + "\n\n"


def first_line(value: object) -> str:
    """The first line of something that was asked, short enough for a title."""
    text = value if isinstance(value, str) else encode_canonical(value) if value else ""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= MAX_TITLE else f"{line[:MAX_TITLE]}…"
