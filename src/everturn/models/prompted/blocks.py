"""The paradigm `blocks`: one argument per line, and a body between delimiters for whatever is long.

    === call write_file ===
    path = "notes.txt"
    content <<END
    any text, as it is
    END
    === end ===

Nothing in a body is escaped, which is what large code wants: the model chooses a word that does not stand on a line of
its own in there. What goes out is JSON, as from any other model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from everturn.core.canonical import canonical, clean, parse_object
from everturn.core.history import as_object
from everturn.core.requests import RequestCall
from everturn.models.prompted.answer import MAYBE, NO, Answer, Heard, follows
from everturn.models.prompted.grammar import Grammar, quoted
from everturn.models.prompted.paradigm import Offer, example_arguments, words_then_calls
from everturn.models.prompted.source import Reading, Source, json_value, more, next_sign, rest, unquoted

OPEN, END = "=== call ", "=== end ==="
LONG = 80  # characters of a text that fit on a line
BLANKS = 64  # that may stand behind the word that ends a body
HEAD = 256  # characters in which a name, of a tool or of an argument, must end

_HEADER = re.compile(r'=== call[ \t]+("(?:[^"\\\n]|\\.)*"|[^\s"=]+)[ \t]*===[ \t]*\r?\n')
_HALF_HEADER = re.compile(r'=== call(?:[ \t]+(?:"|[^\s"=]++[ \t]*+=*+[ \t\r]*)?)?(?:(?<=").*)?\Z')
_ARGUMENT = re.compile(r'[ \t]*("(?:[^"\\\n]|\\.)*"|[^\s"=:<,]+)[ \t]*(?:(<<)[ \t]*(\S+)[ \t]*\r?\n|[=:][ \t]*(?=\S))')


class Blocks:
    """Calls in delimited blocks."""

    name = "blocks"
    binds_answers = False

    def rules(self, offer: Offer) -> str:
        """How to write a call."""
        tool = offer.callable[0]
        return (
            "To call a tool, write a block, beginning on a line of its own, not in a code fence:\n"
            f"{_written(tool.name, example_arguments(tool))}\n"
            "An argument stands on its line as JSON: name = value. A long text, such as code, stands as it is, without "
            "escapes, between a line `name <<END` and a line that holds only END (choose another word if the text has "
            f"such a line). {END} ends the call. "
            f"{'' if offer.is_single else 'For several calls, write several blocks. '}Then stop."
        )

    def write(self, calls: Sequence[RequestCall]) -> str:
        """Calls as the model would have written them."""
        return "\n".join(_written(call.name, parse_object(as_object(call.arguments)) or {}) for call in calls)

    def tell(self, words: str, calls: Sequence[RequestCall], offer: Offer) -> str:
        """An answer as the model would have written it."""
        return words_then_calls(words, self.write(calls) if calls else "")

    def answer(self, offer: Offer) -> Answer:
        """A reader for one answer."""
        return Answer(_begins, _read, offer.forbids)

    def bind(self, offer: Offer) -> dict[str, Any]:
        """A grammar: lines of text, then blocks."""
        grammar = Grammar()
        calls: list[str] = []
        for tool in offer.callable:
            members = grammar.members(tool.schema, _argument_rule)
            arguments = " ".join(rule if must_be else f"({rule})?" for rule, must_be in members)
            calls.append(f"{quoted(f'{OPEN}{_key(tool.name)} ===' + chr(10))} {arguments} {quoted(END)}")
        return {"grammar": grammar.answer(calls, "===", offer)}


def _argument_rule(name: str, rule: str, is_text: bool) -> str:
    line = f"{quoted(f'{_key(name)} = ')} {rule} {quoted(chr(10))}"
    body = rf'{quoted(f"{_key(name)} <<END{chr(10)}")} ([^\n]* "\n")* "END\n"'
    return f"({line} | {body})" if is_text else f"({line})"


def _key(name: str) -> str:
    """A name as it can be read again: in quotes where it is none that anybody would choose."""
    return name if re.fullmatch(r'[^\s"=:<,]+', name) else canonical(name)


def _written(name: str, arguments: dict[str, Any]) -> str:
    lines = [f"{OPEN}{_key(name)} ==="]
    for key, value in arguments.items():
        if isinstance(value, str) and ("\n" in value or len(value) > LONG):
            word, taken = "END", {line.rstrip(" \t\r") for line in value.split("\n")}
            while word in taken:
                word += "X"
            lines += [f"{_key(key)} <<{word}", value, word]
        else:
            lines.append(f"{_key(key)} = {canonical(value)}")
    return "\n".join([*lines, END])


def _begins(text: str, at: int) -> int:
    found = follows((OPEN.rstrip(),), text, at)
    if found < 0:
        return found
    header = _HEADER.match(text, at)
    if header is not None:
        return header.end()
    return MAYBE if text.find("\n", at) < 0 and _HALF_HEADER.match(text, at) else NO


def _read(source: Source, heard: Heard) -> Reading[None]:
    header = _HEADER.match(source.text, source.at)
    assert header is not None
    source.at = header.end()
    slot = heard.begin(unquoted(header[1]))
    heard.grow(slot, "{")
    why = f"{END} is missing"
    is_first = True
    while True:
        sign = yield from next_sign(source)
        if sign == "=":
            while not source.is_over and END.startswith(source.text[source.at :]):
                if source.text.startswith(END, source.at):
                    break
                yield from more(source)
            if source.text.startswith(END, source.at):
                source.at += len(END)
                heard.grow(slot, "}")
                return
        if sign == "," and not is_first:  # a habit from elsewhere
            source.at += 1
            continue
        if not sign or not (yield from _argument(source, partial(heard.grow, slot), "" if is_first else ", ")):
            break
        is_first = False
    heard.grow(slot, (yield from rest(source)))
    heard.spoil([slot], why)


def _argument(source: Source, grow: Callable[[str], None], comma: str) -> Reading[bool]:
    """One argument, as a member of the object that is written."""
    while (found := _ARGUMENT.match(source.text, source.at, source.at + HEAD)) is None:
        if len(source.text) - source.at >= HEAD or not (yield from more(source)):
            return False
    key, body, word = clean(unquoted(found[1])), found[2], found[3]
    source.at = found.end()
    grow(f"{comma}{canonical(key)}: ")
    if body:
        return (yield from _body(source, word, grow))
    if source.text[source.at] in '{["':
        return (yield from json_value(source, grow))
    line = yield from _up_to_line_end(source)
    grow(line if _is_json(line) else canonical(clean(line)))
    return True


def _up_to_line_end(source: Source) -> Reading[str]:
    pieces: list[str] = []
    while True:
        end = source.text.find("\n", source.at)
        pieces.append(source.take(end if end >= 0 else len(source.text)))
        if end >= 0 or not (yield from more(source)):
            return "".join(pieces).strip()


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda word: _no_number(word))
    except ValueError:
        return False
    return True


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def _body(source: Source, word: str, grow: Callable[[str], None]) -> Reading[bool]:
    """Lines as they are, up to one that holds only the word; False if it never comes."""
    ending = re.compile(rf"^{re.escape(word)}[ \t\r]{{0,{BLANKS}}}$", re.MULTILINE)
    before = ""  # the end of the line before, which is not part of the text when the word follows
    grow('"')
    while (yield from _whole_line(source, word)):
        end = source.text.rfind("\n", source.at)
        end = end if end >= 0 else len(source.text)
        found = ending.search(source.text, source.at, end)
        if found is not None:
            lines = source.take(found.start())
            grow(_escaped(before + lines[:-1] if lines else "") + '"')
            source.at = found.end()
            return True
        grow(_escaped(before + source.take(end)))
        while source.at == len(source.text) and (yield from more(source)):  # a line that goes on, and is not the word
            end = source.text.find("\n")
            grow(_escaped(source.take(end if end >= 0 else len(source.text))))
        source.at, before = source.at + 1, "\n"
    return False


def _whole_line(source: Source, word: str) -> Reading[bool]:
    """Wait until it is known whether the line that begins here is the word; False if there is none."""
    while True:
        end = source.text.find("\n", source.at)
        if end >= 0 or not _may_end(word, source.text[source.at :]):
            return True
        if not (yield from more(source)):
            return source.at < len(source.text)


def _may_end(word: str, line: str) -> bool:
    return len(line) <= len(word) + BLANKS and (word.startswith(line) or line.rstrip(" \t\r") == word)


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
