"""A tree of plain values, with the place of each → a `Config`, or everything that is wrong in it.

The Structs of `schema` say what may be there. Each value is taken by itself, so that one slip hides no other.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeVar, cast

import msgspec
from msgspec import inspect

from everturn.config.positions import Path
from everturn.config.schema import ELSEWHERE
from everturn.config.secrets import Written
from everturn.config.trouble import Trouble, Where, nearest
from everturn.errors import ConfigError

S = TypeVar("S")
NAMED: Final = {"models": "model", "agents": "agent", "mcp": "server", "tenants": "tenant", "users": "user"}
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
_PATH: Final = re.compile(r" - at `[^`]*`$")
_ITEM: Final = re.compile(r" - at `\$\[(\d+)\]")


class FromVariable(str):
    """A value of the environment: a text, or what it says as TOML where no text is wanted."""

    __slots__ = ()


class Reader:
    """Reads a tree; `troubles` holds what was wrong in it."""

    def __init__(self, where: Callable[[Path], Where], has: Callable[[Path], bool]) -> None:
        self.where, self.has = where, has
        self.troubles: list[Trouble] = []

    def trouble(self, path: Path, text: str) -> None:
        """Remember that something is wrong there."""
        self.troubles.append(Trouble(self.where(path), dotted(path), text))

    def struct(self, kind: type[S], table: Mapping[str, Any], path: Path = ()) -> S | None:
        """A table as a Struct; None when something of it makes no sense."""
        info = inspect.type_info(kind)
        assert isinstance(info, inspect.StructType)
        before = len(self.troubles)
        found: dict[str, Any] = {}
        fields = {field.name: field for field in info.fields if (*path, field.name) not in ELSEWHERE}
        for key, value in table.items():
            if (*path, key) in ELSEWHERE:
                self.trouble((*path, key), ELSEWHERE[*path, key])
            elif key not in fields:
                place = f"[{dotted(path)}] has" if path else "there is"
                self.trouble((*path, key), f"{place} no {key!r}; {nearest(key, fields)}")
            else:
                found[key] = self.value(fields[key].type, value, (*path, key))
        for name, field in fields.items():
            if field.required and name not in table:
                self.trouble(path, f"it needs {name!r}")
        return kind(**found) if len(self.troubles) == before else None

    def value(self, info: inspect.Type, value: Any, path: Path) -> Any:
        """A value as its field wants it."""
        for option in info.types if isinstance(info, inspect.UnionType) else (info,):
            match option:
                case inspect.StructType() if isinstance(value, dict):
                    return self.struct(option.cls, cast("dict[str, Any]", value), path)
                case inspect.StructType():
                    if not isinstance(info, inspect.UnionType):
                        return self.trouble(path, f"this is a table: write [{dotted(path)}], or {{ … }}")
                case inspect.DictType(value_type=inspect.StructType() as inner) if isinstance(value, dict):
                    return self._named(inner, cast("dict[str, Any]", value), path)
                case inspect.DictType(value_type=inspect.CustomType() as inner) if isinstance(value, dict):
                    pairs = cast("dict[str, Any]", value).items()
                    return {key: self.value(inner, one, (*path, key)) for key, one in pairs}
                case inspect.VarTupleType(item_type=inspect.StructType() as inner) if isinstance(value, list):
                    rows = enumerate(cast("list[Any]", value))
                    return tuple(self.value(inner, row, (*path, at)) for at, row in rows)
                case inspect.CustomType(cls=cls) if issubclass(cls, Written):
                    return self._written(cls, value, path)
                case _:
                    pass
        return self._leaf(info, value, path)

    def _named(self, inner: inspect.StructType, table: dict[str, Any], path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        what = NAMED.get(str(path[-1]), "table")
        for name, one in table.items():
            if NAME.fullmatch(name) is None:
                self.trouble((*path, name), f"{name!r} is not a name; letters, digits and _ . @ -, at most 64")
            elif not isinstance(one, dict):
                self.trouble((*path, name), f"a {what} is a table: write [{dotted((*path, name))}]")
            else:
                found[name] = self.struct(inner.cls, cast("dict[str, Any]", one), (*path, name))
        return found

    def _written(self, cls: type[Written], value: Any, path: Path) -> Written | None:
        if not isinstance(value, str):
            return self.trouble(path, "a text is wanted here, in quotes")
        try:
            return cls(str(value))
        except ConfigError as error:  # which never repeats what was written
            return self.trouble(path, str(error))

    def _leaf(self, info: inspect.Type, value: Any, path: Path) -> Any:
        kind = _kind(info)
        try:
            made = msgspec.convert(str(value) if isinstance(value, FromVariable) else value, kind)
        except msgspec.ValidationError as error:
            if isinstance(value, FromVariable) and (parsed := _as_toml(value)) is not None:
                return self._leaf(info, parsed, path)
            item = _ITEM.search(str(error))
            return self.trouble((*path, int(item[1])) if item else path, _said(str(error), info, value))
        if why := _unfit(info, made):
            return self.trouble(path, why)
        return made


def dotted(path: Path) -> str:
    """A path as one writes it: `agents.helper.tools[0]`."""
    text = ""
    for piece in path:
        text += f"[{piece}]" if isinstance(piece, int) else f".{piece}" if text else piece
    return text


def _kind(info: inspect.Type) -> Any:
    """The type that an inspected one was made of, as far as values have them here."""
    match info:
        case inspect.UnionType(types=types):
            kinds = [_kind(one) for one in types]
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


def _unfit(info: inspect.Type, made: Any) -> str:
    """What is wrong with a number; there is none here that may be below 0."""
    if not isinstance(made, int | float) or isinstance(made, bool):
        return ""
    if not math.isfinite(made):
        return "a number is wanted here that has an end"
    options = info.types if isinstance(info, inspect.UnionType) else (info,)
    least = max((one.ge or 0 for one in options if isinstance(one, inspect.IntType | inspect.FloatType)), default=0)
    return f"{made:g} is below {least:g}, the least that it may be" if made < least else ""


_NAMES: Final = {
    "str": "a text in quotes",
    "array": "a list",
    "object": "a table",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
}


def _said(text: str, info: inspect.Type, value: Any) -> str:
    """What msgspec says, in our words. The value is not repeated: it may be a secret in the wrong place."""
    if found := re.fullmatch(r"Expected `(.+)`, got `(.+)`", _PATH.sub("", text)):
        wanted = " or ".join(_NAMES.get(one, f"a {one}") for one in found[1].split(" | ") if one != "null")
        return f"{wanted} is wanted here, not {_NAMES.get(found[2], f'a {found[2]}')}"
    options = info.types if isinstance(info, inspect.UnionType) else (info,)
    known = [str(one) for option in options if isinstance(option, inspect.LiteralType) for one in option.values]
    if not known:
        return "this makes no sense here"
    close = get_close_matches(str(value).lower(), known, 1)
    return f"this is not one of {', '.join(known)}{f'; did you mean {close[0]!r}?' if close else ''}"
