"""The paradigm `json`: calls are one object, `{"tool_calls": [{"name": …, "arguments": {…}}, …]}`.

Where a server can hold a model to a schema, all of its answer is such an object: words are then `{"answer": "…"}`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from everturn.core.canonical import JsonObject, canonical
from everturn.core.history import as_object
from everturn.core.requests import RequestCall
from everturn.models.formats.schemas import hoisted, tool_schema
from everturn.models.prompted.answer import MAYBE, Answer, Heard, follows
from everturn.models.prompted.grammar import Grammar, quoted
from everturn.models.prompted.objects import Call, members
from everturn.models.prompted.paradigm import Offer, example_arguments, words_then_calls
from everturn.models.prompted.source import Reading, Source, json_value, more, next_sign, rest, unquoted

_CALLS = ("{", '"tool_calls"', ":")
_ANSWER = ("{", '"answer"', ":")
_NO_HEX = r"\\u(?=[0-9a-fA-F]{0,3}[^0-9a-fA-F])"  # what no JSON has; then it stands for itself
_WHOLE = re.compile(rf'(?:[^"\\]++|\\u[0-9a-fA-F]{{4}}|\\[^u]|{_NO_HEX})*+', re.DOTALL)  # no half of an escape
_ONE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[0-9a-fA-F]{4}|\\.|[^\\]+", re.DOTALL)
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


class Json:
    """Calls as one JSON object."""

    name = "json"
    binds_answers = True

    def rules(self, offer: Offer) -> str:
        """How to write a call."""
        example = self._written([(offer.callable[0].name, canonical(example_arguments(offer.callable[0])))])
        form = (
            "To call tools, write one JSON object of this form, on lines of its own, not in a code fence, and then stop:\n"
            f"{example}"
        )
        if offer.is_bound:
            form = f'All you write is one JSON object. To call tools:\n{example}\nTo answer in words: {{"answer": "…"}}'
        return form if offer.is_single else f"{form}\nSeveral calls go into the same list."

    def write(self, calls: Sequence[RequestCall]) -> str:
        """Calls as the model would have written them."""
        return self._written([(call.name, as_object(call.arguments)) for call in calls])

    def _written(self, calls: Sequence[tuple[str, str]]) -> str:
        listed = ", ".join(f'{{"name": {canonical(name)}, "arguments": {arguments}}}' for name, arguments in calls)
        return f'{{"tool_calls": [{listed}]}}'

    def tell(self, words: str, calls: Sequence[RequestCall], offer: Offer) -> str:
        """An answer as the model would have written it; all of it in one object where that has to be."""
        written = self.write(calls) if calls else ""
        if not offer.is_bound or not words:
            return words_then_calls(words, written)
        is_whole_json = offer.schema is not None and is_json_text(words)
        answer = f'{{"answer": {words if is_whole_json else canonical(words)}}}'
        return f"{answer[:-1]}, {written[1:]}" if calls else answer

    def answer(self, offer: Offer) -> Answer:
        """A reader for one answer."""
        return Answer(partial(_begins, is_bound=offer.is_bound), _read, offer.forbids)

    def bind(self, offer: Offer) -> dict[str, Any]:
        """A schema for all of the answer, or a grammar: where both can be had, that is the tighter one."""
        return {"grammar": _grammar(offer)} if offer.by_grammar else {"output_schema": answer_schema(offer)}


def is_json_text(text: str) -> bool:
    """Whether a text is JSON."""
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def answer_schema(offer: Offer) -> JsonObject:
    """What an answer may be: words, calls, or words and then calls."""
    shared: JsonObject = {}  # what schemas refer to stands at the root, and under a name of its own
    ways = [
        _object(
            {"name": {"const": tool.name}, "arguments": hoisted(tool_schema(tool.schema), f"t{number}", shared)},
            ["name", "arguments"],
        )
        for number, tool in enumerate(offer.callable)
    ]
    calls = {"type": "array", "items": {"anyOf": ways}, "minItems": 1, "maxItems": offer.most}
    answer = _object({"tool_calls": calls}, ["tool_calls"])
    if not offer.must_call:
        words = {"type": "string"} if offer.schema is None else hoisted(offer.schema, "answer", shared)
        answer = {"anyOf": [_object({"answer": words, "tool_calls": calls}, ["answer"]), answer]}
    return {**answer, "$defs": shared} if shared else answer


def _grammar(offer: Offer) -> str:
    """The same for servers that read grammars."""
    grammar = Grammar()
    calls = " | ".join(
        f'"{{" {quoted(canonical("name"))} colon {grammar.literal(tool.name)} comma '
        f'{quoted(canonical("arguments"))} colon {grammar.object(tool.schema)} "}}"'
        for tool in offer.callable
    )
    more_calls = f" (comma call){{0,{offer.most - 1}}}" if offer.most > 1 else ""
    made = f'{quoted(canonical("tool_calls"))} colon "[" call{more_calls} "]"'
    answer = f"{quoted(canonical('answer'))} colon {grammar.value(offer.schema)} (comma made)?"
    root = '"{" made "}"' if offer.must_call else '"{" (made | answer) "}"'
    return grammar.write({"root": root, "call": calls, "made": made, **({} if offer.must_call else {"answer": answer})})


def _object(properties: JsonObject, required: list[str]) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _begins(text: str, at: int, is_bound: bool) -> int:
    calls = follows(_CALLS, text, at)
    if calls >= 0 or not is_bound:
        return calls
    answer = follows(_ANSWER, text, at)
    return answer if answer >= 0 else max(calls, answer) if MAYBE not in (calls, answer) else MAYBE


def _read(source: Source, heard: Heard) -> Reading[None]:
    slots: list[int] = []
    has_spoken = False

    def member(key: str, source: Source) -> Reading[bool]:
        nonlocal has_spoken
        if key == "tool_calls":
            return (yield from _calls(source, heard, slots))
        if key == "answer":
            has_spoken = True
            return (yield from _words(source, heard))
        return (yield from json_value(source, lambda _: None))

    if (yield from members(source, member)):
        return
    left = yield from rest(source)
    if not slots and not has_spoken:
        slots.append(heard.begin(""))
        heard.grow(slots[0], left)
    heard.spoil(slots, "the object that holds it was not closed")


def _calls(source: Source, heard: Heard, slots: list[int]) -> Reading[bool]:
    sign = yield from next_sign(source)
    if sign != "[":
        return sign == "{" and (yield from _call(source, heard, slots))
    source.at += 1
    while True:
        sign = yield from next_sign(source)
        if sign == "]":
            source.at += 1
            return True
        if sign == ",":
            source.at += 1
        elif sign != "{" or not (yield from _call(source, heard, slots)):
            return False


def _call(source: Source, heard: Heard, slots: list[int]) -> Reading[bool]:
    call = Call(heard)
    whole = yield from call.read(source)
    slots.append(call.slot)
    return whole


def _plain(text: str) -> str:
    """What the inside of a JSON string says; an escape that is none stands for itself."""

    def one(found: re.Match[str]) -> str:
        plain = unquoted(f'"{found[0]}"')
        return found[0] if plain.startswith('"') and found[0] != '\\"' else plain

    return _ONE.sub(one, text) if "\\" in text else text


def _words(source: Source, heard: Heard) -> Reading[bool]:
    """An answer in words; one that must fit a schema is JSON itself, and stays as it is."""
    sign = yield from next_sign(source)
    if sign != '"':
        return (yield from json_value(source, heard.say))
    source.at += 1
    while True:
        found = _WHOLE.match(source.text, source.at)
        assert found is not None
        end = found.end()
        is_last = source.text[end : end + 1] == '"'
        half = None if is_last else _HALF_PAIR.search(source.text, source.at, end)
        heard.say(_plain(source.take(half.start() if half is not None else end)))
        if is_last:
            source.at += 1
            return True
        if not (yield from more(source)):
            return False
