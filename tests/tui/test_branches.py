"""The tree of a session as rows, versions beside each other, what was used, and what a person likes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from everturn import api
from everturn.core.messages import Message
from everturn.core.options import Spent
from everturn.core.parts import TextPart, Usage
from everturn.core.tree import MessageTree
from everturn.terminal.tui import settings
from everturn.terminal.tui.branches import branch_leaf, tree_rows
from everturn.terminal.tui.compare import branch_lines, find_versioned, mark_differences, nearest_versioned
from everturn.terminal.tui.key_bar import format_key
from everturn.terminal.tui.state import SessionState
from everturn.terminal.tui.texts import app as app_words
from everturn.terminal.tui.texts import screens as around_words
from everturn.terminal.tui.usage import usage_table


def tree_of(*rows: tuple[str, str | None, str], leaf: str) -> MessageTree:
    tree = MessageTree({}, {}, set(), leaf)
    for name, parent, text in rows:
        role = "user" if name.startswith("u") else "assistant"
        tree.messages[name] = Message(name, parent, role, (TextPart(text),))
        tree.children.setdefault(parent, []).append(name)
    return tree


TREE = (("u1", None, "one"), ("a1", "u1", "yes"), ("a2", "u1", "no"), ("u2", "a2", "why"), ("a3", "u2", "so"))


def test_rows_are_set_in_where_there_are_versions() -> None:
    tree = tree_of(*TREE, leaf="a3")
    rows = [(message.id, depth, at, of) for message, depth, at, of in tree_rows(tree)]
    assert rows == [("u1", 0, 1, 1), ("a1", 1, 1, 2), ("a2", 1, 2, 2), ("u2", 1, 1, 1), ("a3", 1, 1, 1)]
    tree.deleted.add("a1")
    assert [(message.id, depth) for message, depth, _, _ in tree_rows(tree)] == [
        ("u1", 0), ("a2", 0), ("u2", 0), ("a3", 0)
    ]  # fmt: skip


def test_a_branch_goes_on_to_where_it_was_gone_on_with_last() -> None:
    tree = tree_of(*TREE, leaf="a1")
    assert branch_leaf(tree, "a2") == "a3"
    assert branch_leaf(tree, "u1") == "a3"
    tree.deleted.update(("u2", "a3"))
    assert branch_leaf(tree, "a2") == "a2"


def test_lines_that_differ_have_a_mark_that_is_no_colour() -> None:
    tree = tree_of(*TREE, leaf="a3")
    left, right = mark_differences(branch_lines(tree, "a1"), branch_lines(tree, "a2"))
    assert "− yes" in left.plain
    assert "+ no" in right.plain
    assert "+ so" in right.plain


def test_the_message_with_versions_is_found() -> None:
    state = SessionState(tree=tree_of(*TREE, leaf="a3"))
    assert find_versioned(state) == "a2"
    assert find_versioned(state, "a1") == "a1"
    assert find_versioned(SessionState(tree=tree_of(TREE[0], leaf="u1"))) == ""
    assert nearest_versioned(state.tree, "a3") == "a2"
    assert nearest_versioned(state.tree, "u1") == ""


def test_untrusted_markup_is_text_in_what_is_compared() -> None:
    tree = tree_of(("u1", None, "[bold]x[/nope] \x1b[2J\u202egnp"), leaf="u1")
    left, _ = mark_differences(branch_lines(tree, "u1"), [])
    assert "[bold]x[/nope]" in left.plain
    assert "\x1b" not in left.plain
    assert "\u202e" not in left.plain


def test_usage_stands_in_columns() -> None:
    spent = Spent(1, 2, Usage(input=1200, output=30, cost=0.5))
    view = api.UsageView(since=0.0, total=spent, days=[api.DailyUsage(day="2026-11-15", agent="助手", spent=spent)])
    agents = api.AgentList(agents=[], models=[])
    lines = usage_table(view, agents, around_words.EN).plain.splitlines()
    assert lines[1].split() == ["2026-11-15", "助手", "1,200", "30", "2", "$0.50"]
    assert lines[2].split() == ["Total", "1,200", "30", "2", "$0.50"]


def test_the_numbers_of_usage_are_whole_on_a_narrow_screen() -> None:
    spent = Spent(1, 112, Usage(input=20_178, output=1_560, cost=0.037))
    view = api.UsageView(
        since=0.0, total=spent, days=[api.DailyUsage(day="2026-11-15", agent="a-long-assistant", spent=spent)]
    )
    lines = usage_table(view, api.AgentList(agents=[], models=[]), around_words.EN, 48).plain.splitlines()
    assert max(map(len, lines)) == 48
    assert lines[1].split() == ["2026-11-15", "a-long-ass…", "20,178", "1,560", "112", "$0.037"]


def test_usage_without_an_agent_has_a_sign_in_its_place() -> None:
    spent = Spent(1, 0, Usage(input=120, output=30))
    view = api.UsageView(since=0.0, total=spent, days=[api.DailyUsage(day="2026-11-15", agent="", spent=spent)])
    lines = usage_table(view, api.AgentList(agents=[], models=[]), around_words.EN).plain.splitlines()
    assert lines[1].split()[:3] == ["2026-11-15", "–", "120"]


def test_the_usage_of_a_folder_is_under_its_name() -> None:
    spent = Spent(1, 2, Usage(input=1200, output=30))
    view = api.UsageView(
        since=0.0, total=spent, days=[api.DailyUsage(day="2026-11-15", agent="shop-bac038", spent=spent)]
    )
    folder = api.AgentView(name="shop-bac038", description="", model="m", folder="/home/ann/shop")
    lines = usage_table(view, api.AgentList(agents=[folder], models=[]), around_words.EN).plain.splitlines()
    assert lines[1].split()[:2] == ["2026-11-15", "shop"]


def test_what_a_person_likes_is_kept_for_them_alone(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    assert settings.load_user_settings(environ) == settings.UserSettings()
    assert settings.save_user_settings(settings.UserSettings(theme="nord", language="zh"), environ)
    assert settings.load_user_settings(environ) == settings.UserSettings(theme="nord", language="zh")
    file = settings.settings_path(environ)
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    for broken in (b"{", b'{"theme": 3}', b'{"language": "xx"}', b"\xff"):
        file.write_bytes(broken)
        assert settings.load_user_settings(environ) == settings.UserSettings()


def test_a_place_that_cannot_be_written_to_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "everturn").write_text("a file where a folder is to be")
    assert not settings.save_user_settings(settings.UserSettings(theme="nord"), {"XDG_STATE_HOME": str(tmp_path)})


def test_keys_are_spelt_as_people_write_them() -> None:
    assert [format_key(key) for key in ("ctrl+n", "escape", "f1", "c", "C", "shift+enter")] == [
        "Ctrl+N", "Esc", "F1", "c", "C", "Shift+Enter"
    ]  # fmt: skip


def test_both_languages_have_the_same_keys_and_commands() -> None:
    assert app_words.EN.keys.keys() == app_words.ZH.keys.keys()
    assert app_words.EN.slash.keys() == app_words.ZH.slash.keys()
