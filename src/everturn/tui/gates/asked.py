"""A gate → rows for a person: what asks and why, the very bytes that would run, and what `always` would store. Pure.

Everything is there, however long, and nothing of it is markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from everturn import api
from everturn.core.accounts import Role, is_at_least
from everturn.core.asking import WITHIN, Gate
from everturn.core.canonical import parse_object
from everturn.core.parts import FilePart
from everturn.terminal.exact import arguments, hidden, hidden_in, seen
from everturn.tui.gates import risk_words
from everturn.tui.gates.differing import differ, drawn, edit_of, is_diff, read
from everturn.tui.gates.oddities import is_mixed_way, lookalikes
from everturn.tui.gates.risks import hints_for
from everturn.tui.gates.rows import Row, marked, pair, say, write
from everturn.tui.words.gates import ZH, GateWords

WIDEST: Final = 20  # columns that the names of arguments may take
BLANK: Final[Row] = ()
USUAL: Final = (
    (r"(\S+) asks every time", "{} 每次都要询问"),
    (r"no rule says anything of this call of (\S+)", "没有规则提到 {} 的这次调用"),
    (r"its result is read by a person first", "结果须先由人审阅"),
    (r"a person runs this tool, and says what came of it", "此工具由人来做，并说明结果"),  # noqa: RUF001 - a Chinese comma
    (r"it failed, and that is read by a person first", "调用失败，须先由人审阅"),  # noqa: RUF001 - a Chinese comma
    (r"the same calls, over and over: for the third time(.*)", "相同的调用已是第三次{}"),
)


class Asked(Struct, frozen=True):
    """A gate as it is put to a person, with what they have made of it so far."""

    view: api.GateView
    tool: api.ToolView | None = None  # None: not known, or there is none of this name
    is_known: bool = False  # whether somebody has looked
    here: str = ""  # the session that is on the screen
    is_below: bool = False  # a sub-turn asks
    edited: str = ""  # the arguments they want instead, or what they have filled in
    text: str | None = None  # what they leave of a result
    is_wide: bool = False

    @property
    def gate(self) -> Gate:
        """What is asked."""
        return self.view.gate

    @property
    def is_veiled(self) -> bool:
        """Whether a result waits that is not for this role."""
        return self.gate.kind == "result" and self.gate.output is None


def can_answer(role: Role, gate: Gate) -> bool:
    """Whether somebody may answer: what a tool asks while it runs, members; all else, approvers."""
    return is_at_least(role, "member" if gate.kind in WITHIN else "approver")


def title_of(gate: Gate, words: GateWords) -> str:
    """What asks, on a line."""
    text: str = words.failed_result if gate.kind == "result" and gate.failed else getattr(words, gate.kind)
    return text.format(seen(gate.tool))


def rows_of(asked: Asked, words: GateWords, width: int) -> list[Row]:
    """All that there is to read of a question, but for a result, which has a sheet of its own."""
    gate = asked.gate
    rows = list(_about(asked, words, width))
    if gate.kind in ("question", "form"):
        rows += _text(words.asks_this, gate.arguments or gate.why, words, width)
        if gate.kind == "form" and asked.edited:
            rows += _text(words.your_answer, filled(asked.edited), words, width)
        return rows
    if gate.kind == "client" and gate.why:
        rows += _text(words.asks_this, gate.why, words, width)
    rows += _arguments(asked, words, width)
    if gate.kind != "result":
        rows += _hints(asked, words, width)
        rows += _preview(asked, words, width)
        rows += _offers(asked, words, width)
    return rows


def _about(asked: Asked, words: GateWords, width: int) -> Iterator[Row]:
    gate, told = asked.gate, list[tuple[str, str]]()
    whys = {"egress": words.egress_why, "client": words.client_why, "form": "", "question": ""}
    if why := whys.get(gate.kind, gate.why):
        told.append((words.because, why if gate.kind in whys else because(why, words)))
    if gate.kind == "form":
        told.append((words.told, seen(asked.tool.origin if asked.tool else gate.tool)))
    elif asked.tool is not None and gate.kind != "question":
        effects = getattr(words, f"effects_{asked.tool.effects}", seen(asked.tool.effects))
        told.append((words.origin, f"{seen(asked.tool.origin)} · {effects}"))
    title = seen(" ".join(asked.view.title.split()))
    if asked.view.session != asked.here and (asked.here or title):
        told.append((words.where, title or seen(asked.view.session)))
    if asked.is_below:
        told.append(("", words.below))
    pad = max((_wide(head) for head, _ in told), default=0) + 2
    for head, text in told:
        yield from pair(head, text, width, pad)
    if asked.tool is None and asked.is_known and gate.kind not in ("question", "form", "result", "client"):
        yield from say(words.no_tool, width, "bad", "!")
    if claim := asked.view.claim:
        yield from say(words.claimed.format(seen(claim.by.split("~")[0])), width, "warn", "!")


def _wide(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def because(why: str, words: GateWords) -> str:
    """Why the server asks; in Chinese where it is one of the usual reasons."""
    for pattern, text in USUAL if words is ZH else ():
        if found := re.fullmatch(pattern, why, re.DOTALL):
            return seen(text.format(*found.groups()))
    return seen(why)


def _arguments(asked: Asked, words: GateWords, width: int) -> Iterator[Row]:
    is_result = asked.gate.kind == "result"
    text = asked.edited or asked.gate.arguments
    found = arguments(text)
    given = parse_object(text)
    yield BLANK
    if not found:
        yield from say(words.ran_plain if is_result else words.nothing, width, "head")
        return
    head = words.ran_with if is_result else words.edited if asked.edited else words.exactly
    yield from say(head, width, "head")
    count = hidden_in(text if given is None else given)
    pad = min(max(_wide(name) for name, _ in found), WIDEST) + 2
    for name, lines in found:
        yield from write(lines, width, name, pad, marks=count > 0)
    yield from odd(count, "\n".join(_texts(text if given is None else given)), words, width)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():  # pyright: ignore[reportUnknownVariableType] - JSON
            yield from (*_texts(name), *_texts(item))
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType] - JSON
            yield from _texts(item)


def odd(count: int, text: str, words: GateWords, width: int) -> Iterator[Row]:
    """What a person would not see in a text, or would take for something else."""
    if count:
        yield from say(words.hidden_one if count == 1 else words.hidden_many.format(count), width, "bad", "!")
    for one in lookalikes(text):
        line: str = getattr(words, one.why)
        yield from say(line.format(f"“{seen(one.word)}”"), width, "warn", "!")
    if is_mixed_way(text):
        yield from say(words.two_ways, width, "warn", "!")


def _text(head: str, text: str, words: GateWords, width: int) -> Iterator[Row]:
    count = hidden(text)
    yield BLANK
    yield from say(head, width, "head")
    yield from write([seen(line) for line in text.split("\n")], width, marks=count > 0)
    yield from odd(count, text, words, width)


def filled(answer: str) -> str:
    """What was filled in, as the JSON that is sent."""
    return json.dumps(json.loads(answer), ensure_ascii=False, indent=2)


def _hints(asked: Asked, words: GateWords, width: int) -> Iterator[Row]:
    told = risk_words.ZH if words is ZH else risk_words.EN
    given = parse_object(asked.edited or asked.gate.arguments)
    hints = hints_for(asked.gate.tool, given) if given is not None else []
    if hints:
        yield BLANK
    for hint in hints:
        found = seen(hint.where if hint.code == "lines" else hint.found)
        style, sign = ("bad", "‼") if hint.level == "high" else ("warn", "!")
        yield from say(f"{told[hint.level]}: “{found}” {told[hint.code]}", width, style, sign)
    if hints:
        yield from say(told["none"], width, "dim", " ")


def _preview(asked: Asked, words: GateWords, width: int) -> Iterator[Row]:
    preview = asked.gate.preview
    edit = edit_of(parse_object(asked.edited or asked.gate.arguments)) if not preview else None
    if not preview and edit is None:
        return
    yield BLANK
    if preview and asked.edited:
        yield from say(words.preview_edited, width, "bad", "!")
        return
    yield from say(words.preview, width, "head")
    if edit is not None:
        yield from drawn(differ(*edit), width, asked.is_wide)
    elif is_diff(preview):
        yield from drawn(list(read(preview)), width, asked.is_wide)
    else:
        lines = [seen(line) for line in preview.removesuffix("\n").split("\n")]
        yield from write(lines, width, marks=hidden(preview) > 0)
    if preview:
        yield from odd(hidden(preview), preview, words, width)


def _offers(asked: Asked, words: GateWords, width: int) -> Iterator[Row]:
    offers = asked.gate.offers
    if not offers or asked.edited:
        return
    yield BLANK
    yield from say(words.stores_one if len(offers) == 1 else words.stores_many, width, "head")
    for number, offer in enumerate(offers, 1):
        head = f"{number}" if len(offers) > 1 else ""
        yield from write([seen(str(offer))], width, head, 3 if head else 0, marks=hidden(str(offer)) > 0)


def result_rows(asked: Asked, words: GateWords, width: int) -> list[Row]:
    """What is to be known of a result beside its text."""
    output, rows = asked.gate.output, list[Row]()
    if output is None:
        return list(say(words.veiled, width, "warn", "!"))
    rows += odd(hidden(output.text), output.text, words, width)
    notes = [(output.untrusted, words.untrusted), (bool(output.private), words.private)]
    notes.append((bool(output.blob) and asked.text is None, words.excerpt))
    notes.append((asked.text is not None and bool(output.attachments or output.blob or output.metadata), words.drops))
    for is_so, text in notes:
        rows += say(text, width, "warn", "!") if is_so else ()
    for file in output.attachments if asked.text is None else ():
        rows += say(words.attached.format(_file(file)), width, "", "+")
    return rows


def _file(file: FilePart) -> str:
    return f"{seen(file.name) or '?'} ({seen(file.media_type)}, {file.size:,} bytes)"


def written(value: Any) -> str:
    r"""JSON that can be read and edited, with all that cannot be seen in it as `\u202e`: exactly the same value."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(char if char == "\n" or not hidden(char) else json.dumps(char)[1:-1] for char in text)


__all__ = ["Asked", "can_answer", "filled", "marked", "odd", "result_rows", "rows_of", "title_of", "written"]
