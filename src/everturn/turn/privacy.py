"""Fields that no model sees: their values → stand-ins on the way out, and known again wherever they turn up.

The values of one result are one blob, under a name that tells nothing of them. All else, the whole of a result that
was cut included, holds `$private{call:path}` in their place.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical import canonical
from everturn.core.parts import Output
from everturn.core.requests import ToolSpec
from everturn.errors import UnknownMessage
from everturn.turn.results import has_private, read_branch
from everturn.turn.run import Run

PRIVACY_RULE: Final = (
    "A text like $private{call:path} in a result is a stand-in for a private value that you cannot see. To use the "
    "value, write the stand-in exactly as it is into the arguments of a call, and the tool is given the value. "
    "Never ask for such a value and never guess it."
)
ALL_PRIVATE: Final = "[what this tool said{code} is private as a whole; the stand-in stands for it]"
SHORTEST_BESIDE = 4  # characters of a value that is looked for in the title and metadata of its own result, and
SHORTEST = 6  # anywhere else: what is shorter is found by chance in any text, but
SHORTEST_GIVEN = 3  # of one that a tool was given, which is likely to repeat it; there it has to stand by itself
LONG = 50_000  # characters that are not gone through on the event loop
STAND_IN: Final = re.compile(r"(\$private\{[^{}]*\})")
_PLAIN: Final = re.compile(r"[\w.-]{1,100}")

T = TypeVar("T")
Values = dict[str, Any]


def stand_in(call: str, path: str) -> str:
    """What stands for a private value."""
    return f"$private{{{call}:{path}}}"


# Taking values out -------------------------------------------------------------------------------------------------


class _Fields:
    """Takes the values of some fields out of a JSON value; `values` has them, by their path."""

    def __init__(self, call: str, names: tuple[str, ...]) -> None:
        self._call, self._names = call, names
        self._last = {name.rsplit(".", 1)[-1] for name in names}
        self.values: Values = {}

    def taken_out(self, value: Any, path: str = "", name: str = "") -> Any:
        """The value without them. `name` is its path without the places in lists, which nobody declares."""
        if isinstance(value, list):
            items = enumerate(cast("list[Any]", value))
            return [self.taken_out(item, f"{path}.{at}" if path else str(at), name) for at, item in items]
        if not isinstance(value, dict):
            return value
        left: dict[str, Any] = {}
        for key, item in cast("dict[str, Any]", value).items():
            inner, here = f"{path}.{key}" if path else key, f"{name}.{key}" if name else key
            is_private = key.rsplit(".", 1)[-1] in self._last and self._is_declared(here)
            left[key] = self._keep(inner, item) if is_private else self.taken_out(item, inner, here)
        return left

    def _is_declared(self, name: str) -> bool:
        return any(name == declared or name.endswith(f".{declared}") for declared in self._names)

    def _keep(self, path: str, value: Any) -> str:
        # Keys are data too: an odd one is not repeated, and two paths that are written alike are told apart.
        if path in self.values or _PLAIN.fullmatch(path) is None:
            path = f"~{len(self.values)}"
        self.values[path] = value
        return stand_in(self._call, path)


def _take_out(call: str, spec: ToolSpec, output: Output) -> tuple[str, Values]:
    """A text without its private values, and those; what is not JSON is one private value."""
    try:
        data = msgspec.json.decode(output.text)
        if isinstance(data, dict | list):
            fields = _Fields(call, spec.private)
            left = fields.taken_out(data)
            return (msgspec.json.encode(left).decode() if fields.values else output.text), fields.values
    except (msgspec.DecodeError, RecursionError):
        pass
    code = f" ({output.code})" if output.code else ""
    return f"{stand_in(call, '')}\n{ALL_PRIVATE.format(code=code)}", {"": output.text}


async def hide(run: Run, spec: ToolSpec, call: str, output: Output) -> Output:
    """Put stand-ins in the place of the fields a tool declares to be private, and keep the values elsewhere."""
    if not output.text:
        return output
    text, values = await _apart(len(output.text), lambda: _take_out(call, spec, output))
    if not values:
        return output
    ids = run.setup.ids  # one id is half of what it takes to be beyond guessing
    kept = {"salt": ids.new("salt") + ids.new("salt"), "values": values}
    name = await run.setup.store.put_blob(msgspec.json.encode(kept))
    _seen(run).learn(call, name, values)
    if "" in values:
        return replace(output, text=text, title="", metadata=None, private=name)
    beside = Mask(SHORTEST_BESIDE)
    beside.add(call, values)
    return replace(beside.over(output, is_text=False), text=text, private=name)


async def private_values(run: Run, output: Output) -> Values:
    """The values behind the stand-ins of a result; none where they are gone."""
    try:
        return msgspec.json.decode(await run.setup.store.blob(output.private), type=_Kept).values
    except (UnknownMessage, msgspec.DecodeError):
        return {}


class _Kept(Struct, frozen=True):
    """The blob of one result's private values."""

    salt: str
    values: Values


# Knowing them again ------------------------------------------------------------------------------------------------


