"""Permissions screen: rules as they are written, tools, grants, and what the rules would decide for a call."""

from __future__ import annotations

import time
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from everturn import api
from everturn.core.canonical_json import parse_object
from everturn.errors import EverturnError
from everturn.localization import format_text
from everturn.terminal.text.visible_text import count_invisible, escape_invisible
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.folder import agent_label
from everturn.terminal.tui.gates.keys import Key, KeyBar
from everturn.terminal.tui.gates.rows import Row, label_rows, message_rows, text_rows
from everturn.terminal.tui.gates.scroll import ScrolledRows
from everturn.terminal.tui.gates.table import RowTable
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.inbox import truncate_columns
from everturn.terminal.tui.texts.permissions import PermissionsTexts
from everturn.terminal.tui.texts.permissions import get_permissions_texts as words_in
from everturn.tools.tool_files import describe_origin

VIEWS: Final = ("rules", "tools", "grants", "explain")
STYLES: Final = {"allow": "good", "ask": "warn", "deny": "bad"}
SIGNS: Final = {"allow": "✓", "ask": "?", "deny": "×"}


class PermissionsScreen(ClosingScreen[None]):
    """Rules, tools, grants and explanations, as four views."""

    DEFAULT_CSS = """
    PermissionsScreen #head { padding: 1 2 0 2; height: auto; text-style: bold; }
    PermissionsScreen #tabs { padding: 0 2 1 2; }
    PermissionsScreen RowTable { margin: 0 1; }
    PermissionsScreen ScrolledRows { margin: 0 1; padding: 0 1; }
    PermissionsScreen #call { height: auto; padding: 0 2 1 2; }
    PermissionsScreen #call Input, PermissionsScreen #call Input:focus { border: none; height: 1; padding: 0 1; background: $panel; }
    PermissionsScreen #call Static { color: $text-muted; height: auto; }
    PermissionsScreen #note { padding: 0 2; height: auto; color: $text-warning; text-style: bold; }
    PermissionsScreen #keys { padding: 0 2; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"press('{key}')", show=False) for key in ("1", "2", "3", "4", "x", "y", "a")),
        Binding("escape", "press('escape')", show=False),
    ]

    def __init__(self, agent: str = "") -> None:
        super().__init__()
        self.view = "rules"
        self.rules: api.RulesView | None = None
        self.grants: list[api.GrantView] = []
        self.explained: api.ExplainView | None = None
        self.problem = ""
        self._to_confirm = ""  # the grant to be revoked after a confirmation
        self._first_agent, self._agent = agent, 0  # the name of the agent to begin with, and how many came after it

    def compose(self) -> ComposeResult:
        """A heading, the views, and the keys."""
        self.words = texts = words_in(get_host(self).language)
        yield Static(id="head", markup=False)
        yield KeyBar(id="tabs")
        with Vertical(id="call"):
            yield Static(texts.tool, markup=False)
            yield Input(id="tool")
            yield Static(texts.arguments, markup=False)
            yield Input("{}", id="arguments")
        yield RowTable((texts.rule, texts.where, texts.when))
        yield ScrolledRows(id="about")
        yield Static(id="note", markup=False)
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Load the rules and grants."""
        self._draw()
        self._focus()
        self._look()

    def on_resize(self) -> None:
        """Draw the rows for the new width."""
        self.call_after_refresh(self._draw)

    def _look(self) -> None:
        self.run_worker(self._read(), exclusive=True, group="look")

    async def _read(self) -> None:
        server, names = get_host(self).server, [view.name for view in get_host(self).agents.agents]
        first = names.index(self._first_agent) if self._first_agent in names else 0
        try:
            self.rules = await server.rules(names[(first + self._agent) % len(names)] if names else "")
            self.grants, self.problem = await server.grants(), ""
        except EverturnError as error:
            self.problem = str(error)
        self._draw()

    # Drawing -------------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        if not self.is_attached:
            return
        texts, table = self.words, self.query_one(RowTable)
        self.query_one("#head", Static).update(
            Content(texts.title.format(escape_invisible(self._label(self.rules.agent)) if self.rules else "…"))
        )
        tabs = [
            (str(number), f"{getattr(texts, name)}{' •' if name == self.view else ''}")
            for number, name in enumerate(VIEWS, 1)
        ]
        self.query_one("#tabs", KeyBar).offer(tabs)
        self.query_one("#call").display = self.view == "explain"
        table.display = self.view == "grants" and bool(self.grants)
        table.fill({view.grant.id: self._cells(view) for view in self.grants})
        self.query_one(ScrolledRows).display = not table.display
        self.query_one(ScrolledRows).set_rows(self._rows, is_new=False)
        note = texts.sure if self._to_confirm else escape_invisible(" ".join(self.problem.split()))
        self.query_one("#note", Static).update(Content(f"! {note}" if note else ""))
        self.query_one("#keys", KeyBar).offer(self._keys())

    def _label(self, agent: str) -> str:
        return agent_label(get_host(self).agents, agent)

    def _cells(self, view: api.GrantView) -> tuple[str, str, str]:
        texts, grant = self.words, view.grant
        where = (
            escape_invisible(" ".join(view.title.split())) or grant.session
            if grant.session
            else escape_invisible(grant.folder) or texts.everywhere
        )
        until = time.strftime("%Y-%m-%d %H:%M", time.localtime(grant.expires)) if grant.expires else texts.forever
        by = f" · {texts.by.format(escape_invisible(grant.by))}" if grant.by else ""
        # A rule is never truncated: the person must see exactly what is revoked.
        return escape_invisible(str(grant.rule)), truncate_columns(where, max(self.size.width // 4, 10)), until + by

    def _keys(self) -> list[Key]:
        texts, keys = self.words, list[Key]()
        if self.view == "grants" and self.grants:
            keys.append(("y", texts.k_sure) if self._to_confirm else ("x", texts.k_revoke))
        if self.view in ("rules", "tools") and len(get_host(self).agents.agents) > 1:
            keys.append(("a", texts.k_agent))
        if self.view == "explain":
            keys.append(("enter", texts.k_ask))
        return [*keys, ("escape", texts.k_back)]

    def _rows(self, width: int) -> list[Row]:
        texts = self.words
        if self.rules is None:
            return list(message_rows(texts.loading if not self.problem else "", width))
        if self.view == "rules":
            return rule_rows(self.rules, texts, width)
        if self.view == "tools":
            return tool_rows(self.rules, texts, width)
        if self.view == "grants":
            return list(message_rows(texts.no_grants, width))
        return (
            explain_rows(self.explained, texts, width)
            if self.explained
            else list(message_rows(texts.ask_how, width, "dim"))
        )

    # Keys ----------------------------------------------------------------------------------------------------------

    def action_press(self, key: str) -> None:
        """Handle a key, or a click on its hint."""
        if key == "escape" and self._to_confirm:
            self._to_confirm = ""
        elif key == "escape":
            self.dismiss()
            return
        elif key in "1234":
            self.view, self._to_confirm, self.problem = VIEWS[int(key) - 1], "", ""
            self._focus()
        elif key == "enter" and self.view == "explain":
            self._explain()
        elif key not in dict(self._keys()):
            return
        elif key == "x":
            self._to_confirm = self.query_one(RowTable).chosen
        elif key == "y" and self._to_confirm:
            self.run_worker(self._revoke(self._to_confirm), exclusive=True, group="do")
        elif key == "a":
            self._agent += 1
            self._look()
        self._draw()

    def _focus(self) -> None:
        names = {"explain": "#tool", "grants": "RowTable" if self.grants else "#about"}
        self.call_after_refresh(lambda: self.query_one(names.get(self.view, "#about")).focus())

    async def _revoke(self, grant: str) -> None:
        view = next((view for view in self.grants if view.grant.id == grant), None)
        self._to_confirm = ""
        if view is not None and self.query_one(RowTable).chosen == grant:
            try:
                await get_host(self).server.revoke(grant)
                get_host(self).show_message(self.words.revoked.format(escape_invisible(str(view.grant.rule))))
            except EverturnError as error:
                get_host(self).show_message(str(error), "error")
        await self._read()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter explains the call; nothing runs."""
        event.stop()
        self._explain()

    def _explain(self) -> None:
        tool = self.query_one("#tool", Input).value.strip()
        arguments = parse_object(self.query_one("#arguments", Input).value.strip() or "{}")
        names = ", ".join(escape_invisible(offered.name) for offered in (self.rules.tools if self.rules else [])[:5])
        self.problem = (
            self.words.unknown_tool.format(names)
            if not tool
            else ""
            if arguments is not None
            else format_text(self.words.no_json)
        )
        if not self.problem and arguments is not None:
            self.run_worker(self._ask(tool, arguments), exclusive=True, group="do")
        self._draw()

    async def _ask(self, tool: str, arguments: dict[str, object]) -> None:
        follower, agent = get_host(self).follower, self.rules.agent if self.rules else ""
        try:
            session = follower.id if follower is not None else None
            self.explained = await get_host(self).server.explain(tool, arguments, agent=agent, session=session)
        except EverturnError as error:
            self.explained, self.problem = None, str(error)
        self._draw()


def rule_rows(view: api.RulesView, texts: PermissionsTexts, width: int) -> list[Row]:
    """Return the rules as they are written, each with its source, and those that can never decide."""
    rows = [*message_rows(texts.how, width, "dim"), ()]
    if not view.rules:
        return [*rows, *message_rows(texts.no_rules, width)]
    for rule_view in view.rules:
        source = escape_invisible(
            f"{rule_view.rule.layer}{f', {rule_view.rule.source}' if rule_view.rule.source else ''}"
        )
        style = STYLES[rule_view.rule.action]
        (sign, *text), *others = text_rows(
            [escape_invisible(rule_view.text)],
            width,
            SIGNS[rule_view.rule.action],
            2,
            style,
            marks=count_invisible(rule_view.text) > 0,
        )
        rows += [((sign[0], style), *text), *others]
        rows += message_rows(source, width, "dim", "   ")
        rows += (
            message_rows(texts.never.format(escape_invisible(rule_view.shadow)), width, "warn", "   !")
            if rule_view.shadow
            else ()
        )
    return rows


def tool_rows(view: api.RulesView, texts: PermissionsTexts, width: int) -> list[Row]:
    """Return the tools, and what each declares."""
    rows: list[Row] = []
    for tool in view.tools:
        notes: list[str] = [
            getattr(texts, tool.approval, escape_invisible(tool.approval)) if tool.is_offered else texts.denied
        ]
        notes += [texts.manual] if tool.manual else []
        notes += [texts.reviewed] if tool.review != "auto" else []
        notes += [texts.egress] if tool.egress else []
        subjects = ", ".join(
            f"{escape_invisible(name)} ({escape_invisible(kind)})" for name, kind in tool.subjects.items()
        )
        notes += [texts.looks_at.format(subjects)] if subjects else []
        rows += label_rows(escape_invisible(tool.name), "; ".join(notes), width, 22, "" if tool.is_offered else "dim")
        rows += label_rows("", f"{escape_invisible(describe_origin(tool.origin))} · {_repeat(tool)}", width, 22, "dim")
    return rows


def explain_rows(view: api.ExplainView, texts: PermissionsTexts, width: int) -> list[Row]:
    """Return the decision, and the whole explanation."""
    rows = list(message_rows(getattr(texts, view.action), width, STYLES[view.action], SIGNS[view.action]))
    rows += message_rows(texts.unfit.format(escape_invisible(view.problem)), width, "bad", "!") if view.problem else ()
    rows += message_rows(texts.would_hand, width, "warn", "!") if view.manual else ()
    rows += message_rows(texts.would_review, width, "warn", "!") if view.review != "auto" else ()
    rows.append(())
    for line in view.lines:
        rows += text_rows([escape_invisible(line.strip())], width, "", 2 * (len(line) - len(line.lstrip()) > 0))
    return rows


def _repeat(tool: api.ToolRules) -> str:
    return "read_only" if tool.read_only else "idempotent" if tool.idempotent else "at_most_once"
