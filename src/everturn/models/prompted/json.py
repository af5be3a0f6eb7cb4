"""The tool format `json`: calls are one object, `{"tool_calls": [{"name": …, "arguments": {…}}, …]}`.

With constrained decoding by a schema, the whole answer is such an object: text is then `{"answer": "…"}`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from everturn.core.canonical_json import JsonObject, encode_canonical
from everturn.core.history import arguments_as_object
from everturn.core.requests import RequestCall
from everturn.models.formats.tool_schemas import hoist_definitions, tool_schema
from everturn.models.prompted.grammar import Grammar, quoted
from everturn.models.prompted.json_calls import JsonCall, read_members
from everturn.models.prompted.response import MAYBE, AnswerParser, ParsedAnswer, match_tokens
from everturn.models.prompted.text_reader import (
    TextParser,
    TextReader,
    json_value,
    next_char,
    read_rest,
    unquoted,
    wait_for_more,
)
from everturn.models.prompted.tool_format import OfferedTools, example_arguments, join_text_and_calls

_CALLS = ("{", '"tool_calls"', ":")
_ANSWER = ("{", '"answer"', ":")
_NO_HEX = r"\\u(?=[0-9a-fA-F]{0,3}[^0-9a-fA-F])"  # invalid in JSON; then it is literal
_WHOLE = re.compile(
    rf'(?:[^"\\]++|\\u[0-9a-fA-F]{{4}}|\\[^u]|{_NO_HEX})*+', re.DOTALL
)  # ends before an incomplete escape
_ONE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[0-9a-fA-F]{4}|\\.|[^\\]+", re.DOTALL)
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


class JsonFormat:
    """Calls as one JSON object."""

    name = "json"
    constrains_answers = True

    def rules(self, offer: OfferedTools) -> str:
        """Return the instructions for writing a call."""
        example = self._written([(offer.callable[0].name, encode_canonical(example_arguments(offer.callable[0])))])
        instructions = (
            "To call tools, write one JSON object of this form, on lines of its own, not in a code fence, and then stop:\n"
            f"{example}"
        )
        if offer.is_constrained:
            instructions = (
                f'All you write is one JSON object. To call tools:\n{example}\nTo answer in words: {{"answer": "…"}}'
            )
        return instructions if offer.is_single else f"{instructions}\nSeveral calls go into the same list."

    def write(self, calls: Sequence[RequestCall]) -> str:
        """Return calls as the model would have written them."""
        return self._written([(call.name, arguments_as_object(call.arguments)) for call in calls])

    def _written(self, calls: Sequence[tuple[str, str]]) -> str:
        listed = ", ".join(
            f'{{"name": {encode_canonical(name)}, "arguments": {arguments}}}' for name, arguments in calls
        )
        return f'{{"tool_calls": [{listed}]}}'

    def write_answer(self, words: str, calls: Sequence[RequestCall], offer: OfferedTools) -> str:
        """Return an answer as the model would have written it; with constrained decoding, as one object."""
        written = self.write(calls) if calls else ""
        if not offer.is_constrained or not words:
            return join_text_and_calls(words, written)
        is_whole_json = offer.schema is not None and is_json_text(words)
        answer = f'{{"answer": {words if is_whole_json else encode_canonical(words)}}}'
        return f"{answer[:-1]}, {written[1:]}" if calls else answer

    def answer(self, offer: OfferedTools) -> AnswerParser:
        """Return a parser for one answer."""
        return AnswerParser(partial(_begins, is_bound=offer.is_constrained), _read, offer.forbids)

    def constrain(self, offer: OfferedTools) -> dict[str, Any]:
        """Return a schema for the whole answer, or a grammar: if the server has both, the grammar is stricter."""
        return {"grammar": _grammar(offer)} if offer.by_grammar else {"output_schema": answer_schema(offer)}


def is_json_text(text: str) -> bool:
    """Return whether a text is JSON."""
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def answer_schema(offer: OfferedTools) -> JsonObject:
    """Return the schema of an answer: text, calls, or text and then calls."""
    shared: JsonObject = {}  # definitions are moved to the root, with a prefix per schema
    alternatives = [
        _object(
            {
                "name": {"const": tool.name},
                "arguments": hoist_definitions(tool_schema(tool.schema), f"t{number}", shared),
            },
            ["name", "arguments"],
        )
        for number, tool in enumerate(offer.callable)
    ]
    calls = {"type": "array", "items": {"anyOf": alternatives}, "minItems": 1, "maxItems": offer.max_calls}
    answer = _object({"tool_calls": calls}, ["tool_calls"])
    if not offer.must_call:
        words = {"type": "string"} if offer.schema is None else hoist_definitions(offer.schema, "answer", shared)
        answer = {"anyOf": [_object({"answer": words, "tool_calls": calls}, ["answer"]), answer]}
    return {**answer, "$defs": shared} if shared else answer


def _grammar(offer: OfferedTools) -> str:
    """Return the same as a grammar."""
    grammar = Grammar()
    calls = " | ".join(
        f'"{{" {quoted(encode_canonical("name"))} colon {grammar.literal(tool.name)} comma '
        f'{quoted(encode_canonical("arguments"))} colon {grammar.object(tool.schema)} "}}"'
        for tool in offer.callable
    )
    more_calls = f" (comma call){{0,{offer.max_calls - 1}}}" if offer.max_calls > 1 else ""
    made = f'{quoted(encode_canonical("tool_calls"))} colon "[" call{more_calls} "]"'
    answer = f"{quoted(encode_canonical('answer'))} colon {grammar.value(offer.schema)} (comma made)?"
    root = '"{" made "}"' if offer.must_call else '"{" (made | answer) "}"'
    return grammar.write({"root": root, "call": calls, "made": made, **({} if offer.must_call else {"answer": answer})})


def _object(properties: JsonObject, required: list[str]) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _begins(text: str, at: int, is_bound: bool) -> int:
    calls = match_tokens(_CALLS, text, at)
    if calls >= 0 or not is_bound:
        return calls
    answer = match_tokens(_ANSWER, text, at)
    return answer if answer >= 0 else max(calls, answer) if MAYBE not in (calls, answer) else MAYBE


def _read(source: TextReader, answer: ParsedAnswer) -> TextParser[None]:
    slots: list[int] = []
    has_spoken = False

    def member(key: str, source: TextReader) -> TextParser[bool]:
        nonlocal has_spoken
        if key == "tool_calls":
            return (yield from _calls(source, answer, slots))
        if key == "answer":
            has_spoken = True
            return (yield from _words(source, answer))
        return (yield from json_value(source, lambda _: None))

    if (yield from read_members(source, member)):
        return
    remaining = yield from read_rest(source)
    if not slots and not has_spoken:
        slots.append(answer.begin(""))
        answer.add_arguments(slots[0], remaining)
    answer.invalidate(slots, "the object that holds it was not closed")


def _calls(source: TextReader, answer: ParsedAnswer, slots: list[int]) -> TextParser[bool]:
    char = yield from next_char(source)
    if char != "[":
        return char == "{" and (yield from _call(source, answer, slots))
    source.at += 1
    while True:
        char = yield from next_char(source)
        if char == "]":
            source.at += 1
            return True
        if char == ",":
            source.at += 1
        elif char != "{" or not (yield from _call(source, answer, slots)):
            return False


def _call(source: TextReader, answer: ParsedAnswer, slots: list[int]) -> TextParser[bool]:
    call = JsonCall(answer)
    whole = yield from call.read(source)
    slots.append(call.slot)
    return whole


def _plain(text: str) -> str:
    """Decode the inside of a JSON string; an invalid escape is kept as it is."""

    def decode_escape(found: re.Match[str]) -> str:
        plain = unquoted(f'"{found[0]}"')
        return found[0] if plain.startswith('"') and found[0] != '\\"' else plain

    return _ONE.sub(decode_escape, text) if "\\" in text else text


def _words(source: TextReader, answer: ParsedAnswer) -> TextParser[bool]:
    """Parse an answer in text; one that follows a schema is JSON itself, and stays unchanged."""
    char = yield from next_char(source)
    if char != '"':
        return (yield from json_value(source, answer.add_text))
    source.at += 1
    while True:
        match = _WHOLE.match(source.text, source.at)
        assert match is not None
        end = match.end()
        is_last = source.text[end : end + 1] == '"'
        half = None if is_last else _HALF_PAIR.search(source.text, source.at, end)
        answer.add_text(_plain(source.take(half.start() if half is not None else end)))
        if is_last:
            source.at += 1
            return True
        if not (yield from wait_for_more(source)):
            return False