class Mask:
    """Texts to be replaced wherever they stand. It takes time in proportion to what it is laid over.

    `is_apart`: only where they are no piece of a longer word or number.
    """

    def __init__(self, shortest: int = SHORTEST, is_apart: bool = False) -> None:
        self._shortest, self._is_apart = shortest, is_apart
        self._heads: dict[str, dict[str, str]] = {}  # first characters -> value -> stand-in

    def add(self, call: str, values: Values) -> None:
        """Know these values of a result again, also as JSON and Python write them."""
        for path, value in values.items():
            for text in _texts(value):
                for form in (text, _escaped(text), json.dumps(text)[1:-1], repr(text)[1:-1]):
                    if len(form) >= self._shortest:
                        self._heads.setdefault(form[: self._shortest], {}).setdefault(form, stand_in(call, path))

    def text(self, text: str) -> str:
        """A text with stand-ins for the values in it; those that stand there already stay as they are."""
        heads = tuple(self._heads)  # more may be added while this runs beside the event loop
        if len(heads) < 50 and not any(head in text for head in heads):
            return text
        pieces = STAND_IN.split(text)
        return "".join(piece if at % 2 else self._masked(piece) for at, piece in enumerate(pieces))

    def _masked(self, text: str) -> str:
        size, heads = self._shortest, self._heads
        pieces: list[str] = []
        done = 0
        for at in range(len(text) - size + 1):
            found = heads.get(text[at : at + size])
            if found is None or at < done:
                continue
            if value := max((value for value in tuple(found) if self._is_at(text, at, value)), key=len, default=""):
                end = at + len(value)
                mark = f'"{found[value]}"' if _is_bare(text, at, end) else found[value]
                pieces += (text[done:at], mark)
                done = end
        return "".join([*pieces, text[done:]]) if pieces else text

    def _is_at(self, text: str, at: int, value: str) -> bool:
        end = at + len(value)
        if not text.startswith(value, at):
            return False
        return not self._is_apart or not (
            _is_one(text[at - 1 : at], value[0]) or _is_one(value[-1], text[end : end + 1])
        )

    def over(self, output: Output, is_text: bool = True) -> Output:
        """An output with stand-ins for the values in it."""
        if not self._heads:
            return output
        metadata = output.metadata
        return replace(
            output,
            text=self.text(output.text) if is_text else output.text,
            title=self.text(output.title),
            metadata=None if metadata is None else self._all(metadata),
        )

    def _all(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._all(item) for key, item in cast("dict[str, Any]", value).items()}
        if isinstance(value, list | tuple):
            return [self._all(item) for item in cast("list[Any]", value)]
        for text in _numbers(value):
            if (masked := self.text(text)) != text:
                return masked
        return value


def _is_bare(text: str, at: int, end: int) -> bool:
    """Whether something stands in JSON without quotes, as a number does; what is put in its place needs some."""
    return text[max(at - 4, 0) : at].rstrip(" ")[-1:] in (":", "[", ",") and text[end : end + 1] in (",", "]", "}")


def _is_one(before: str, after: str) -> bool:
    """Whether two characters read on as one word, or as one number."""
    return (before.isalpha() and after.isalpha()) or (before.isdecimal() and after.isdecimal())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float):
        yield from _numbers(value)
    elif isinstance(value, dict | list):
        inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        for item in inner:
            yield from _texts(item)


def _numbers(value: Any) -> Iterator[str]:
    """A number as JSON, Python and people write it, with its sign and without."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    for number in dict.fromkeys((value, abs(value))):
        yield from dict.fromkeys((canonical(number), repr(number), f"{number:,}"))
        if isinstance(number, float) and number.is_integer():
            yield from (f"{number:.0f}", f"{number:,.0f}")


def _escaped(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


class _Seen:
    """The private values a run has come across."""

    def __init__(self) -> None:
        self.mask, self.blobs = Mask(), set[str]()
        self.given = Mask(SHORTEST_GIVEN, is_apart=True)

    def learn(self, call: str, name: str, values: Values) -> None:
        """Know the values of one result again."""
        self.blobs.add(name)
        self.mask.add(call, values)


_SEEN: WeakKeyDictionary[Run, _Seen] = WeakKeyDictionary()


def _seen(run: Run) -> _Seen:
    return _SEEN.setdefault(run, _Seen())


def give(run: Run, call: str, path: str, value: Any) -> None:
    """Take note that a tool is given a private value: from now on it is known again even where it is short."""
    _seen(run).given.add(call, {path: value})


async def mask(run: Run, output: Output) -> Output:
    """An output without the private values of other results on its branch: a tool may say what it was given."""
    if run.history is None or has_private(run):
        for call, other in (await read_branch(run)).items():
            if other.private and other.private not in _seen(run).blobs:
                _seen(run).learn(call, other.private, await private_values(run, other))
    if run not in _SEEN:
        return output
    seen = _SEEN[run]
    return await _apart(len(output.text), lambda: seen.given.over(seen.mask.over(output)))


async def _apart(size: int, work: Callable[[], T]) -> T:
    """Do what takes long beside the event loop, and all else at once."""
    return await asyncio.to_thread(work) if size > LONG else work()
