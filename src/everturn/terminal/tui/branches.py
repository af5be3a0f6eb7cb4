"""Branches screen: the message tree of a session as a list, with the actions on each version."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from everturn.core.messages import Message
from everturn.core.tree import MessageTree
from everturn.localization import format_text
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.chat_host import ChatHost, get_chat_host
from everturn.terminal.tui.compare import CompareScreen, nearest_versioned
from everturn.terminal.tui.confirm import Confirm
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.picker import PickerScreen
from everturn.terminal.tui.session_follower import SessionFollower
from everturn.terminal.tui.steps import StepsScreen, step_rows
from everturn.terminal.tui.texts.screens import ScreenTexts, get_screen_texts

MAX_SHOWN = 200  # characters of a message that can fill a line


def branch_leaf(tree: MessageTree, message: str) -> str:
    """Return the leaf of the branch that was continued last, from a message on."""
    current = message
    while True:
        children = [child for child in tree.children.get(current, ()) if child not in tree.deleted]
        if not children:
            return current
        current = children[-1]


def tree_rows(tree: MessageTree) -> list[tuple[Message, int, int, int]]:
    """Return all messages from the beginning, each with its branch depth, its version, and the number of versions.

    A message is indented only if it is one of several versions: a session without branches is a plain list.
    """
    rows: list[tuple[Message, int, int, int]] = []
    stack = [(child, 0) for child in reversed(_children(tree, None))]
    while stack:
        current, depth = stack.pop()
        message = tree.messages[current]
        versions = _children(tree, message.parent)
        inner = depth + (1 if len(versions) > 1 else 0)
        if not message.hidden:
            rows.append((message, inner, versions.index(current) + 1, len(versions)))
        stack += [(child, inner) for child in reversed(_children(tree, current))]
    return rows


def _children(tree: MessageTree, parent: str | None) -> list[str]:
    return [child for child in tree.children.get(parent, ()) if child not in tree.deleted]


class BranchesScreen(ClosingScreen[None], ModalScreen[None]):
    """A list of all messages; those of the selected branch are marked."""

    DEFAULT_CSS = """
    BranchesScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("e", "edit", "edit"),
        Binding("r", "rerun", "rerun"),
        Binding("m", "rerun_with", "rerun_with"),
        Binding("f", "fork", "fork"),
        Binding("c", "compare", "compare"),
        Binding("d", "delete", "delete"),
    ]

    def __init__(self, follower: SessionFollower, picked: str = "") -> None:
        super().__init__()
        self._follower, self._picked = follower, picked
        self._rows: list[Message] = []

    @property
    def host(self) -> ChatHost:
        """The app, as the host of the conversation."""
        return get_chat_host(self)

    @property
    def _screen_texts(self) -> ScreenTexts:
        return get_screen_texts(self.host.language)

    def compose(self) -> ComposeResult:
        """The list, and the key hints."""
        with Vertical(classes="pane tall"):
            yield Static(Content(self._screen_texts.branches), classes="title", markup=False)
            yield OptionList(classes="list", markup=False)
            yield KeyHints(self._screen_texts.branch_keys)

    def on_mount(self) -> None:
        """List the messages; highlight the picked one, or the last of the selected branch."""
        self._picked = self._picked or self._follower.state.tree.leaf or ""
        self.query_one(OptionList).focus()
        self.call_after_refresh(self.refresh_state)

    def on_resize(self) -> None:
        """Draw the rows for the new width."""
        self.call_after_refresh(self.refresh_state)

    def refresh_state(self) -> None:
        """Draw the list again after a change in the session."""
        if not self.is_mounted:
            return
        tree, texts = self._follower.state.tree, self._screen_texts
        shown = {message.id for message in self._follower.state.branch()}
        listed = self.query_one(OptionList)
        picked = chosen.id if (chosen := self.chosen()) is not None else self._picked
        rows = tree_rows(tree)
        self._rows = [message for message, _, _, _ in rows]
        listed.clear_options()
        room = max(20, (listed.size.width or 70) - 2)
        for message, depth, version, versions in rows:
            listed.add_option(Option(self._row(message, depth, version, versions, message.id in shown, room)))
        if not rows:
            listed.add_option(Option(Content.styled(texts.no_branches, "$text-muted"), disabled=True))
        ids = [message.id for message in self._rows]
        if rows:
            listed.highlighted = ids.index(picked) if picked in ids else len(ids) - 1

    def _row(self, message: Message, depth: int, version: int, versions: int, is_shown: bool, room: int) -> Content:
        texts = self._screen_texts
        author = {"user": texts.you, "assistant": escape_prose(message.by) or texts.model}.get(
            message.role, texts.notice
        )
        text = escape_prose(" ".join(message.text[:MAX_SHOWN].split())) or texts.empty
        right = Content.styled(texts.version.format(at=version, of=versions) if versions > 1 else "", "$warning")
        mark = "●" if is_shown else "○"
        left = Content.assemble(f"{'  ' * min(depth, 8)}{mark} ", (f"{author}  ", "$primary"), text)
        left = left.truncate(room - right.cell_length - 2, ellipsis=True)
        line = Content.assemble(left, " " * max(2, room - left.cell_length - right.cell_length), right)
        return line if is_shown else line.stylize("$text-muted")

    def chosen(self) -> Message | None:
        """Return the highlighted message."""
        index = self.query_one(OptionList).highlighted
        return self._rows[index] if index is not None and index < len(self._rows) else None

    @on(OptionList.OptionSelected)
    async def _selected(self) -> None:
        if (message := self.chosen()) is not None:
            self.dismiss(None)
            shown = {member.id for member in self._follower.state.branch()}
            to = message.id if message.id in shown else branch_leaf(self._follower.state.tree, message.id)
            await self.host.attempt(self._follower.session.select(to))

    def action_edit(self) -> None:
        """Edit the message."""
        message = self._user_message()
        if message is not None:
            self.dismiss(None)
            self.host.commands.edit(message)

    def _user_message(self) -> Message | None:
        """Return the highlighted message if a person wrote it, or the message that it answers."""
        message = self.chosen()
        tree = self._follower.state.tree
        while message is not None and message.role != "user":
            message = tree.messages.get(message.parent) if message.parent is not None else None
        return message

    async def action_rerun(self) -> None:
        """Regenerate the answer."""
        if (message := self.chosen()) is not None:
            await self._rerun(message, "")

    def action_rerun_with(self) -> None:
        """Regenerate the answer with another model."""
        if (message := self.chosen()) is None:
            return

        async def picked(choice: tuple[str, str] | None) -> None:
            if choice is not None:
                await self._rerun(message, choice[1])

        self.host.push_screen(
            PickerScreen(
                self.host.commands.completion.models(), *self.host.current_agent_and_model(), only_models=True
            ),
            picked,
        )

    async def _rerun(self, message: Message, model: str) -> None:
        self.dismiss(None)
        await self.host.commands.regenerate(message.id, model)

    def action_fork(self) -> None:
        """Continue inside the answer, after one of its steps."""
        message, texts = self.chosen(), self._screen_texts
        if message is None or not (rows := step_rows(message)):
            self.host.show_message(texts.no_steps)
            return

        async def picked(choice: tuple[int, bool] | None) -> None:
            if choice is None:
                return
            step, is_rerun = choice
            self.dismiss(None)
            if is_rerun:
                await self.host.commands.regenerate(message.id, after_step=step)
            elif await self.host.attempt(self._follower.session.fork(message.id, step)):
                self.host.show_message(texts.continues_after.format(step=step))

        self.host.push_screen(StepsScreen(rows), picked)

    def action_compare(self) -> None:
        """Compare two versions of the message."""
        if (message := self.chosen()) is None:
            return
        if not (versioned := nearest_versioned(self._follower.state.tree, message.id)):
            self.host.show_message(self._screen_texts.nothing_to_compare)
            return
        self.host.push_screen(CompareScreen(self._follower.state, versioned))

    def action_delete(self) -> None:
        """Hide the message and its descendants, after a confirmation."""
        if (message := self.chosen()) is None:
            return
        count = sum(1 for _ in self._follower.state.tree.below(message.id)) - 1

        async def agreed(yes: bool | None) -> None:
            if yes:
                await self.host.attempt(self._follower.session.delete(message.id))

        explanation = (
            format_text(self._screen_texts.delete_what, count=count) if count else self._screen_texts.delete_last
        )
        self.host.push_screen(Confirm(self._screen_texts.delete, explanation), agreed)
