"""All keys and commands, drawn from where they are bound."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.widgets import Static

from everturn.terminal.screen import columns
from everturn.tui.base import Language, app_of, host
from everturn.tui.composer import Box
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.keys import Hints, bindings_of, spelt
from everturn.tui.talking import TalkScreen
from everturn.tui.transcript import Transcript
from everturn.tui.words.app import AppWords, words
from everturn.tui.words.talk import words as talk_words


def keys_of(kind: type[DOMNode], said: AppWords, more: object = None) -> list[tuple[str, str]]:
    """The keys of a class, and what each of them does; `more` are words that its descriptions name."""
    rows: list[tuple[str, str]] = []
    for one in bindings_of(kind):
        about: str = getattr(more, one.description, None) or said.keys.get(one.action, one.description)
        if about:
            rows += [(spelt(key.strip()), about) for key in one.key.split(",")]
    return rows


def help_text(app: type[DOMNode], language: Language) -> Content:
    """Groups of keys, and the commands."""
    said = words(language)
    groups = [
        (said.groups["talk"], keys_of(Box, said) + keys_of(TalkScreen, said)),
        (said.groups["look"], keys_of(Transcript, said, talk_words(language))),
        (said.groups["around"], keys_of(app, said)),
        ("/", list(said.slash.items())),
    ]
    wide = max(columns(key) for _, rows in groups for key, _ in rows) + 2
    lines: list[Content] = []
    for title, rows in groups:
        if rows:
            lines += [Content.styled(title, "bold $primary")]
            lines += [Content.assemble((key + " " * (wide - columns(key)), "bold"), about) for key, about in rows]
            lines.append(Content())
    return Content("\n").join([*lines, Content.styled(said.help_more, "dim")])


class HelpScreen(ClosingScreen[None], ModalScreen[None]):
    """One long page."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q", "dismiss(None)", "close")]

    def compose(self) -> ComposeResult:
        """A title, and all of it."""
        said = words(host(self).language)
        with Vertical(classes="pane tall"):
            yield Static(Content(said.help), classes="title", markup=False)
            with VerticalScroll():
                yield Static(help_text(type(app_of(self)), host(self).language), markup=False)
            yield Hints(said.close)

    def on_mount(self) -> None:
        """The arrows scroll."""
        self.query_one(VerticalScroll).focus()
