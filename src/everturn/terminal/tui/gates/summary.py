"""Gate summary: a gate as rows: what asks and why, the exact bytes that would run, and the rule that `always` would
store. Pure.

The whole gate is in it, however long, and no part of it is interpreted as markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from everturn import api
from everturn.core.canonical_json import parse_object
from everturn.core.gates import GATE_KINDS_FOR_MEMBERS, GATE_KINDS_WITHOUT_CALL, Gate
from everturn.core.parts import FilePart
from everturn.core.state import limit_of_gate
from everturn.core.tenants.accounts import Role, is_at_least
from everturn.localization import format_text, load_group
from everturn.terminal.text.visible_text import count_invisible, count_invisible_in, escape_invisible, format_arguments
from everturn.terminal.tui.gates.confusables import find_lookalikes, has_mixed_direction
from everturn.terminal.tui.gates.diff import diff_rows, diff_texts, edit_texts, is_diff, language_of, parse_diff
from everturn.terminal.tui.gates.risks import find_risks
from everturn.terminal.tui.gates.rows import Row, label_rows, mark_escapes, message_rows, text_rows
from everturn.terminal.tui.texts.gates import ZH, GateTexts
from everturn.tools.tool_files import describe_origin

MAX_NAME_WIDTH: Final = 20  # columns that the names of arguments may take
BLANK: Final[Row] = ()
TRANSLATED_REASONS: Final = (
    (r"(\S+) always requires approval", "{} 每次都需要审批"),
    (r"no rule covers this call of (\S+)", "没有规则提到 {} 的这次调用"),
    (r"its result needs review", "结果须先由人审阅"),
    (r"a person runs this tool and enters the result", "此工具由人执行，并填写结果"),  # noqa: RUF001 - a Chinese comma
    (r"it failed, and the error needs review", "调用失败，须先由人审阅"),  # noqa: RUF001 - a Chinese comma
    (r"the same calls were repeated for the third time(.*)", "相同的调用已是第三次{}"),
)

USUAL_REASON: Final = "no rule covers this call of {}"
BUILT_IN: Final = ("files:", "code:")  # origins of our own tools, which need no explanation
FILE_TOOLS: Final = {
    "edit_file": {"path", "old_text", "new_text"},
    "write_file": {"path", "content"},
}  # the arguments that their diff shows


class GateSummary(Struct, frozen=True):
    """A gate as a person sees it, with what they have edited so far."""

    view: api.GateView
    tool: api.ToolView | None = None  # None: not loaded, or no such tool
    is_known: bool = False  # whether the tools were loaded
    here: str = ""  # the session on the screen
    is_below: bool = False  # a sub-agent asks
    edited: str = ""  # the person's arguments, or the filled-in form
    text: str | None = None  # the result after redaction
    is_wide: bool = False
    has_others: bool = True  # other gates of its session are open

    @property
    def gate(self) -> Gate:
        """The gate."""
        return self.view.gate

    @property
    def is_redacted(self) -> bool:
        """Whether the result is redacted for this role."""
        return self.gate.kind == "result" and self.gate.output is None


def can_answer(role: Role, gate: Gate) -> bool:
    """Return whether a role may answer: members what a running tool asks and the step limit, approvers everything."""
    return is_at_least(role, "member" if gate.kind in GATE_KINDS_FOR_MEMBERS else "approver")


def gate_title(gate: Gate, texts: GateTexts) -> str:
    """Return the title of a gate: what asks, on one line."""
    text: str = texts.failed_result if gate.kind == "result" and gate.failed else getattr(texts, gate.kind)
    return text.format(escape_invisible(gate.tool))


def gate_rows(summary: GateSummary, texts: GateTexts, width: int) -> list[Row]:
    """Return the rows of a gate, without its result, which the review shows."""
    rows = _gate_rows(summary, texts, width)
    return rows[1:] if rows and rows[0] == BLANK else rows  # nothing is above the first


def _gate_rows(summary: GateSummary, texts: GateTexts, width: int) -> list[Row]:
    gate = summary.gate
    rows = list(_about(summary, texts, width))
    if gate.kind == "limit":
        return [*rows, BLANK, *message_rows(limit_text(gate, texts), width, "")]
    if gate.kind in ("question", "form"):
        rows += _text(texts.asks_this, gate.arguments or gate.why, texts, width)
        if gate.kind == "form" and summary.edited:
            rows += _text(texts.your_answer, pretty_json(summary.edited), texts, width)
        return rows
    if gate.kind == "client" and gate.why:
        rows += _text(texts.asks_this, gate.why, texts, width)
    rows += _arguments(summary, texts, width)
    if gate.kind != "result":
        rows += _hints(summary, texts, width)
        rows += _preview(summary, texts, width)
    return rows


def limit_text(gate: Gate, texts: GateTexts) -> str:
    """Return what is asked at the step limit."""
    return format_text(texts.limit_about, limit=limit_of_gate(gate))


def _about(summary: GateSummary, texts: GateTexts, width: int) -> Iterator[Row]:
    gate, facts = summary.gate, list[tuple[str, str]]()
    is_usual = gate.kind == "call" and gate.why == USUAL_REASON.format(gate.tool)
    reasons = {"egress": texts.egress_why, "client": texts.client_why, "form": "", "question": "", "limit": ""}
    if (reason := reasons.get(gate.kind, gate.why)) and not is_usual:
        facts.append((texts.because, reason if gate.kind in reasons else translate_reason(reason, texts)))
    if gate.kind == "form":
        facts.append(
            (texts.told, escape_invisible(describe_origin(summary.tool.origin) if summary.tool else gate.tool))
        )
    elif (
        summary.tool is not None
        and gate.kind not in GATE_KINDS_WITHOUT_CALL
        and not summary.tool.origin.startswith(BUILT_IN)
    ):
        tool = summary.tool
        effects = texts.read_only if tool.read_only else texts.idempotent if tool.idempotent else texts.at_most_once
        facts.append((texts.origin, f"{escape_invisible(describe_origin(tool.origin))} · {effects}"))
    title = escape_invisible(" ".join(summary.view.title.split()))
    if summary.view.session != summary.here and (summary.here or title):
        facts.append((texts.where, title or escape_invisible(summary.view.session)))
    if summary.is_below:
        facts.append(("", texts.below))
    pad = max((_width(head) for head, _ in facts), default=0) + 2
    for head, text in facts:
        yield from label_rows(head, text, width, pad)
    if (
        summary.tool is None
        and summary.is_known
        and gate.kind not in (*GATE_KINDS_WITHOUT_CALL, "form", "result", "client")
    ):
        yield from message_rows(texts.no_tool, width, "bad", "!")
    if claim := summary.view.claim:
        yield from message_rows(texts.claimed.format(escape_invisible(claim.by.split("~")[0])), width, "warn", "!")


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def translate_reason(reason: str, texts: GateTexts) -> str:
    """Return why the server asks; translated if it is one of the usual reasons."""
    for pattern, text in TRANSLATED_REASONS if texts is ZH else ():
        if match := re.fullmatch(pattern, reason, re.DOTALL):
            return escape_invisible(text.format(*match.groups()))
    return escape_invisible(reason)


def _arguments(summary: GateSummary, texts: GateTexts, width: int) -> Iterator[Row]:
    is_result = summary.gate.kind == "result"
    text = summary.edited or summary.gate.arguments
    is_call = summary.gate.kind not in GATE_KINDS_WITHOUT_CALL
    rows = format_arguments(text, summary.tool.schema if summary.tool is not None and is_call else None)
    parsed = parse_object(text)
    count = count_invisible_in(text if parsed is None else parsed)
    if has_diff_only(summary):  # the diff shows the same texts, and the file
        yield from confusable_rows(count, "\n".join(_texts(parsed)), texts, width)
        return
    yield BLANK
    if not rows:
        yield from message_rows(texts.ran_plain if is_result else texts.nothing, width, "head")
        return
    head = texts.ran_with if is_result else texts.edited if summary.edited else texts.exactly
    yield from message_rows(head, width, "head")
    pad = min(max(_width(name) for name, _ in rows), MAX_NAME_WIDTH) + 2
    for name, lines in rows:
        yield from text_rows(lines, width, name, pad, marks=count > 0)
    yield from confusable_rows(count, "\n".join(_texts(text if parsed is None else parsed)), texts, width)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():  # pyright: ignore[reportUnknownVariableType] - JSON
            yield from (*_texts(name), *_texts(item))
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType] - JSON
            yield from _texts(item)


def confusable_rows(count: int, text: str, texts: GateTexts, width: int) -> Iterator[Row]:
    """Return warnings about invisible, lookalike or bidirectional characters of a text."""
    if count:
        yield from message_rows(format_text(texts.hidden, n=count), width, "bad", "!")
    for word in find_lookalikes(text):
        line: str = getattr(texts, word.why)
        yield from message_rows(line.format(f"“{escape_invisible(word.word)}”"), width, "warn", "!")
    if has_mixed_direction(text):
        yield from message_rows(texts.two_ways, width, "warn", "!")


def _text(head: str, text: str, texts: GateTexts, width: int) -> Iterator[Row]:
    count = count_invisible(text)
    yield BLANK
    yield from message_rows(head, width, "head")
    yield from text_rows([escape_invisible(line) for line in text.split("\n")], width, marks=count > 0)
    yield from confusable_rows(count, text, texts, width)


def pretty_json(answer: str) -> str:
    """Return an answer as indented JSON, as it is sent."""
    return json.dumps(json.loads(answer), ensure_ascii=False, indent=2)


def _hints(summary: GateSummary, texts: GateTexts, width: int) -> Iterator[Row]:
    risk_words = load_group("risks", "zh" if texts is ZH else "en")
    parsed = parse_object(summary.edited or summary.gate.arguments)
    hints = find_risks(summary.gate.tool, parsed) if parsed is not None else []
    if hints:
        yield BLANK
    for hint in hints:
        excerpt = escape_invisible(hint.where if hint.code == "lines" else hint.matched)
        style, sign = ("bad", "‼") if hint.level == "high" else ("warn", "!")
        yield from message_rows(f"{risk_words[hint.level]}: “{excerpt}” {risk_words[hint.code]}", width, style, sign)
    if hints:
        yield from message_rows(risk_words["none"], width, "dim", " ")


def _preview(summary: GateSummary, texts: GateTexts, width: int) -> Iterator[Row]:
    preview = summary.gate.preview
    edit = edit_texts(parse_object(summary.edited or summary.gate.arguments)) if not preview else None
    if not preview and edit is None:
        return
    yield BLANK
    if preview and summary.edited:
        yield from message_rows(texts.preview_edited, width, "bad", "!")
        return
    path = str((parse_object(summary.gate.arguments) or {}).get("path", ""))
    language = language_of(path)
    if has_diff_only(summary):
        yield from text_rows([escape_invisible(path)], width, style="head", marks=count_invisible(path) > 0)
        lines = [line for line in parse_diff(preview) if line[0] != "h"]
        yield from diff_rows(lines, width, summary.is_wide, language)
        return
    yield from message_rows(texts.preview, width, "head")
    if edit is not None:
        yield from diff_rows(diff_texts(*edit), width, summary.is_wide, language)
    elif is_diff(preview):
        yield from diff_rows(list(parse_diff(preview)), width, summary.is_wide, language)
    else:
        lines = [escape_invisible(line) for line in preview.removesuffix("\n").split("\n")]
        yield from text_rows(lines, width, marks=count_invisible(preview) > 0)
    if preview:
        yield from confusable_rows(count_invisible(preview), preview, texts, width)


def has_diff_only(summary: GateSummary) -> bool:
    """Whether the diff shows everything that a call of a file tool would do, so that its arguments need not be repeated."""
    gate, arguments = summary.gate, parse_object(summary.gate.arguments)
    if summary.edited or gate.kind != "call" or arguments is None or not gate.preview.startswith("--- "):
        return False
    return gate.tool in FILE_TOOLS and arguments.keys() == FILE_TOOLS[gate.tool]


def result_rows(summary: GateSummary, texts: GateTexts, width: int) -> list[Row]:
    """Return notes on a result, besides its text."""
    output, rows = summary.gate.output, list[Row]()
    if output is None:
        return list(message_rows(texts.redacted, width, "warn", "!"))
    rows += confusable_rows(count_invisible(output.text), output.text, texts, width)
    notes = [(output.untrusted, texts.untrusted), (bool(output.private), texts.private)]
    notes.append((bool(output.blob) and summary.text is None, texts.excerpt))
    notes.append((summary.text is not None and bool(output.attachments or output.blob or output.metadata), texts.drops))
    for applies, text in notes:
        rows += message_rows(text, width, "warn", "!") if applies else ()
    for file in output.attachments if summary.text is None else ():
        rows += message_rows(texts.attached.format(_file(file)), width, "", "+")
    return rows


def _file(file: FilePart) -> str:
    return f"{escape_invisible(file.name) or '?'} ({escape_invisible(file.media_type)}, {file.size:,} bytes)"


def editable_json(value: Any) -> str:
    r"""Return JSON for reading and editing, with invisible characters escaped as `\u202e`: exactly the same value."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(char if char == "\n" or not count_invisible(char) else json.dumps(char)[1:-1] for char in text)


__all__ = [
    "GateSummary",
    "can_answer",
    "confusable_rows",
    "editable_json",
    "gate_rows",
    "gate_title",
    "limit_text",
    "mark_escapes",
    "pretty_json",
    "result_rows",
]
