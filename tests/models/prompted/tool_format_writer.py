"""Steps in neutral words → what a model says that calls tools natively, in a tool_format, or in its own loose style of one.

A model that is told of tools in words does as it is told: the way it writes is read off the request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec import Struct

from everturn.core.canonical_json import JsonObject, encode_canonical, parse_object
from everturn.core.requests import RequestCall
from everturn.models.prompted import TOOL_FORMATS
from everturn.testing.provider import Call, Item, Say, Step, Think

SIZE = 7  # characters of a piece: no marker fits into one


class Half(Struct, frozen=True):
    """The beginning of a call, `{"path": "a` in JSON, and nothing after it."""

    name: str
    key: str
    begun: str


class Broken(Struct, frozen=True):
    """A call whose arguments are no JSON."""

    name: str
    arguments: str


class MadeUp(Struct, frozen=True):
    """What a model makes up that writes on after a call; one that calls natively cannot."""

    text: str


class Own(Struct, frozen=True):
    """A call that is native whatever the model was told."""

    call: Call


Told = Item | Half | Broken | MadeUp | Own


def way_of(body: JsonObject) -> str:
    """How a request wants calls: the name of a tool_format, `bound` where all is one object, or native."""
    system = "".join(str(message["content"]) for message in body["messages"] if message["role"] == "system")
    for way, sign in (
        ("bound", "All you write is one JSON object"),
        ("blocks", "=== call "),
        ("xml", "<tool_code>"),
        ("json", '{"tool_calls": ['),
    ):
        if sign in system:
            return way
    return "native"


def written(items: Sequence[Told], is_loose: bool) -> Step:
    """A step that is written as the request wants it."""

    def say(body: JsonObject) -> Sequence[Item]:
        way = way_of(body)
        if way in ("native", "bound"):
            return native(items) if way == "native" else bound(items)
        return prompted(items, way, is_loose)

    return say


def native(items: Sequence[Told]) -> list[Item]:
    """As a model that knows tools calls them."""
    output: list[Item] = []
    for item in items:
        match item:
            case Half(name=name, key=key, begun=begun):
                output.append(Call(name, f'{{"{key}": "{begun}', pieces=1))
            case Broken(name=name, arguments=arguments):
                output.append(Call(name, arguments))
            case Own(call=call):
                output.append(call)
            case MadeUp():
                pass
            case _:
                output.append(item)
    return output


def prompted(items: Sequence[Told], way: str, is_loose: bool) -> list[Item]:
    """As a model writes that does as it is told. Calls that stand together are written together."""
    output: list[Item] = []
    for is_call, group in groupby(items, lambda item: isinstance(item, Call)):
        if is_call:
            calls = [item for item in group if isinstance(item, Call)]
            output.append(_said("\n\n" + (LOOSE if is_loose else STRICT)[way](calls) + "\n"))
            continue
        for item in group:
            match item:
                case Half():
                    output.append(_said("\n" + _half(item, way)))
                case Broken():
                    output.append(_said("\n" + _broken(item, way) + "\n"))
                case MadeUp(text=text):
                    output.append(
                        _said(f'\n{{"tool_call_result": {{"tool_call_id": "call_1", "result": "{text}"}}}}\n{text}')
                    )
                case Own(call=call):
                    output.append(call)
                case Say(text=text):
                    output.append(_said(text))
                case _:
                    output.append(item)
    return output


def can_be_bound(items: Sequence[Told]) -> bool:
    """Whether a step is what a server lets through that holds a model to one object: words, and then calls."""
    kinds = [type(item) for item in items if not isinstance(item, Think)]
    is_plain = all(kind in (Say, Call) for kind in kinds) and kinds.count(Say) <= 1 and Say not in kinds[1:]
    return is_plain and not any(isinstance(item, Say) and "<think>" in item.text for item in items)


def bound(items: Sequence[Told]) -> list[Item]:
    """As a model writes that can write nothing but one object."""
    calls = [item for item in items if isinstance(item, Call)]
    words = [item.text for item in items if isinstance(item, Say)]
    members = [f'"answer": {json.dumps(text)}' for text in words]
    if calls:
        members.append(strictly("json", calls)[1:-1])
    return [*(item for item in items if isinstance(item, Think)), _said(f"{{{', '.join(members)}}}")]


def _said(text: str) -> Say:
    return Say(text, max(1, min(len(text) // SIZE, 300)))


def strictly(way: str, calls: Sequence[Call]) -> str:
    """Calls as the tool_format itself writes them."""
    return TOOL_FORMATS[way].write([RequestCall("", call.name, call.arguments) for call in calls])


STRICT: Final[dict[str, Callable[[Sequence[Call]], str]]] = {
    "json": lambda calls: strictly("json", calls),
    "xml": lambda calls: strictly("xml", calls),
    "blocks": lambda calls: strictly("blocks", calls),
}


# As models really write ---------------------------------------------------------------------------------------------


def loose_object(call: Call, at: int) -> str:
    """A call as an object, in one of the many shapes models have learned."""
    arguments = parse_object(call.arguments or "{}")
    match at % 4:
        case 0:
            return json.dumps({"arguments": arguments, "name": call.name}, indent=2)
        case 1:
            function = {"name": call.name, "arguments": json.dumps(arguments)}
            return json.dumps({"id": f"c{at}", "type": "function", "function": function}, ensure_ascii=False)
        case 2:
            return f'{{ "name" : {encode_canonical(call.name)} ,\r\n\t"parameters" : {encode_canonical(arguments)} }}'
        case _:
            return json.dumps({"reason": "It [helps}.", "tool": call.name, "input": arguments}, separators=(",", ":"))


def loose_json(calls: Sequence[Call]) -> str:
    """Several objects, and one call that is no list."""
    objects = [loose_object(call, at) for at, call in enumerate(calls)]
    first = f'  {{\n  "tool_calls" : [\n{objects[0]}\n]\n}}  '
    others = f'{{"tool_calls":[{", ".join(objects[2:])}], "done": true}}' if objects[2:] else ""
    return "\n".join(filter(None, (first, *(f'{{ "tool_calls":{item}}}' for item in objects[1:2]), others)))


def loose_xml(calls: Sequence[Call]) -> str:
    """Tags with blanks inside, and some of them on one line."""
    return "".join(f" <tool_code>\n{loose_object(call, at)}\n</tool_code>" for at, call in enumerate(calls))


def loose_blocks(calls: Sequence[Call]) -> str:
    """Colons, words without quotes, other words for the end, blanks and commas."""
    return "\n\n".join(_loose_block(call) for call in calls)


def _loose_block(call: Call) -> str:
    lines = [f"=== call   {call.name}  === "]
    for key, value in (parse_object(call.arguments or "{}") or {}).items():
        name = json.dumps(key) if not key.isidentifier() else key
        match value:
            case str() if value.replace(".", "").isalpha() and value not in ("true", "false", "null"):
                lines.append(f"  {name} = {value}")
            case str() if "\n" in value:
                lines += [f"{name} << EOF_1 ", value, "EOF_1  "]
            case dict() | list():
                lines.append(f"{name}: {json.dumps(value, indent=2)},")
            case _:
                lines.append(f"{name} : {json.dumps(value)}")
    return "\n".join([*lines, "", "=== end ==="])


LOOSE: Final[dict[str, Callable[[Sequence[Call]], str]]] = {
    "json": loose_json,
    "xml": loose_xml,
    "blocks": loose_blocks,
}


# Not whole ----------------------------------------------------------------------------------------------------------


def _half(half: Half, way: str) -> str:
    if way == "blocks":
        return f'=== call {half.name} ===\n{half.key} = "{half.begun}'
    call = f'{{"name": "{half.name}", "arguments": {{"{half.key}": "{half.begun}'
    return f'{{"tool_calls": [{call}' if way == "json" else f"<tool_code>{call}"


def _broken(broken: Broken, way: str) -> str:
    if way == "blocks":
        return f"=== call {broken.name} ===\n{broken.arguments}\n=== end ==="
    call = f'{{"name": "{broken.name}", "arguments": {broken.arguments}}}'
    return f'{{"tool_calls": [{call}]}}' if way == "json" else f"<tool_code>{call}</tool_code>"


def call(name: str, /, **arguments: Any) -> Call:
    """A call, with its arguments as they are."""
    return Call(name, json.dumps(arguments, ensure_ascii=False))
