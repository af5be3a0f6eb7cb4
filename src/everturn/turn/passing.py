"""Arguments as a model wrote them → what the tool is given: references to earlier results, and stand-ins of private
values, are put in their place.

What is written down, hashed and shown keeps the references: results never change, so they say exactly what is meant.
What comes out of a result is never looked through again, so no result can pull in another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

import msgspec

from everturn.core.canonical import JsonObject, canonical
from everturn.core.parts import Output
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments
from everturn.turn.privacy import Values, give, private_values, stand_in
from everturn.turn.results import has_cut, read_branch, read_range, whole_of
from everturn.turn.run import Run

__all__ = ["REFERENCES_RULE", "has_cut", "read_range", "resolve"]

REFERENCES_RULE: Final = (
    "Write $ref{call}, or $ref{call:start:length} in characters, into the arguments of a call to pass an earlier result "
    "on without repeating it; $$ref{ is the plain text $ref{."
)
MOST = 100  # references in one call
LARGEST = 64_000_000  # characters they may come to in all
DOLLAR = ord("$")  # a byte is found ten times faster than a word
_MARK: Final = re.compile(r"(\$?)\$(ref|private)\{(?:([^{}\s]{0,400})(\}))?")
_RANGE: Final = re.compile(r"([^:]+)(?::(\d{1,15}):(\d{1,15}))?")

_encode = msgspec.json.Encoder().encode
Path = tuple[str | int, ...]


async def resolve(run: Run, spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """What the tool is given.

    Raises:
        BadArguments: a reference leads nowhere, or stands where none may; it says what there is.
    """
    raw = _encode(arguments)
    if DOLLAR not in raw or (b"$ref{" not in raw and b"$private{" not in raw):
        return arguments
    if spec.origin == "builtin":  # ours work with the names of results, not with what is in them
        return arguments
    sources = await _sources(run, raw.decode())
    try:
        return _Filling(run, spec, sources).filled(arguments, ())
    except RecursionError:
        raise BadArguments("the arguments are nested too deep to put references in their place") from None


class _Sources(NamedTuple):
    """What the references of a call lead to; the words for one that leads nowhere."""

    texts: dict[str, str | BadArguments]
    values: dict[str, Values | BadArguments]
    results: dict[str, Output]


async def _sources(run: Run, raw: str) -> _Sources:
    """Look up everything that is referred to, each result once."""
    wanted: dict[str, dict[str, list[str]]] = {"ref": {}, "private": {}}
    marks = [match for match in _MARK.finditer(raw) if not match[1] and match[4]]
    if len(marks) > MOST:
        raise BadArguments(f"there are {len(marks)} references in this call; at most {MOST} are put in their place")
    for match in marks:
        wanted[match[2]].setdefault(match[3].split(":", 1)[0], []).append(match[3])
    results = await read_branch(run)
    sources = _Sources({}, {}, results)
    for call, names in wanted["ref"].items():
        try:
            whole = await whole_of(run, call, results)
            sources.texts.update({name: _cut(whole, name) for name in names})
        except BadArguments as error:
            sources.texts.update(dict.fromkeys(names, error))
        if sum(len(text) for text in sources.texts.values() if isinstance(text, str)) > LARGEST:
            raise _too_large()
    for call in wanted["private"]:
        output = results.get(call)
        if output is None or not output.private:
            sources.values[call] = BadArguments(f"there are no private values of a call {call[:80]!r} here")
        else:
            sources.values[call] = await private_values(run, output)
    return sources


def _cut(whole: str, name: str) -> str:
    match = _RANGE.fullmatch(name)
    if match is None:
        raise BadArguments(f"$ref{{{name}}} is not a reference; it is $ref{{call}} or $ref{{call:start:length}}")
    if match[2] is None:
        return whole
    start, length = int(match[2]), int(match[3])
    if start > len(whole):
        raise BadArguments(f"$ref{{{name}}} begins behind the end; the whole has {len(whole)} characters")
    return whole[start : start + length]


def _too_large() -> BadArguments:
    return BadArguments(f"the references come to more than {LARGEST:,} characters; pass on less, by ranges")


class _Filling:
    """Puts what references lead to into the arguments of one call."""

    def __init__(self, run: Run, spec: ToolSpec, sources: _Sources) -> None:
        self._run, self._spec, self._sources = run, spec, sources
        self._size = 0

    def filled(self, value: Any, path: Path) -> Any:
        """A value with everything in its place; keys are left as they are."""
        if isinstance(value, str):
            return self._text(value, path) if "$ref{" in value or "$private{" in value else value
        if isinstance(value, dict):
            return {key: self.filled(item, (*path, key)) for key, item in cast("JsonObject", value).items()}
        if isinstance(value, list):
            return [self.filled(item, (*path, at)) for at, item in enumerate(cast("list[Any]", value))]
        return value

    def _text(self, text: str, path: Path) -> Any:
        match = _MARK.fullmatch(text)
        if match is None or match[1] or not match[4]:
            return _MARK.sub(lambda match: self._inside(match, path), text)
        self._check(match, path)
        kinds = kinds_at(self._spec.schema, path)
        if match[2] == "private":
            value = self._value(match[3])
            return value if isinstance(value, str) or "string" not in kinds else self._counted(canonical(value))
        found = self._reference(match[3])
        if not kinds or "string" in kinds:
            return found
        try:
            return msgspec.json.decode(found)
        except (msgspec.DecodeError, RecursionError):
            where, kind = ".".join(map(str, path)), " or ".join(sorted(kinds))
            raise BadArguments(f"{where} takes {kind}, and what {text} leads to is not JSON") from None

    def _inside(self, match: re.Match[str], path: Path) -> str:
        """What stands for a mark in the middle of a text."""
        if match[1]:
            return match[0][1:]
        self._check(match, path)
        if match[2] == "ref":
            return self._reference(match[3])
        value = self._value(match[3])
        return self._counted(value if isinstance(value, str) else canonical(value))

    def _check(self, match: re.Match[str], path: Path) -> None:
        kind = match[2]
        if not match[4]:
            form = "call:path" if kind == "private" else "call"
            raise BadArguments(f"${kind}{{ begins a reference, ${kind}{{{form}}}; for the plain text write $${kind}{{")
        name = ".".join(key for key in path if isinstance(key, str))
        for subject in self._spec.subjects:
            if name == subject or name.startswith(f"{subject}."):
                raise BadArguments(f"{subject} says what this call is done to, so no {match[0]} in it: write it out")

    def _reference(self, name: str) -> str:
        found = self._sources.texts[name]
        if isinstance(found, BadArguments):
            raise BadArguments(f"{found}; for the plain text $ref{{ write $$ref{{")
        return self._counted(found)

    def _value(self, name: str) -> Any:
        if self._spec.echoes:
            raise BadArguments(f"{self._spec.name} may tell what it is given, and cannot be given private values")
        call, _, path = name.partition(":")
        found, output = self._sources.values[call], self._sources.results.get(call)
        if isinstance(found, BadArguments):
            raise BadArguments(f"{found}; write a stand-in as it stands in a result, or $$private{{ for plain text")
        # What a person took out of a result is gone from it.
        is_left = output is not None and (not output.redacted or stand_in(call, path) in output.text)
        if path not in found or not is_left:
            raise BadArguments(f"there is no private value {path[:100]!r} of {call}; write a stand-in as it was given")
        give(self._run, call, path, found[path])
        return found[path]

    def _counted(self, text: str) -> str:
        self._size += len(text)
        if self._size > LARGEST:
            raise _too_large()
        return text


# What a schema wants at a place --------------------------------------------------------------------------------------


def kinds_at(schema: JsonObject, path: Path) -> set[str]:
    """The JSON types that a schema allows at a place; none where it does not say."""
    places: list[Any] = [schema]
    for step in path:
        places = [inner for place in _choices(places, schema) for inner in _below(place, step)]
    found: set[str] = set()
    for place in _choices(places, schema):
        kinds = place.get("type", ())
        found.update([kinds] if isinstance(kinds, str) else kinds)
        found.update("string" for value in place.get("enum", ()) if isinstance(value, str))
    return found


def _choices(places: list[Any], root: JsonObject) -> Iterator[JsonObject]:
    """These schemas and all they refer to or choose among, each once."""
    seen: set[int] = set()
    waiting = list(places)
    while waiting:
        place = waiting.pop()
        if not isinstance(place, dict) or id(cast("object", place)) in seen:
            continue
        seen.add(id(cast("object", place)))
        one = cast("JsonObject", place)
        yield one
        if isinstance(name := one.get("$ref"), str) and name.startswith("#/$defs/"):
            waiting.append(root.get("$defs", {}).get(name.removeprefix("#/$defs/")))
        for choice in ("anyOf", "oneOf", "allOf"):
            waiting += one.get(choice, ())


def _below(place: JsonObject, step: str | int) -> Iterator[Any]:
    if isinstance(step, int):
        first = place.get("prefixItems", ())
        yield first[step] if step < len(first) else place.get("items")
    else:
        yield place.get("properties", {}).get(step, place.get("additionalProperties"))
