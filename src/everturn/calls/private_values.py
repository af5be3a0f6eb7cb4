"""Private values: replaces the private fields of results by placeholder tokens, and masks the values in later outputs.

The private values of one result are one blob, whose name reveals nothing about them. Everything else, including the
full text of a truncated result, has `$private{call:path}` in their place.
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

from everturn.calls.results import has_private_result, load_results
from everturn.core.canonical_json import encode_canonical
from everturn.core.parts import Output
from everturn.core.requests import ToolSpec
from everturn.errors import UnknownMessage
from everturn.running.active_turn import ActiveTurn

PRIVACY_RULE: Final = (
    "A text like $private{call:path} in a result is a placeholder for a private value that you cannot see. To use the "
    "value, write the placeholder exactly as it is into the arguments of a call, and the tool is given the value. "
    "Never ask for such a value and never guess it."
)
ALL_PRIVATE: Final = "[what this tool said{code} is private as a whole; the placeholder stands for it]"
MIN_MASKED_OWN = 4  # minimum characters of a value that is masked in the title and metadata of its own result
MIN_MASKED = 6  # the same anywhere else: shorter values occur by chance in any text
MIN_MASKED_GIVEN = 3  # the same for a value that a tool got, which it is likely to repeat; there only whole words match
THREAD_THRESHOLD = 50_000  # characters; longer text is processed in a thread
PLACEHOLDER_PATTERN: Final = re.compile(r"(\$private\{[^{}]*\})")
_PLAIN: Final = re.compile(r"[\w.-]{1,100}")

T = TypeVar("T")
PrivateValues = dict[str, Any]


def placeholder_token(call: str, path: str) -> str:
    """The placeholder token of a private value."""
    return f"$private{{{call}:{path}}}"


# Extraction --------------------------------------------------------------------------------------------------------


class _FieldExtractor:
    """Extracts the values of some fields from a JSON value into `values`, by their path."""

    def __init__(self, call: str, names: tuple[str, ...]) -> None:
        self._call, self._names = call, names
        self._last = {name.rsplit(".", 1)[-1] for name in names}
        self.values: PrivateValues = {}

    def taken_out(self, value: Any, path: str = "", name: str = "") -> Any:
        """The value without them. `name` is its path without list indices, which declarations do not have."""
        if isinstance(value, list):
            items = enumerate(cast("list[Any]", value))
            return [self.taken_out(item, f"{path}.{index}" if path else str(index), name) for index, item in items]
        if not isinstance(value, dict):
            return value
        remaining: dict[str, Any] = {}
        for key, item in cast("dict[str, Any]", value).items():
            inner, declared_name = f"{path}.{key}" if path else key, f"{name}.{key}" if name else key
            is_private = key.rsplit(".", 1)[-1] in self._last and self._is_declared(declared_name)
            remaining[key] = self._keep(inner, item) if is_private else self.taken_out(item, inner, declared_name)
        return remaining

    def _is_declared(self, name: str) -> bool:
        return any(name == declared or name.endswith(f".{declared}") for declared in self._names)

    def _keep(self, path: str, value: Any) -> str:
        # Keys are data too: an unusual one is not repeated, and two paths with the same text get distinct tokens.
        if path in self.values or _PLAIN.fullmatch(path) is None:
            path = f"~{len(self.values)}"
        self.values[path] = value
        return placeholder_token(self._call, path)


def _take_out(call: str, spec: ToolSpec, output: Output) -> tuple[str, PrivateValues]:
    """A text without its private values, and the values; text that is not JSON is one private value."""
    try:
        data = msgspec.json.decode(output.text)
        if isinstance(data, dict | list):
            fields = _FieldExtractor(call, spec.private)
            remaining = fields.taken_out(data)
            return (msgspec.json.encode(remaining).decode() if fields.values else output.text), fields.values
    except (msgspec.DecodeError, RecursionError):
        pass
    code = f" ({output.code})" if output.code else ""
    return f"{placeholder_token(call, '')}\n{ALL_PRIVATE.format(code=code)}", {"": output.text}


async def hide_private_fields(run: ActiveTurn, spec: ToolSpec, call: str, output: Output) -> Output:
    """Replace the fields that a tool declares private by placeholder tokens, and store the values in a blob."""
    if not output.text:
        return output
    text, values = await _in_thread_if_long(len(output.text), lambda: _take_out(call, spec, output))
    if not values:
        return output
    ids = run.setup.ids  # two ids, so that the name of the blob cannot be guessed
    blob = {"salt": ids.new("salt") + ids.new("salt"), "values": values}
    name = await run.setup.store.put_blob(msgspec.json.encode(blob))
    _seen_values(run).learn(call, name, values)
    if "" in values:
        return replace(output, text=text, title="", metadata=None, private=name)
    own_mask = PlaceholderMask(MIN_MASKED_OWN)
    own_mask.add(call, values)
    return replace(own_mask.mask_output(output, is_text=False), text=text, private=name)


async def load_private_values(run: ActiveTurn, output: Output) -> PrivateValues:
    """The values behind the placeholder tokens of a result; empty if they are gone."""
    try:
        return msgspec.json.decode(await run.setup.store.blob(output.private), type=_PrivateValuesBlob).values
    except (UnknownMessage, msgspec.DecodeError):
        return {}


class _PrivateValuesBlob(Struct, frozen=True):
    """The blob of one result's private values."""

    salt: str
    values: PrivateValues


# Masking -----------------------------------------------------------------------------------------------------------


