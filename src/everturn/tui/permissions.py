"""All that decides on calls → a screen: rules as they are written, tools, remembered answers, and what would become of a call."""

from __future__ import annotations

import time
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from everturn import api
from everturn.core.canonical import parse_object
from everturn.errors import EverturnError
from everturn.terminal.exact import hidden, seen
from everturn.tui.base import host
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.gates.keys import Key, Keys
from everturn.tui.gates.roll import Roll
from everturn.tui.gates.rows import Row, pair, say, write
from everturn.tui.gates.table import Table
from everturn.tui.inbox import short
from everturn.tui.words.permissions import PermissionsWords
from everturn.tui.words.permissions import words as words_in

VIEWS: Final = ("rules", "tools", "grants", "explain")
STYLES: Final = {"allow": "good", "ask": "warn", "deny": "bad"}
SIGNS: Final = {"allow": "✓", "ask": "?", "deny": "×"}


class PermissionsScreen(ClosingScreen[None]):
    """What may be done, and why."""

    DEFAULT_CSS = """
    PermissionsScreen #head { padding: 1 2 0 2; height: auto; text-style: bold; }
    PermissionsScreen #tabs { padding: 0 2 1 2; }
    PermissionsScreen Table { margin: 0 1; }
    PermissionsScreen Roll { margin: 0 1; padding: 0 1; }
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

    def __init__(self) -> None:
        super().__init__()
        self.view = "rules"
        self.rules: api.RulesView | None = None
        self.grants: list[api.GrantedView] = []
        self.explained: api.ExplainView | None = None
        self.problem = ""
        self._sure = ""  # the grant that is about to be revoked
        self._agent = 0

    def compose(self) -> ComposeResult:
        """A head, what can be looked at, and the keys."""
        self.words = words = words_in(host(self).language)
        yield Static(id="head", markup=False)
        yield Keys(id="tabs")
        with Vertical(id="call"):
            yield Static(words.tool, markup=False)
            yield Input(id="tool")
            yield Static(words.arguments, markup=False)
            yield Input("{}", id="arguments")
        yield Table((words.rule, words.where, words.when))
        yield Roll(id="about")
        yield Static(id="note", markup=False)
        yield Keys(id="keys")

    def on_mount(self) -> None:
        """Look."""
        self._draw()
        self._focus()
        self._look()

    def on_resize(self) -> None:
        """Rules have more room, or less."""
        self.call_after_refresh(self._draw)

    def _look(self) -> None:
        self.run_worker(self._read(), exclusive=True, group="look")

    async def _read(self) -> None:
        server, agents = host(self).server, host(self).agents.agents
        try:
            self.rules = await server.rules(agents[self._agent % len(agents)].name if agents else "")
            self.grants, self.problem = await server.grants(), ""
        except EverturnError as error:
            self.problem = str(error)
        self._draw()

    # What is shown -------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        if not self.is_attached:
            return
        words, table = self.words, self.query_one(Table)
        self.query_one("#head", Static).update(
            Content(words.title.format(seen(self.rules.agent) if self.rules else "…"))
        )
        marks = [
            (str(at), f"{getattr(words, name)}{' •' if name == self.view else ''}") for at, name in enumerate(VIEWS, 1)
        ]
        self.query_one("#tabs", Keys).offer(marks)
        self.query_one("#call").display = self.view == "explain"
        table.display = self.view == "grants" and bool(self.grants)
        table.fill({one.grant.id: self._cells(one) for one in self.grants})
        self.query_one(Roll).display = not table.display
        self.query_one(Roll).lay(self._rows, is_new=False)
        note = words.sure if self._sure else seen(" ".join(self.problem.split()))
        self.query_one("#note", Static).update(Content(f"! {note}" if note else ""))
        self.query_one("#keys", Keys).offer(self._keys())

    def _cells(self, one: api.GrantedView) -> tuple[str, str, str]:
        words, grant = self.words, one.grant
        where = seen(" ".join(one.title.split())) or grant.session if grant.session else words.everywhere
        until = time.strftime("%Y-%m-%d %H:%M", time.localtime(grant.expires)) if grant.expires else words.forever
        by = f" · {words.by.format(seen(grant.by))}" if grant.by else ""
        # A rule is the one thing that is never cut: what is revoked has to be known to the letter.
        return seen(str(grant.rule)), short(where, max(self.size.width // 4, 10)), until + by

    def _keys(self) -> list[Key]:
        words, keys = self.words, list[Key]()
        if self.view == "grants" and self.grants:
            keys.append(("y", words.k_sure) if self._sure else ("x", words.k_revoke))
        if self.view in ("rules", "tools") and len(host(self).agents.agents) > 1:
            keys.append(("a", words.k_agent))
        if self.view == "explain":
            keys.append(("enter", words.k_ask))
        return [*keys, ("escape", words.k_back)]

    def _rows(self, width: int) -> list[Row]:
        words = self.words
        if self.rules is None:
            return list(say(words.loading if not self.problem else "", width))
        if self.view == "rules":
            return rule_rows(self.rules, words, width)
        if self.view == "tools":
            return tool_rows(self.rules, words, width)
        if self.view == "grants":
            return list(say(words.no_grants, width))
        return explain_rows(self.explained, words, width) if self.explained else list(say(words.ask_how, width, "dim"))

    # What is pressed -----------------------------------------------------------------------------------------------

    def action_press(self, key: str) -> None:
        """A key, or a click on one."""
        if key == "escape" and self._sure:
            self._sure = ""
        elif key == "escape":
            self.dismiss()
            return
        elif key in "1234":
            self.view, self._sure, self.problem = VIEWS[int(key) - 1], "", ""
            self._focus()
        elif key == "enter" and self.view == "explain":
            self._explain()
        elif key not in dict(self._keys()):
            return
        elif key == "x":
            self._sure = self.query_one(Table).chosen
        elif key == "y" and self._sure:
            self.run_worker(self._revoke(self._sure), exclusive=True, group="do")
        elif key == "a":
            self._agent += 1
            self._look()
        self._draw()

    def _focus(self) -> None:
        names = {"explain": "#tool", "grants": "Table" if self.grants else "#about"}
        self.call_after_refresh(lambda: self.query_one(names.get(self.view, "#about")).focus())

    async def _revoke(self, grant: str) -> None:
        one = next((one for one in self.grants if one.grant.id == grant), None)
        self._sure = ""
        if one is not None and self.query_one(Table).chosen == grant:
            try:
                await host(self).server.revoke(grant)
                host(self).tell(self.words.revoked.format(seen(str(one.grant.rule))))
            except EverturnError as error:
                host(self).tell(str(error), "error")
        await self._read()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter says what would happen; nothing is run."""
        event.stop()
        self._explain()

    def _explain(self) -> None:
        tool = self.query_one("#tool", Input).value.strip()
        given = parse_object(self.query_one("#arguments", Input).value.strip() or "{}")
        names = ", ".join(seen(one.name) for one in (self.rules.tools if self.rules else [])[:5])
        self.problem = (
            self.words.unknown_tool.format(names) if not tool else "" if given is not None else self.words.no_json
        )
        if not self.problem and given is not None:
            self.run_worker(self._ask(tool, given), exclusive=True, group="do")
        self._draw()

    async def _ask(self, tool: str, given: dict[str, object]) -> None:
        follower, agent = host(self).follower, self.rules.agent if self.rules else ""
        try:
            session = follower.id if follower is not None else None
            self.explained = await host(self).server.explain(tool, given, agent=agent, session=session)
        except EverturnError as error:
            self.explained, self.problem = None, str(error)
        self._draw()


