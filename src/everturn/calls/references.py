"""References in arguments: replaces `$ref{…}` by earlier results and `$private{…}` by private values, for the tool.

The log, the hashes and the gates keep the references: results never change, so a reference is unambiguous. Inserted
text is not scanned again, so no result can pull in another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

import msgspec

from everturn.calls.private_values import PrivateValues, load_private_values, placeholder_token, record_given_value
from everturn.calls.results import (
    call_of_reference,
    has_truncated_result,
    load_full_text,
    load_results,
    read_result_range,
)
from everturn.core.canonical_json import JsonObject, encode_canonical
from everturn.core.parts import Output
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments
from everturn.running.active_turn import ActiveTurn

__all__ = ["REFERENCES_RULE", "has_truncated_result", "read_result_range", "resolve_references"]

REFERENCES_RULE: Final = (
    "Write $ref{call}, or $ref{call:start:length} in characters, into the arguments of a call to pass an earlier result "
    "on without repeating it, and $ref{call.arguments.name} for an argument that it was made with; "
    "$$ref{ is the plain text $ref{."
)
MAX_REFERENCES = 100  # references in one call
MAX_INSERTED_LENGTH = 64_000_000  # characters of all inserted texts
DOLLAR = ord("$")  # a search for a byte is ten times faster than for a word
_MARK: Final = re.compile(r"(\$?)\$(ref|private)\{(?:([^{}\s]{0,400})(\}))?")
_RANGE: Final = re.compile(r"([^:]+)(?::(\d{1,15}):(\d{1,15}))?")

_encode = msgspec.json.Encoder().encode
ArgumentPath = tuple[str | int, ...]


async def resolve_references(run: ActiveTurn, spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """The arguments with all references replaced, as the tool gets them.

    Raises:
        BadArguments: a reference is unknown, or is in an argument that must not have one.
    """
    raw = _encode(arguments)
    if DOLLAR not in raw or (b"$ref{" not in raw and b"$private{" not in raw):
        return arguments
    if spec.origin == "builtin":  # built-in tools take the names of results, not their content
        return arguments
    sources = await _sources(run, raw.decode())
    try:
        return _ReferenceFiller(run, spec, sources).filled(arguments, ())
    except RecursionError:
        raise BadArguments("the arguments are nested too deeply to resolve references") from None


class _ReferenceSources(NamedTuple):
    """The targets of the references of a call, or the error of an unknown one."""

    texts: dict[str, str | BadArguments]
    values: dict[str, PrivateValues | BadArguments]
    results: dict[str, Output]


async def _sources(run: ActiveTurn, raw: str) -> _ReferenceSources:
    """Load all targets, each result once."""
    wanted: dict[str, dict[str, list[str]]] = {"ref": {}, "private": {}}
    references = [match for match in _MARK.finditer(raw) if not match[1] and match[4]]
    if len(references) > MAX_REFERENCES:
        raise BadArguments(
            f"there are {len(references)} references in this call; at most {MAX_REFERENCES} are resolved"
        )
    for match in references:
        wanted[match[2]].setdefault(match[3].split(":", 1)[0], []).append(match[3])
    calls = {call_of_reference(name) for names in wanted.values() for name in names}
    results = await load_results(run, calls)
    sources = _ReferenceSources({}, {}, results)
    for call, names in wanted["ref"].items():
        try:
            whole = await load_full_text(run, call, results)
            sources.texts.update({name: _cut(whole, name) for name in names})
        except BadArguments as error:
            sources.texts.update(dict.fromkeys(names, error))
        if sum(len(text) for text in sources.texts.values() if isinstance(text, str)) > MAX_INSERTED_LENGTH:
            raise _too_large()
    for call in wanted["private"]:
        output = results.get(call)
        if output is None or not output.private:
            sources.values[call] = BadArguments(f"there are no private values of a call {call[:80]!r} here")
        else:
            sources.values[call] = await load_private_values(run, output)
    return sources


def _cut(whole: str, name: str) -> str:
    match = _RANGE.fullmatch(name)
    if match is None:
        raise BadArguments(f"$ref{{{name}}} is not a reference; it is $ref{{call}} or $ref{{call:start:length}}")
    if match[2] is None:
        return whole
    start, length = int(match[2]), int(match[3])
    if start > len(whole):
        raise BadArguments(f"$ref{{{name}}} begins after the end; the whole text has {len(whole)} characters")
    return whole[start : start + length]


def _too_large() -> BadArguments:
    return BadArguments(f"the references come to more than {MAX_INSERTED_LENGTH:,} characters; pass on less, by ranges")


class _ReferenceFiller:
    """Inserts the targets of references into the arguments of one call."""

    def __init__(self, run: ActiveTurn, spec: ToolSpec, sources: _ReferenceSources) -> None:
        self._run, self._spec, self._sources = run, spec, sources
        self._size = 0

    def filled(self, value: Any, path: ArgumentPath) -> Any:
        """A value with all references replaced; keys stay as they are."""
        if isinstance(value, str):
            return self._text(value, path) if "$ref{" in value or "$private{" in value else value
        if isinstance(value, dict):
            return {key: self.filled(item, (*path, key)) for key, item in cast("JsonObject", value).items()}
        if isinstance(value, list):
            return [self.filled(item, (*path, index)) for index, item in enumerate(cast("list[Any]", value))]
        return value

    def _text(self, text: str, path: ArgumentPath) -> Any:
        match = _MARK.fullmatch(text)
        if match is None or match[1] or not match[4]:
            return _MARK.sub(lambda match: self._inside(match, path), text)
        self._check(match, path)
        kinds = types_at_path(self._spec.schema, path)
        if match[2] == "private":
            value = self._value(match[3])
            return value if isinstance(value, str) or "string" not in kinds else self._counted(encode_canonical(value))
        target = self._reference(match[3])
        if not kinds or "string" in kinds:
            return target
        try:
            return msgspec.json.decode(target)
        except (msgspec.DecodeError, RecursionError):
            where, kind = ".".join(map(str, path)), " or ".join(sorted(kinds))
            raise BadArguments(f"{where} takes {kind}, and what {text} refers to is not JSON") from None

    def _inside(self, match: re.Match[str], path: ArgumentPath) -> str:
        """The replacement of a reference inside a longer text."""
        if match[1]:
            return match[0][1:]
        self._check(match, path)
        if match[2] == "ref":
            return self._reference(match[3])
        value = self._value(match[3])
        return self._counted(value if isinstance(value, str) else encode_canonical(value))

    def _check(self, match: re.Match[str], path: ArgumentPath) -> None:
        kind = match[2]
        if not match[4]:
            form = "call:path" if kind == "private" else "call"
            raise BadArguments(f"${kind}{{ begins a reference, ${kind}{{{form}}}; for the plain text write $${kind}{{")
        name = ".".join(key for key in path if isinstance(key, str))
        for subject in self._spec.subjects:
            if name == subject or name.startswith(f"{subject}."):
                raise BadArguments(
                    f"{subject} is matched by permission rules, so it cannot contain {match[0]}: write the value itself"
                )

    def _reference(self, name: str) -> str:
        target = self._sources.texts[name]
        if isinstance(target, BadArguments):
            raise BadArguments(f"{target}; for the plain text $ref{{ write $$ref{{")
        return self._counted(target)

    def _value(self, name: str) -> Any:
        if self._spec.echoes:
            raise BadArguments(f"{self._spec.name} may pass on its arguments, so it cannot receive private values")
        call, _, path = name.partition(":")
        values, output = self._sources.values[call], self._sources.results.get(call)
        if isinstance(values, BadArguments):
            raise BadArguments(
                f"{values}; write a placeholder as it appears in a result, or $$private{{ for plain text"
            )
        # A value that a person redacted from a result is no longer available.
        is_left = output is not None and (not output.redacted or placeholder_token(call, path) in output.text)
        if path not in values or not is_left:
            raise BadArguments(f"there is no private value {path[:100]!r} of {call}; copy a placeholder exactly")
        record_given_value(self._run, call, path, values[path])
        return values[path]

    def _counted(self, text: str) -> str:
        self._size += len(text)
        if self._size > MAX_INSERTED_LENGTH:
            raise _too_large()
        return text


# JSON types of an argument -------------------------------------------------------------------------------------------


def types_at_path(schema: JsonObject, path: ArgumentPath) -> set[str]:
    """The JSON types that a schema allows at a path; empty if it does not say."""
    schemas: list[Any] = [schema]
    for step in path:
        schemas = [inner for candidate in _choices(schemas, schema) for inner in _below(candidate, step)]
    types: set[str] = set()
    for candidate in _choices(schemas, schema):
        kinds = candidate.get("type", ())
        types.update([kinds] if isinstance(kinds, str) else kinds)
        types.update("string" for value in candidate.get("enum", ()) if isinstance(value, str))
    return types


def _choices(places: list[Any], root: JsonObject) -> Iterator[JsonObject]:
    """These schemas and all that they refer to or combine, each once."""
    seen: set[int] = set()
    queue = list(places)
    while queue:
        place = queue.pop()
        if not isinstance(place, dict) or id(cast("object", place)) in seen:
            continue
        seen.add(id(cast("object", place)))
        subschema = cast("JsonObject", place)
        yield subschema
        if isinstance(name := subschema.get("$ref"), str) and name.startswith("#/$defs/"):
            queue.append(root.get("$defs", {}).get(name.removeprefix("#/$defs/")))
        for choice in ("anyOf", "oneOf", "allOf"):
            queue += subschema.get(choice, ())


def _below(place: JsonObject, step: str | int) -> Iterator[Any]:
    if isinstance(step, int):
        first = place.get("prefixItems", ())
        yield first[step] if step < len(first) else place.get("items")
    else:
        yield place.get("properties", {}).get(step, place.get("additionalProperties"))
