"""The tool format `xml`: `<tool_code>{"name": …, "arguments": {…}}</tool_code>`.

The tags contain JSON, so that code needs no XML escapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everturn.core.canonical_json import encode_canonical
from everturn.core.history import arguments_as_object
from everturn.core.requests import RequestCall
from everturn.models.prompted.grammar import Grammar, quoted
from everturn.models.prompted.json_calls import JsonCall
from everturn.models.prompted.response import AnswerParser, ParsedAnswer, match_tokens
from everturn.models.prompted.text_reader import TextParser, TextReader, next_char, read_rest, wait_for_more
from everturn.models.prompted.tool_format import OfferedTools, example_arguments, join_text_and_calls

OPEN, CLOSE = "<tool_code>", "</tool_code>"


class XmlFormat:
    """Calls in tags."""

    name = "xml"
    constrains_answers = False

    def rules(self, offer: OfferedTools) -> str:
        """Return the instructions for writing a call."""
        tool = offer.callable[0]
        return (
            f"To call a tool, write this, beginning on a line of its own, not in a code fence:\n"
            f"{_written(tool.name, encode_canonical(example_arguments(tool)))}\n"
            f"{'' if offer.is_single else 'For several calls, write several of these. '}Then stop."
        )

    def write(self, calls: Sequence[RequestCall]) -> str:
        """Return calls as the model would have written them."""
        return "\n".join(_written(call.name, arguments_as_object(call.arguments)) for call in calls)

    def write_answer(self, words: str, calls: Sequence[RequestCall], offer: OfferedTools) -> str:
        """Return an answer as the model would have written it."""
        return join_text_and_calls(words, self.write(calls) if calls else "")

    def answer(self, offer: OfferedTools) -> AnswerParser:
        """Return a parser for one answer."""
        return AnswerParser(lambda text, at: match_tokens((OPEN,), text, at), _read, offer.forbids)

    def constrain(self, offer: OfferedTools) -> dict[str, Any]:
        """Return a grammar: lines of text, then calls."""
        grammar = Grammar()
        calls = [
            f"{quoted(OPEN + '{')} {quoted(encode_canonical('name'))} colon {grammar.literal(tool.name)} comma "
            f"{quoted(encode_canonical('arguments'))} colon {grammar.object(tool.schema)} {quoted('}' + CLOSE)}"
            for tool in offer.callable
        ]
        return {"grammar": grammar.answer(calls, OPEN, offer)}


def _written(name: str, arguments: str) -> str:
    return f'{OPEN}{{"name": {encode_canonical(name)}, "arguments": {arguments}}}{CLOSE}'


def _read(source: TextReader, answer: ParsedAnswer) -> TextParser[None]:
    source.at += len(OPEN)
    slot, reason = -1, "what stands between the tags is no JSON object"
    if (yield from next_char(source)) == "{":
        call = JsonCall(answer)
        whole = yield from call.read(source)
        slot = call.slot
        if whole:
            yield from next_char(source)
            while not source.is_over and CLOSE.startswith(source.text[source.at :]):
                yield from wait_for_more(source)
            if source.text.startswith(CLOSE, source.at):
                source.at += len(CLOSE)
                return
            reason = f"{CLOSE} is missing"
    remaining = yield from _up_to_close(source)
    if slot < 0:
        slot = answer.begin("")
    answer.add_arguments(slot, remaining)
    answer.invalidate([slot], reason)


def _up_to_close(source: TextReader) -> TextParser[str]:
    """Return the rest of a broken call: up to the next closing tag, or to the end."""
    pieces: list[str] = []
    while (end := source.text.find(CLOSE, source.at)) < 0:
        keep = max(len(source.text) - len(CLOSE) + 1, source.at)
        pieces.append(source.take(keep))
        if not (yield from wait_for_more(source)):
            return "".join(pieces) + (yield from read_rest(source))
    pieces.append(source.take(end))
    source.at += len(CLOSE)
    return "".join(pieces)
