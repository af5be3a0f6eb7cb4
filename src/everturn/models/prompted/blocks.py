"""The tool format `blocks`: one argument per line, and long text between delimiters.

    === call write_file ===
    path = "notes.txt"
    content <<END
    any text, as it is
    END
    === end ===

Nothing in a body is escaped, which suits long code: the model chooses a delimiter that is not a line of the text. The
chunks have JSON arguments, as from any other model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from everturn.core.canonical_json import encode_canonical, parse_object, replace_surrogates
from everturn.core.history import arguments_as_object
from everturn.core.requests import RequestCall
from everturn.models.prompted.grammar import Grammar, quoted
from everturn.models.prompted.response import MAYBE, NO, AnswerParser, ParsedAnswer, match_tokens
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

OPEN, END = "=== call ", "=== end ==="
LONG = 80  # characters of a text that is written on one line
BLANKS = 64  # whitespace that may follow the delimiter of a body
HEAD = 256  # maximum length of the name of a tool or an argument

_HEADER = re.compile(r'=== call[ \t]+("(?:[^"\\\n]|\\.)*"|[^\s"=]+)[ \t]*===[ \t]*\r?\n')
_HALF_HEADER = re.compile(r'=== call(?:[ \t]+(?:"|[^\s"=]++[ \t]*+=*+[ \t\r]*)?)?(?:(?<=").*)?\Z')
_ARGUMENT = re.compile(r'[ \t]*("(?:[^"\\\n]|\\.)*"|[^\s"=:<,]+)[ \t]*(?:(<<)[ \t]*(\S+)[ \t]*\r?\n|[=:][ \t]*(?=\S))')


class BlocksFormat:
    """Calls in delimited blocks."""

    name = "blocks"
    constrains_answers = False

    def rules(self, offer: OfferedTools) -> str:
        """Return the instructions for writing a call."""
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
        """Return calls as the model would have written them."""
        return "\n".join(_written(call.name, parse_object(arguments_as_object(call.arguments)) or {}) for call in calls)

    def write_answer(self, words: str, calls: Sequence[RequestCall], offer: OfferedTools) -> str:
        """Return an answer as the model would have written it."""
        return join_text_and_calls(words, self.write(calls) if calls else "")

    def answer(self, offer: OfferedTools) -> AnswerParser:
        """Return a parser for one answer."""
        return AnswerParser(_begins, _read, offer.forbids)

    def constrain(self, offer: OfferedTools) -> dict[str, Any]:
        """Return a grammar: lines of text, then blocks."""
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
    """Return a name as it can be parsed again: in quotes if it has special characters."""
    return name if re.fullmatch(r'[^\s"=:<,]+', name) else encode_canonical(name)


def _written(name: str, arguments: dict[str, Any]) -> str:
    lines = [f"{OPEN}{_key(name)} ==="]
    for key, value in arguments.items():
        if isinstance(value, str) and ("\n" in value or len(value) > LONG):
            delimiter, taken = "END", {line.rstrip(" \t\r") for line in value.split("\n")}
            while delimiter in taken:
                delimiter += "X"
            lines += [f"{_key(key)} <<{delimiter}", value, delimiter]
        else:
            lines.append(f"{_key(key)} = {encode_canonical(value)}")
    return "\n".join([*lines, END])


def _begins(text: str, at: int) -> int:
    end = match_tokens((OPEN.rstrip(),), text, at)
    if end < 0:
        return end
    header = _HEADER.match(text, at)
    if header is not None:
        return header.end()
    return MAYBE if text.find("\n", at) < 0 and _HALF_HEADER.match(text, at) else NO


def _read(source: TextReader, answer: ParsedAnswer) -> TextParser[None]:
    header = _HEADER.match(source.text, source.at)
    assert header is not None
    source.at = header.end()
    slot = answer.begin(unquoted(header[1]))
    answer.add_arguments(slot, "{")
    reason = f"{END} is missing"
    is_first = True
    while True:
        char = yield from next_char(source)
        if char == "=":
            while not source.is_over and END.startswith(source.text[source.at :]):
                if source.text.startswith(END, source.at):
                    break
                yield from wait_for_more(source)
            if source.text.startswith(END, source.at):
                source.at += len(END)
                answer.add_arguments(slot, "}")
                return
        if char == "," and not is_first:  # a habit from other formats
            source.at += 1
            continue
        if not char or not (
            yield from _argument(source, partial(answer.add_arguments, slot), "" if is_first else ", ")
        ):
            break
        is_first = False
    answer.add_arguments(slot, (yield from read_rest(source)))
    answer.invalidate([slot], reason)


def _argument(source: TextReader, grow: Callable[[str], None], comma: str) -> TextParser[bool]:
    """Parse one argument, and emit it as a member of the JSON object."""
    while (match := _ARGUMENT.match(source.text, source.at, source.at + HEAD)) is None:
        if len(source.text) - source.at >= HEAD or not (yield from wait_for_more(source)):
            return False
    key, body, word = replace_surrogates(unquoted(match[1])), match[2], match[3]
    source.at = match.end()
    grow(f"{comma}{encode_canonical(key)}: ")
    if body:
        return (yield from _body(source, word, grow))
    if source.text[source.at] in '{["':
        return (yield from json_value(source, grow))
    line = yield from _up_to_line_end(source)
    grow(line if _is_json(line) else encode_canonical(replace_surrogates(line)))
    return True


def _up_to_line_end(source: TextReader) -> TextParser[str]:
    pieces: list[str] = []
    while True:
        end = source.text.find("\n", source.at)
        pieces.append(source.take(end if end >= 0 else len(source.text)))
        if end >= 0 or not (yield from wait_for_more(source)):
            return "".join(pieces).strip()


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda word: _no_number(word))
    except ValueError:
        return False
    return True


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _body(source: TextReader, word: str, grow: Callable[[str], None]) -> TextParser[bool]:
    """Parse lines up to one that is only the delimiter; False if it never comes."""
    ending = re.compile(rf"^{re.escape(word)}[ \t\r]{{0,{BLANKS}}}$", re.MULTILINE)
    before = ""  # the previous line break, which is not part of the text if the delimiter follows
    grow('"')
    while (yield from _whole_line(source, word)):
        end = source.text.rfind("\n", source.at)
        end = end if end >= 0 else len(source.text)
        match = ending.search(source.text, source.at, end)
        if match is not None:
            lines = source.take(match.start())
            grow(_escaped(before + lines[:-1] if lines else "") + '"')
            source.at = match.end()
            return True
        grow(_escaped(before + source.take(end)))
        while source.at == len(source.text) and (
            yield from wait_for_more(source)
        ):  # a line that continues, and is not the delimiter
            end = source.text.find("\n")
            grow(_escaped(source.take(end if end >= 0 else len(source.text))))
        source.at, before = source.at + 1, "\n"
    return False


def _whole_line(source: TextReader, word: str) -> TextParser[bool]:
    """Wait until it is known whether the current line is the delimiter; False at the end of the text."""
    while True:
        end = source.text.find("\n", source.at)
        if end >= 0 or not _may_end(word, source.text[source.at :]):
            return True
        if not (yield from wait_for_more(source)):
            return source.at < len(source.text)


def _may_end(word: str, line: str) -> bool:
    return len(line) <= len(word) + BLANKS and (word.startswith(line) or line.rstrip(" \t\r") == word)


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
