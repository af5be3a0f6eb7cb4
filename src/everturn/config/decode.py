"""Decodes a tree of plain values with their positions into a `Config`, or collects all its problems.

The Structs of `schema` define what is allowed. Each value is decoded by itself, so that one mistake hides no other.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, Literal, TypeVar, cast

import msgspec
from msgspec import inspect

from everturn.config.errors import ConfigProblem, SourcePosition, nearest
from everturn.config.schema import SET_IN_OTHER_TABLE
from everturn.config.secrets import TextWithRefs
from everturn.config.toml_positions import KeyPath
from everturn.errors import ConfigError

S = TypeVar("S")
NAMED: Final = {"models": "model", "agents": "agent", "mcp": "server", "tenants": "tenant", "users": "user"}
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
_PATH: Final = re.compile(r" - at `[^`]*`$")
_ITEM: Final = re.compile(r" - at `\$\[(\d+)\]")


class EnvironmentValue(str):
    """A value from the environment: a text, or TOML where the field is not a text."""

    __slots__ = ()


@cache
def _describe(kind: type) -> inspect.StructType:
    """Describe the fields of a Struct: once, because a start reads the configuration more than once."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return info


class ConfigDecoder:
    """Decodes a tree; `troubles` has its problems."""

    def __init__(self, where: Callable[[KeyPath], SourcePosition], has: Callable[[KeyPath], bool]) -> None:
        self.where, self.has = where, has
        self.problems: list[ConfigProblem] = []

    def add_problem(self, path: KeyPath, text: str) -> None:
        """Record a problem."""
        self.problems.append(ConfigProblem(self.where(path), dotted(path), text))

    def struct(self, kind: type[S], table: Mapping[str, Any], path: KeyPath = ()) -> S | None:
        """Decode a table into a Struct; None when something in it is invalid."""
        info = _describe(kind)
        before = len(self.problems)
        decoded: dict[str, Any] = {}
        fields = {field.name: field for field in info.fields if (*path, field.name) not in SET_IN_OTHER_TABLE}
        for key, value in table.items():
            if (*path, key) in SET_IN_OTHER_TABLE:
                self.add_problem((*path, key), SET_IN_OTHER_TABLE[*path, key])
            elif key not in fields:
                place = f"[{dotted(path)}] has" if path else "there is"
                self.add_problem((*path, key), f"{place} no {key!r}; {nearest(key, fields)}")
            else:
                decoded[key] = self.value(fields[key].type, value, (*path, key))
        for name, field in fields.items():
            if field.required and name not in table:
                self.add_problem(path, f"it needs {name!r}")
        return kind(**decoded) if len(self.problems) == before else None

    def value(self, info: inspect.Type, value: Any, path: KeyPath) -> Any:
        """Decode a value for its field."""
        for option in info.types if isinstance(info, inspect.UnionType) else (info,):
            match option:
                case inspect.StructType() if isinstance(value, dict):
                    return self.struct(option.cls, cast("dict[str, Any]", value), path)
                case inspect.StructType():
                    if not isinstance(info, inspect.UnionType):
                        return self.add_problem(path, f"this is a table: write [{dotted(path)}], or {{ … }}")
                case inspect.DictType(value_type=inspect.StructType() as inner) if isinstance(value, dict):
                    return self._named(inner, cast("dict[str, Any]", value), path)
                case inspect.DictType(value_type=inspect.CustomType() as inner) if isinstance(value, dict):
                    pairs = cast("dict[str, Any]", value).items()
                    return {key: self.value(inner, item, (*path, key)) for key, item in pairs}
                case inspect.VarTupleType(item_type=inspect.StructType() as inner) if isinstance(value, list):
                    rows = enumerate(cast("list[Any]", value))
                    return tuple(self.value(inner, row, (*path, at)) for at, row in rows)
                case inspect.VarTupleType(item_type=inspect.UnionType() | inspect.CustomType() as inner) if isinstance(
                    value, list
                ):
                    rows = enumerate(cast("list[Any]", value))
                    return tuple(self.value(inner, row, (*path, at)) for at, row in rows)
                case inspect.CustomType(cls=cls) if issubclass(cls, TextWithRefs):
                    return self._written(cls, value, path)
                case _:
                    pass
        return self._leaf(info, value, path)

    def _named(self, inner: inspect.StructType, table: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        decoded: dict[str, Any] = {}
        noun = NAMED.get(str(path[-1]), "table")
        for name, item in table.items():
            if NAME.fullmatch(name) is None:
                self.add_problem((*path, name), f"{name!r} is not a name; letters, digits and _ . @ -, at most 64")
            elif not isinstance(item, dict):
                self.add_problem((*path, name), f"a {noun} is a table: write [{dotted((*path, name))}]")
            else:
                decoded[name] = self.struct(inner.cls, cast("dict[str, Any]", item), (*path, name))
        return decoded

    def _written(self, cls: type[TextWithRefs], value: Any, path: KeyPath) -> TextWithRefs | None:
        if not isinstance(value, str):
            return self.add_problem(path, "a text is wanted here, in quotes")
        try:
            return cls(str(value))
        except ConfigError as error:  # its message never repeats the value
            return self.add_problem(path, str(error))

    def _leaf(self, info: inspect.Type, value: Any, path: KeyPath) -> Any:
        kind = _kind(info)
        try:
            converted = msgspec.convert(str(value) if isinstance(value, EnvironmentValue) else value, kind)
        except msgspec.ValidationError as error:
            if isinstance(value, EnvironmentValue) and (parsed := _as_toml(value)) is not None:
                return self._leaf(info, parsed, path)
            item = _ITEM.search(str(error))
            return self.add_problem((*path, int(item[1])) if item else path, _translate_error(str(error), info, value))
        if problem := _unfit(info, converted):
            return self.add_problem(path, problem)
        return converted


def dotted(path: KeyPath) -> str:
    """Return a path as it is written: `agents.helper.tools[0]`."""
    text = ""
    for piece in path:
        text += f"[{piece}]" if isinstance(piece, int) else f".{piece}" if text else piece
    return text


def _kind(info: inspect.Type) -> Any:
    """Return the Python type of an inspected type."""
    match info:
        case inspect.UnionType(types=types):
            kinds = [_kind(member) for member in types if not isinstance(member, inspect.StructType)]  # not as a leaf
            union = kinds[0]
            for kind in kinds[1:]:
                union = union | kind
            return union
        case inspect.LiteralType(values=values):
            return Literal[values]
        case inspect.VarTupleType(item_type=item):
            return tuple[_kind(item), ...]
        case inspect.DictType(value_type=of):
            return dict[str, _kind(of)]
        case _:
            return _SCALARS.get(type(info), Any)


_SCALARS: Final[dict[type[inspect.Type], Any]] = {
    inspect.StrType: str,
    inspect.IntType: int,
    inspect.FloatType: float,
    inspect.BoolType: bool,
    inspect.NoneType: type(None),
}


def _as_toml(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _unfit(info: inspect.Type, number: Any) -> str:
    """Return what is wrong with a number; no number here may be negative."""
    if not isinstance(number, int | float) or isinstance(number, bool):
        return ""
    if not math.isfinite(number):
        return "a number is wanted here that has an end"
    options = info.types if isinstance(info, inspect.UnionType) else (info,)
    least = max(
        (option.ge or 0 for option in options if isinstance(option, inspect.IntType | inspect.FloatType)), default=0
    )
    return f"{number:g} is below {least:g}, the least that it may be" if number < least else ""


_NAMES: Final = {
    "str": "a text in quotes",
    "array": "a list",
    "object": "a table",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
}


def _translate_error(text: str, info: inspect.Type, value: Any) -> str:
    """Translate an error of msgspec. The value is not repeated: it may be a misplaced secret."""
    if match := re.fullmatch(r"Expected `(.+)`, got `(.+)`", _PATH.sub("", text)):
        wanted = " or ".join(_NAMES.get(name, f"a {name}") for name in match[1].split(" | ") if name != "null")
        return f"{wanted} is wanted here, not {_NAMES.get(match[2], f'a {match[2]}')}"
    options = info.types if isinstance(info, inspect.UnionType) else (info,)
    known = [str(name) for option in options if isinstance(option, inspect.LiteralType) for name in option.values]
    if not known:
        return "this makes no sense here"
    close = get_close_matches(str(value).lower(), known, 1)
    return f"this is not one of {', '.join(known)}{f'; did you mean {close[0]!r}?' if close else ''}"
