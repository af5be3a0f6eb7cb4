"""Help screen: all keys and commands, generated from the bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.widgets import Static

from everturn.terminal.text.screen import display_width, escape_prose
from everturn.terminal.tui.chat import ChatScreen
from everturn.terminal.tui.chat_host import get_chat_host
from everturn.terminal.tui.composer import ComposerInput, split_about
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.host import Language, get_app, get_host
from everturn.terminal.tui.key_bar import KeyHints, format_key, own_bindings
from everturn.terminal.tui.texts.app import AppTexts, get_app_texts
from everturn.terminal.tui.texts.chat import get_chat_texts as talk_words
from everturn.terminal.tui.texts.folder import get_folder_texts
from everturn.terminal.tui.transcript import Transcript

MAX_KEY_WIDTH: Final = 24  # columns of a key or a command


def describe_keys(kind: type[DOMNode], texts: AppTexts, more: object = None) -> list[tuple[str, str]]:
    """Return the keys of a class and their descriptions; `more` has texts that the descriptions name."""
    rows: list[tuple[str, str]] = []
    for binding in own_bindings(kind):
        description: str = getattr(more, binding.description, None) or texts.keys.get(
            binding.action, binding.description
        )
        if description:
            rows += [(format_key(key.strip()), description) for key in binding.key.split(",")]
    return rows


def _commands(commands: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return commands with their arguments, and their descriptions."""
    rows = ((key, *split_about(escape_prose(about))) for key, about in commands.items())
    return [(f"{key} {arguments}".rstrip(), description) for key, arguments, description in rows]


def help_text(app: type[DOMNode], language: Language, folder: Mapping[str, str] | None = None) -> Content:
    """Return the keys in groups, and the commands; `folder` has those that prompts and files define."""
    texts = get_app_texts(language)
    groups = [
        (texts.groups["talk"], describe_keys(ComposerInput, texts) + describe_keys(ChatScreen, texts)),
        (texts.groups["look"], describe_keys(Transcript, texts, talk_words(language))),
        (texts.groups["around"], describe_keys(app, texts)),
        (texts.keys["command_palette"], _commands(texts.slash)),
        (get_folder_texts(language).commands, _commands(folder or {})),
    ]
    width = min(MAX_KEY_WIDTH, max(display_width(key) for _, rows in groups for key, _ in rows)) + 2
    lines: list[Content] = []
    for title, rows in groups:
        if rows:
            lines += [Content.styled(title, "bold $primary")]
            lines += [
                Content.assemble((key + " " * (width - display_width(key)), "bold"), about) for key, about in rows
            ]
            lines.append(Content())
    return Content("\n").join([*lines, Content.styled(texts.help_more, "$text-muted")])


class HelpScreen(ClosingScreen[None], ModalScreen[None]):
    """All keys and commands in one scrolling pane."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q", "dismiss(None)", "close")]

    def compose(self) -> ComposeResult:
        """A title and the text."""
        texts = get_app_texts(get_host(self).language)
        with Vertical(classes="pane tall"):
            yield Static(Content(texts.help), classes="title", markup=False)
            with VerticalScroll():
                host = get_chat_host(self)
                known = get_app_texts(host.language).slash
                own = {
                    key: about for key, about in host.commands.completion.slash_commands().items() if key not in known
                }
                yield Static(help_text(type(get_app(self)), host.language, own), markup=False)
            yield KeyHints(texts.close)

    def on_mount(self) -> None:
        """Focus the text, so that the arrow keys scroll."""
        self.query_one(VerticalScroll).focus()
