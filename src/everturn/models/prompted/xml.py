"""The paradigm `xml`: `<tool_code>{"name": …, "arguments": {…}}</tool_code>`. JSON inside tags: code needs no escapes of XML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everturn.core.canonical import canonical
from everturn.core.history import as_object
from everturn.core.requests import RequestCall
from everturn.models.prompted.answer import Answer, Heard, follows
from everturn.models.prompted.grammar import Grammar, quoted
from everturn.models.prompted.objects import Call
from everturn.models.prompted.paradigm import Offer, example_arguments, words_then_calls
from everturn.models.prompted.source import Reading, Source, more, next_sign, rest

OPEN, CLOSE = "<tool_code>", "</tool_code>"


class Xml:
    """Calls in tags."""

    name = "xml"
    binds_answers = False

    def rules(self, offer: Offer) -> str:
        """How to write a call."""
        tool = offer.callable[0]
        return (
            f"To call a tool, write this, beginning on a line of its own, not in a code fence:\n"
            f"{_written(tool.name, canonical(example_arguments(tool)))}\n"
            f"{'' if offer.is_single else 'For several calls, write several of these. '}Then stop."
        )

    def write(self, calls: Sequence[RequestCall]) -> str:
        """Calls as the model would have written them."""
        return "\n".join(_written(call.name, as_object(call.arguments)) for call in calls)

    def tell(self, words: str, calls: Sequence[RequestCall], offer: Offer) -> str:
        """An answer as the model would have written it."""
        return words_then_calls(words, self.write(calls) if calls else "")

    def answer(self, offer: Offer) -> Answer:
        """A reader for one answer."""
        return Answer(lambda text, at: follows((OPEN,), text, at), _read, offer.forbids)

    def bind(self, offer: Offer) -> dict[str, Any]:
        """A grammar: lines of text, then calls."""
        grammar = Grammar()
        calls = [
            f"{quoted(OPEN + '{')} {quoted(canonical('name'))} colon {grammar.literal(tool.name)} comma "
            f"{quoted(canonical('arguments'))} colon {grammar.object(tool.schema)} {quoted('}' + CLOSE)}"
            for tool in offer.callable
        ]
        return {"grammar": grammar.answer(calls, OPEN, offer)}


def _written(name: str, arguments: str) -> str:
    return f'{OPEN}{{"name": {canonical(name)}, "arguments": {arguments}}}{CLOSE}'


def _read(source: Source, heard: Heard) -> Reading[None]:
    source.at += len(OPEN)
    slot, why = -1, "what stands between the tags is no JSON object"
    if (yield from next_sign(source)) == "{":
        call = Call(heard)
        whole = yield from call.read(source)
        slot = call.slot
        if whole:
            yield from next_sign(source)
            while not source.is_over and CLOSE.startswith(source.text[source.at :]):
                yield from more(source)
            if source.text.startswith(CLOSE, source.at):
                source.at += len(CLOSE)
                return
            why = f"{CLOSE} is missing"
    left = yield from _up_to_close(source)
    if slot < 0:
        slot = heard.begin("")
    heard.grow(slot, left)
    heard.spoil([slot], why)


def _up_to_close(source: Source) -> Reading[str]:
    """What is left of a broken call: up to the next tag that closes one, or to the end."""
    pieces: list[str] = []
    while (end := source.text.find(CLOSE, source.at)) < 0:
        keep = max(len(source.text) - len(CLOSE) + 1, source.at)
        pieces.append(source.take(keep))
        if not (yield from more(source)):
            return "".join(pieces) + (yield from rest(source))
    pieces.append(source.take(end))
    source.at += len(CLOSE)
    return "".join(pieces)
