"""What a person reads at a gate: exactly what would run, however hostile, and in two languages. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from everturn import api
from everturn.core.gates import Gate, GateKind
from everturn.core.parts import Output
from everturn.core.rules.policy import Rule
from everturn.terminal.tui.gates.answer_keys import keys_for_gate
from everturn.terminal.tui.gates.confusables import find_lookalikes, has_mixed_direction
from everturn.terminal.tui.gates.diff import diff_rows, diff_texts, is_diff, parse_diff
from everturn.terminal.tui.gates.panels import DenyPanel
from everturn.terminal.tui.gates.redaction import MARK, Redaction
from everturn.terminal.tui.gates.rows import rows_text
from everturn.terminal.tui.gates.summary import (
    GateSummary,
    can_answer,
    editable_json,
    gate_rows,
    gate_title,
    result_rows,
)
from everturn.terminal.tui.texts import gates, inbox, mcp_servers, permissions

EVIL = (
    "[bold red]x[/] [/nope] [@click=app.quit]go[/] \x1b[2J\x1b]8;;http://evil\x07 \u202eabc\u202c \u200b\r\x00\x9b31m"
)
KINDS: tuple[GateKind, ...] = ("call", "egress", "loop", "manual", "result", "question", "form", "client", "limit")
UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f]")


def make_summary(arguments: dict[str, Any] | str = "", **more: Any) -> GateSummary:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    fields: dict[str, Any] = {"tool": "send_mail", "kind": "call"} | more
    gate = Gate("gate", "turn", "call", arguments=text or "{}", hash="h", **fields)
    return GateSummary(api.GateView(session="s", title="", opened=0.0, gate=gate))


def shown(summary: GateSummary, width: int = 76) -> str:
    rows = gate_rows(summary, gates.EN, width)
    for row in rows:
        assert sum(cell_len(text) for text, _ in row) <= width, row
    return rows_text(rows)


def joined(text: str) -> str:
    """Without breaks, bars and margins."""
    return re.sub(r"\n\s*(│ )?", "", text)


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_texts_in_every_field_are_harmless_and_all_there(kind: GateKind) -> None:
    gate = Gate(
        "gate", "turn", "call", EVIL, json.dumps({EVIL: EVIL, "list": [EVIL] * 3}), "h", kind=kind, why=EVIL, preview=f"--- {EVIL}\n+++ b\n@@ -1 @@\n+{EVIL}",
        offers=(Rule(EVIL, "allow", {EVIL: EVIL}),), output=Output(EVIL), form='{"type": "string"}',
    )  # fmt: skip
    view = api.GateView(session="s", title=EVIL, opened=0.0, gate=gate)
    tool = api.ToolView(
        name=EVIL, description=EVIL, schema={}, origin=EVIL, approval=EVIL, read_only=False, idempotent=False
    )
    summary = GateSummary(view, tool, is_known=True, here="other")
    for words in (gates.EN, gates.ZH):
        for width in (30, 76, 150):
            text = rows_text([*gate_rows(summary, words, width), *result_rows(summary, words, width)]) + gate_title(
                gate, words
            )
            assert not UNSAFE.search(text.replace("\n", ""))
    assert kind == "limit" or "[/nope]" in shown(summary)  # its text is ours
    assert kind in ("question", "limit") or r"\x1b[2J" in gate_title(gate, gates.EN)


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8), st.text(max_size=60) | st.integers() | st.lists(st.text(max_size=9))
    )
)
@settings(max_examples=30, deadline=None)
def test_no_argument_is_cut_and_none_does_anything(arguments: dict[str, Any]) -> None:
    summary = make_summary(arguments)
    text = joined(shown(summary)).replace(" ", "")
    assert not UNSAFE.search(text)
    for value in arguments.values():
        if isinstance(value, str) and re.fullmatch(r"[a-z]{3,}", value) and value not in ("null", "true", "false"):
            assert value in text


def test_a_hundred_kilobytes_are_shown_whole() -> None:
    body = "".join(chr(97 + at % 26) for at in range(100_000))
    text = joined(shown(make_summary({"body": body})))
    assert body in re.sub(r"\s", "", text)


def test_hidden_characters_are_counted_and_written_out() -> None:
    text = shown(make_summary({"subject": "safe\u202egnp.exe\u202c", "to": "\u0430nn@example.org"}))
    assert r"safe\u202egnp.exe\u202c" in text
    assert "2 invisible characters" in text
    assert "“\u0430nn” mixes letters from several alphabets" in text
    assert "invisible character" not in shown(make_summary({"subject": "plain\nlines"}))


def test_words_that_look_like_others() -> None:
    assert [lookalike.why for lookalike in find_lookalikes("p\u0430ypal")] == ["mixed"]
    assert [lookalike.why for lookalike in find_lookalikes("go to \u0441\u043e\u0440\u0435")] == ["foreign"]
    assert [lookalike.why for lookalike in find_lookalikes("\uff41\uff42\uff43")] == ["styled"]
    assert find_lookalikes("plain 中文 Ünïcode Привет мир") == []
    assert has_mixed_direction("rm \u05d0\u05d1 file")
    assert not has_mixed_direction("\u05d0\u05d1\nabc")


def test_a_diff_has_signs_and_is_whole_in_one_column_and_in_two() -> None:
    text = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n same\n-old line\n+new line\n+more\n tail\n-gone"
    assert is_diff(text)
    assert not is_diff("- a list\n- of things")
    unified = rows_text(diff_rows(list(parse_diff(text)), 60, is_wide=False))
    assert "− old line" in unified
    assert "+ new line" in unified
    two = rows_text(diff_rows(list(parse_diff(text)), 120, is_wide=True)).split("\n")
    assert any("− old line" in line and "+ new line" in line for line in two)
    assert any("− gone" in line for line in two)
    for piece in ("same", "+ more", "tail"):
        assert any(piece in line for line in two)
    assert diff_texts("a\nb\nc", "a\nx\nc") == [(" ", "a"), ("-", "b"), ("+", "x"), (" ", "c")]


def test_an_edit_without_a_preview_is_shown_as_what_it_changes() -> None:
    text = shown(make_summary({"old_text": "a\nb", "new_text": "a\nc", "path": "x"}, tool="edit_file"))
    assert "− b" in text
    assert "+ c" in text


def test_a_preview_says_nothing_of_arguments_that_were_changed() -> None:
    summary = make_summary({"a": 1}, preview="--- a\n+++ b\n@@ -1 +1 @@\n+SECRET PLAN")
    assert "SECRET PLAN" in shown(summary)
    changed = msgspec.structs.replace(summary, edited='{"a": 2}')
    assert "SECRET PLAN" not in shown(changed)
    assert "may do something else" in " ".join(shown(changed).split())


EDIT = {"path": "shop/price.py", "old_text": "return a - b", "new_text": "return a + b"}
DIFF = "--- a/shop/price.py\n+++ b/shop/price.py\n@@ -1,2 +1,2 @@\n def total(a, b):\n-    return a - b\n+    return a + b\n"


def test_an_edit_is_shown_as_its_file_and_its_diff_and_nothing_twice() -> None:
    text = shown(make_summary(EDIT, tool="edit_file", preview=DIFF, why="no rule covers this call of edit_file"))
    assert text.splitlines() == [
        "  shop/price.py",
        "  @@ -1,2 +1,2 @@"[2:].rjust(17),
        "    def total(a, b):",
        "  −     return a - b",
        "  +     return a + b",
    ]


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        ({**EDIT, "all": True}, {}),
        (EDIT, {"tool": "mcp_edit"}),
        (EDIT, {"preview": "with these files as they are now: x"}),
        (EDIT, {"preview": ""}),
        (EDIT, {"kind": "loop"}),
        (EDIT, {"kind": "manual"}),
    ],
)
def test_arguments_are_shown_where_the_diff_may_not_say_everything(
    arguments: dict[str, Any], more: dict[str, Any]
) -> None:
    text = shown(make_summary(arguments, **({"tool": "edit_file", "preview": DIFF} | more)))
    assert "old_text" in text
    assert "new_text" in text


def test_an_edit_with_invisible_characters_is_warned_of() -> None:
    edit = {**EDIT, "new_text": "return a \u202e+ b"}
    text = shown(make_summary(edit, tool="edit_file", preview=DIFF.replace("a + b", "a \u202e+ b")))
    assert "\\u202e" in text
    assert gates.EN.two_ways[:20] in text or "invisible" in text


def test_a_diff_has_syntax_colours_and_the_same_text() -> None:
    lines = [("-", 'x = "a"  # old'), ("+", "def f(x): return 12"), (" ", "for")]
    plain, coloured = list(diff_rows(lines, 60, False)), list(diff_rows(lines, 60, False, "py"))
    assert rows_text(plain) == rows_text(coloured)
    styles = {text.strip(): style for row in coloured for text, style in row}
    assert styles["def"] == "add code-keyword"
    assert styles["12"] == "add code-number"
    assert styles["# old"] == "del code-comment"
    assert styles["for"].strip() == "code-keyword"


def test_always_is_not_offered_for_changed_arguments() -> None:
    rules = (Rule("run", "allow", {"command": "git log"}), Rule("run", "allow", {"command": "git *"}))
    summary = make_summary({"command": "git log"}, offers=rules)
    assert ("a", gates.EN.k_always) in keys_for_gate(summary, gates.EN, may_answer=True)
    changed = msgspec.structs.replace(summary, edited='{"command": "git show"}')
    assert "a" not in dict(keys_for_gate(changed, gates.EN, may_answer=True))


def test_all_edits_are_offered_only_in_a_folder_and_only_by_a_rule_for_all() -> None:
    rules = (
        Rule("edit_file", "allow", {"path": "a.py"}, "grants"),
        Rule("edit_file", "allow", {"path": "**"}, "grants"),
    )
    summary = make_summary(offers=rules, folder="/home/ann/shop")
    assert ("A", gates.EN.k_all_edits) in keys_for_gate(summary, gates.EN, may_answer=True)
    for other in (make_summary(offers=rules[:1], folder="/home/ann/shop"), make_summary(offers=rules)):
        assert "A" not in dict(keys_for_gate(other, gates.EN, may_answer=True))


def test_each_kind_has_its_keys_and_nobody_else_has_any() -> None:
    keys = {
        kind: "".join(
            key
            for key, _ in keys_for_gate(make_summary(kind=kind, output=Output("x")), gates.EN, may_answer=True)
            if len(key) == 1
        )
        for kind in KINDS
    }
    assert keys == {
        "call": "ynNer?",
        "egress": "ynNer?",
        "loop": "ynNer?",
        "manual": "rynN?",
        "result": "yrRen?",
        "question": "yn?",
        "form": "ytn?",
        "client": "n?",
        "limit": "yn?",
    }
    assert dict(keys_for_gate(make_summary(), gates.EN, may_answer=False)).keys() == {"?", "escape"}


@given(st.text(max_size=30), st.data())
@settings(max_examples=40, deadline=None)
def test_what_is_taken_out_is_gone_and_all_else_is_as_it_was(text: str, data: st.DataObject) -> None:
    redaction = Redaction(text)
    sheet = redaction.for_screen()
    start = data.draw(st.integers(0, len(sheet.text)))
    end = data.draw(st.integers(start, len(sheet.text)))
    first, other = sheet.source(start, end)
    cut = redaction.cut_range(first, other)
    assert cut.remaining == (text[:first] + MARK + text[other:] if other > first else text)
    assert cut.previous().remaining == text
    assert not UNSAFE.search(cut.for_screen().text.replace("\n", ""))


def test_half_of_a_written_out_character_is_all_of_it() -> None:
    redaction = Redaction("a\u202eb")
    assert redaction.for_screen().text == r"a\u202eb"
    assert redaction.cut_range(*redaction.for_screen().source(3, 4)).remaining == f"a{MARK}b"
    again = Redaction("pass hunter2 and hunter2x").cut_all("hunter2")
    assert again.remaining == f"pass {MARK} and {MARK}x"
    assert again.cut_range(0, 5).remaining == f"{MARK} and {MARK}x"


@given(
    st.recursive(
        st.text(max_size=8) | st.integers(-(2**53), 2**53) | st.booleans() | st.none(),
        lambda children: st.lists(children) | st.dictionaries(st.text(), children),
        max_leaves=8,
    )
)
@settings(max_examples=30, deadline=None)
def test_what_is_edited_as_json_is_the_same_value_and_can_be_seen(value: Any) -> None:
    text = editable_json(value)
    assert json.loads(text) == value
    assert not UNSAFE.search(text.replace("\n", ""))


@pytest.mark.parametrize(
    ("area", "get_texts"),
    [
        (gates, gates.get_gate_texts),
        (inbox, inbox.get_inbox_texts),
        (permissions, permissions.get_permissions_texts),
        (mcp_servers, mcp_servers.get_mcp_texts),
    ],
)
def test_both_languages_say_the_same_things(area: Any, get_texts: Callable[[str], object]) -> None:
    en, zh = msgspec.structs.asdict(area.EN), msgspec.structs.asdict(area.ZH)
    for name, text in en.items():
        if isinstance(text, str):
            assert text.count("{}") == zh[name].count("{}"), name
            assert not text or zh[name] != text, name
    assert get_texts("zh") is area.ZH
    assert get_texts("en") is area.EN


def test_chinese_heads_are_as_wide_as_they_look_and_usual_reasons_are_translated() -> None:
    summary = make_summary({"a": 1}, why="no rule covers this call of run")
    rows = gate_rows(summary, gates.ZH, 30)
    assert "没有规则提到run的这次调用" in re.sub(r"\s", "", rows_text(rows))
    starts = {cell_len(row[0][0]) for row in rows[:2]}
    assert len(starts) == 1, "what goes on stands below what begins"
    assert all(sum(cell_len(text) for text, _ in row) <= 30 for row in rows)


@pytest.mark.parametrize("kind", ["question", "form"])
def test_a_question_is_shown_whole(kind: GateKind) -> None:
    text = "Shall it be so? " + "word " * 60 + "and not otherwise"
    assert "and not otherwise" in " ".join(shown(make_summary(text, kind=kind)).split())


@pytest.mark.parametrize(
    ("texts", "about"), [(gates.EN, "for up to 200 steps in total"), (gates.ZH, "总共最多 200 步")]
)
def test_the_step_limit_asks_with_the_number_of_steps_that_an_approval_allows(
    texts: gates.GateTexts, about: str
) -> None:
    summary = make_summary(
        {"max_steps": 200}, kind="limit", tool="step_limit", why="the step limit is reached (max_steps=100)"
    )
    text = rows_text([*gate_rows(summary, texts, 76)])
    assert about in text
    assert "step_limit" not in text + gate_title(summary.gate, texts)
    assert can_answer("member", summary.gate)
    assert not can_answer("viewer", summary.gate)


@pytest.mark.parametrize("texts", [gates.EN, gates.ZH])
def test_a_call_is_denied_and_a_result_is_withheld_also_where_the_turn_stops(texts: gates.GateTexts) -> None:
    cases: tuple[tuple[GateKind, str, str], ...] = (
        ("call", texts.k_deny, texts.k_stop),
        ("result", texts.k_withhold, texts.k_withhold_stop),
    )
    for kind, does, stops in cases:
        gate = Gate("gate", "turn", "call", "look", "{}", "h", kind=kind)
        keys = DenyPanel(gate, texts, is_for_all=False, may_all=False).keys
        assert keys[:2] == [("enter", does.rstrip(" …")), ("ctrl+t", stops)]
    assert texts.k_withhold_stop != texts.k_stop