def rule_rows(view: api.RulesView, words: PermissionsWords, width: int) -> list[Row]:
    """The rules as they are written, by where they stand, and those that can never decide."""
    rows = [*say(words.how, width, "dim"), ()]
    if not view.rules:
        return [*rows, *say(words.no_rules, width)]
    for one in view.rules:
        where = seen(f"{one.rule.layer}{f', {one.rule.source}' if one.rule.source else ''}")
        rows += write(
            [seen(one.text)], width, SIGNS[one.rule.action], 2, STYLES[one.rule.action], marks=hidden(one.text) > 0
        )
        rows += say(where, width, "dim", "   ")
        rows += say(words.never.format(seen(one.shadow)), width, "warn", "   !") if one.shadow else ()
    return rows


def tool_rows(view: api.RulesView, words: PermissionsWords, width: int) -> list[Row]:
    """The tools, and what each says of itself."""
    rows: list[Row] = []
    for tool in view.tools:
        notes: list[str] = [getattr(words, tool.execute, seen(tool.execute)) if tool.is_offered else words.denied]
        notes += [words.by_hand] if tool.by_hand else []
        notes += [words.reviewed] if tool.result != "auto" else []
        notes += [words.egress] if tool.egress else []
        subjects = ", ".join(f"{seen(name)} ({seen(kind)})" for name, kind in tool.subjects.items())
        notes += [words.looks_at.format(subjects)] if subjects else []
        rows += pair(seen(tool.name), "; ".join(notes), width, 22, "" if tool.is_offered else "dim")
        rows += pair("", f"{seen(tool.origin)} · {seen(tool.effects)}", width, 22, "dim")
    return rows


def explain_rows(view: api.ExplainView, words: PermissionsWords, width: int) -> list[Row]:
    """The verdict, and all of it in words."""
    rows = list(say(getattr(words, view.action), width, STYLES[view.action], SIGNS[view.action]))
    rows += say(words.unfit.format(seen(view.problem)), width, "bad", "!") if view.problem else ()
    rows += say(words.would_hand, width, "warn", "!") if view.by_hand else ()
    rows += say(words.would_review, width, "warn", "!") if view.review != "auto" else ()
    rows.append(())
    for line in view.lines:
        rows += write([seen(line.strip())], width, "", 2 * (len(line) - len(line.lstrip()) > 0))
    return rows