class PlaceholderMask:
    """Replaces known private values in texts by their placeholder tokens, in linear time.

    `is_apart`: only whole words or numbers are replaced.
    """

    def __init__(self, shortest: int = MIN_MASKED, is_apart: bool = False) -> None:
        self._shortest, self._is_apart = shortest, is_apart
        self._heads: dict[str, dict[str, str]] = {}  # first characters -> value -> placeholder token

    def add(self, call: str, values: PrivateValues) -> None:
        """Add the values of a result, also in their JSON and Python spellings."""
        for path, value in values.items():
            for text in _texts(value):
                for form in (text, _escaped(text), json.dumps(text)[1:-1], repr(text)[1:-1]):
                    if len(form) >= self._shortest:
                        self._heads.setdefault(form[: self._shortest], {}).setdefault(
                            form, placeholder_token(call, path)
                        )

    def mask_text(self, text: str) -> str:
        """Replace the values in a text by placeholder tokens; existing tokens stay as they are."""
        heads = tuple(self._heads)  # more may be added while this runs in a thread
        if len(heads) < 50 and not any(head in text for head in heads):
            return text
        pieces = PLACEHOLDER_PATTERN.split(text)
        return "".join(piece if at % 2 else self._masked(piece) for at, piece in enumerate(pieces))

    def _masked(self, text: str) -> str:
        size, heads = self._shortest, self._heads
        pieces: list[str] = []
        done = 0
        for at in range(len(text) - size + 1):
            candidates = heads.get(text[at : at + size])
            if candidates is None or at < done:
                continue
            if value := max(
                (value for value in tuple(candidates) if self._is_at(text, at, value)), key=len, default=""
            ):
                end = at + len(value)
                token = f'"{candidates[value]}"' if _is_unquoted(text, at, end) else candidates[value]
                pieces += (text[done:at], token)
                done = end
        return "".join([*pieces, text[done:]]) if pieces else text

    def _is_at(self, text: str, at: int, value: str) -> bool:
        end = at + len(value)
        if not text.startswith(value, at):
            return False
        return not self._is_apart or not (
            _are_joined(text[at - 1 : at], value[0]) or _are_joined(value[-1], text[end : end + 1])
        )

    def mask_output(self, output: Output, is_text: bool = True) -> Output:
        """An output with the values in it replaced by placeholder tokens."""
        if not self._heads:
            return output
        metadata = output.metadata
        return replace(
            output,
            text=self.mask_text(output.text) if is_text else output.text,
            title=self.mask_text(output.title),
            metadata=None if metadata is None else self._all(metadata),
        )

    def _all(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.mask_text(value)
        if isinstance(value, dict):
            return {self.mask_text(key): self._all(item) for key, item in cast("dict[str, Any]", value).items()}
        if isinstance(value, list | tuple):
            return [self._all(item) for item in cast("list[Any]", value)]
        for text in _numbers(value):
            if (masked := self.mask_text(text)) != text:
                return masked
        return value


def _is_unquoted(text: str, at: int, end: int) -> bool:
    """Whether this is a JSON value without quotes, such as a number; its replacement needs quotes."""
    return text[max(at - 4, 0) : at].rstrip(" ")[-1:] in (":", "[", ",") and text[end : end + 1] in (",", "]", "}")


def _are_joined(before: str, after: str) -> bool:
    """Whether two adjacent characters belong to one word or one number."""
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
    """A number in its JSON, Python and grouped spellings, with and without its sign."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    for number in dict.fromkeys((value, abs(value))):
        yield from dict.fromkeys((encode_canonical(number), repr(number), f"{number:,}"))
        if isinstance(number, float) and number.is_integer():
            yield from (f"{number:.0f}", f"{number:,.0f}")


def _escaped(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


class _SeenValues:
    """The private values that an active turn has seen."""

    def __init__(self) -> None:
        self.mask, self.blobs = PlaceholderMask(), set[str]()
        self.given = PlaceholderMask(MIN_MASKED_GIVEN, is_apart=True)

    def learn(self, call: str, name: str, values: PrivateValues) -> None:
        """Add the values of one result."""
        self.blobs.add(name)
        self.mask.add(call, values)


_SEEN: WeakKeyDictionary[ActiveTurn, _SeenValues] = WeakKeyDictionary()


def _seen_values(run: ActiveTurn) -> _SeenValues:
    return _SEEN.setdefault(run, _SeenValues())


def record_given_value(run: ActiveTurn, call: str, path: str, value: Any) -> None:
    """Record that a tool gets a private value: from now on it is masked even if it is short."""
    _seen_values(run).given.add(call, {path: value})


def may_have_private_values(run: ActiveTurn) -> bool:
    """Whether there may be private values on the branch that an output could repeat."""
    return run.history is None or run in _SEEN or has_private_result(run)


async def mask_private_values(run: ActiveTurn, output: Output) -> Output:
    """Mask the private values of other results on the branch in an output: a tool may repeat its arguments."""
    if run.history is None or has_private_result(run):
        for call, other in (await load_results(run, with_private=True)).items():
            if other.private and other.private not in _seen_values(run).blobs:
                _seen_values(run).learn(call, other.private, await load_private_values(run, other))
    if run not in _SEEN:
        return output
    seen = _SEEN[run]
    return await _in_thread_if_long(len(output.text), lambda: seen.given.mask_output(seen.mask.mask_output(output)))


async def _in_thread_if_long(size: int, work: Callable[[], T]) -> T:
    """Run long work in a thread, and short work at once."""
    return await asyncio.to_thread(work) if size > THREAD_THRESHOLD else work()
