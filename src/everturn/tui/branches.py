"""The tree of a session, as a list: versions of messages, and what can be done with each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from everturn.core.messages import Message
from everturn.core.tree import Tree
from everturn.terminal.screen import prose
from everturn.tui.base import app_of
from everturn.tui.comparing import CompareScreen, nearest_versions
from everturn.tui.confirming import Confirm
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.following import Follower
from everturn.tui.keys import Hints
from everturn.tui.picking import PickScreen
from everturn.tui.words.around import AroundWords, words

if TYPE_CHECKING:
    from everturn.tui.app import EverturnApp

SHOWN = 200  # characters of a message that may be needed to fill a line


def end_of(tree: Tree, message: str) -> str:
    """The end of the branch that was gone on with last, from a message on."""
    at = message
    while True:
        below = [one for one in tree.children.get(at, ()) if one not in tree.deleted]
        if not below:
            return at
        at = below[-1]


def rows_of(tree: Tree) -> list[tuple[Message, int, int, int]]:
    """All messages, from the beginning on, each with its depth in branches, its version, and of how many.

    A message is set in only where it is one of several: a session without branches is a plain list.
    """
    rows: list[tuple[Message, int, int, int]] = []
    stack = [(one, 0) for one in reversed(_there(tree, None))]
    while stack:
        at, depth = stack.pop()
        message = tree.messages[at]
        versions = _there(tree, message.parent)
        inner = depth + (1 if len(versions) > 1 else 0)
        if not message.hidden:
            rows.append((message, inner, versions.index(at) + 1, len(versions)))
        stack += [(one, inner) for one in reversed(_there(tree, at))]
    return rows


def _there(tree: Tree, parent: str | None) -> list[str]:
    return [one for one in tree.children.get(parent, ()) if one not in tree.deleted]


class BranchesScreen(ClosingScreen[None], ModalScreen[None]):
    """A list of all messages. What is on the selected branch is marked."""

    DEFAULT_CSS = """
    BranchesScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("e", "edit", "edit"),
        Binding("r", "rerun", "rerun"),
        Binding("m", "rerun_with", "rerun_with"),
        Binding("c", "compare", "compare"),
        Binding("d", "delete", "delete"),
    ]

    def __init__(self, follower: Follower, picked: str = "") -> None:
        super().__init__()
        self._follower, self._picked = follower, picked
        self._rows: list[Message] = []

    @property
    def around(self) -> EverturnApp:
        """The app, as it is."""
        return app_of(self)

    @property
    def _said(self) -> AroundWords:
        return words(self.around.language)

    def compose(self) -> ComposeResult:
        """The list, and the keys."""
        with Vertical(classes="pane tall"):
            yield Static(Content(self._said.branches), classes="title", markup=False)
            yield OptionList(classes="list", markup=False)
            yield Hints(self._said.branch_keys)

    def on_mount(self) -> None:
        """List them; the one that was picked is chosen, or the last of the selected branch."""
        self._picked = self._picked or self._follower.state.tree.leaf or ""
        self.query_one(OptionList).focus()
        self.call_after_refresh(self.refresh_state)

    def on_resize(self) -> None:
        """Rows have more room, or less."""
        self.call_after_refresh(self.refresh_state)

    def refresh_state(self) -> None:
        """Something has changed in the session."""
        if not self.is_mounted:
            return
        tree, said = self._follower.state.tree, self._said
        shown = {message.id for message in self._follower.state.branch()}
        listed = self.query_one(OptionList)
        picked = chosen.id if (chosen := self.chosen()) is not None else self._picked
        found = rows_of(tree)
        self._rows = [message for message, _, _, _ in found]
        listed.clear_options()
        room = max(20, (listed.size.width or 70) - 2)
        for message, depth, at, of in found:
            listed.add_option(Option(self._row(message, depth, at, of, message.id in shown, room)))
        if not found:
            listed.add_option(Option(Content.styled(said.no_branches, "dim"), disabled=True))
        ids = [message.id for message in self._rows]
        if found:
            listed.highlighted = ids.index(picked) if picked in ids else len(ids) - 1

    def _row(self, message: Message, depth: int, at: int, of: int, is_shown: bool, room: int) -> Content:
        said = self._said
        who = {"user": said.you, "assistant": prose(message.by) or said.model}.get(message.role, said.notice)
        text = prose(" ".join(message.text[:SHOWN].split())) or said.empty
        right = Content.styled(said.version.format(at=at, of=of) if of > 1 else "", "$warning")
        mark = "●" if is_shown else "○"
        left = Content.assemble(f"{'  ' * min(depth, 8)}{mark} ", (f"{who}  ", "$primary"), text)
        left = left.truncate(room - right.cell_length - 2, ellipsis=True)
        line = Content.assemble(left, " " * max(2, room - left.cell_length - right.cell_length), right)
        return line if is_shown else line.stylize("dim")

    def chosen(self) -> Message | None:
        """The message that is meant."""
        at = self.query_one(OptionList).highlighted
        return self._rows[at] if at is not None and at < len(self._rows) else None

    @on(OptionList.OptionSelected)
    async def _selected(self) -> None:
        if (message := self.chosen()) is not None:
            self.dismiss(None)
            shown = {one.id for one in self._follower.state.branch()}
            to = message.id if message.id in shown else end_of(self._follower.state.tree, message.id)
            await self.around.attempt(self._follower.session.select(to))

    def action_edit(self) -> None:
        """Say it differently."""
        message = self._of_person()
        if message is not None:
            self.dismiss(None)
            self.around.commands.edit(message)

    def _of_person(self) -> Message | None:
        """The message that is meant, if a person said it; or the one that it answers."""
        at = self.chosen()
        tree = self._follower.state.tree
        while at is not None and at.role != "user":
            at = tree.messages.get(at.parent) if at.parent is not None else None
        return at

    async def action_rerun(self) -> None:
        """Another answer."""
        if (message := self.chosen()) is not None:
            await self._rerun(message, "")

    def action_rerun_with(self) -> None:
        """Another answer, by another model."""
        if (message := self.chosen()) is None:
            return

        async def picked(found: tuple[str, str] | None) -> None:
            if found is not None:
                await self._rerun(message, found[1])

        self.around.push_screen(PickScreen(self.around.commands.models(), *self.around.who(), only_models=True), picked)

    async def _rerun(self, message: Message, model: str) -> None:
        self.dismiss(None)
        await self.around.commands.again(message.id, model)

    def action_compare(self) -> None:
        """Two versions of it beside each other."""
        if (message := self.chosen()) is None:
            return
        if not (found := nearest_versions(self._follower.state.tree, message.id)):
            self.around.tell(self._said.nothing_to_compare)
            return
        self.around.push_screen(CompareScreen(self._follower.state, found))

    def action_delete(self) -> None:
        """Hide it and what is under it, once a person has said so."""
        if (message := self.chosen()) is None:
            return
        count = sum(1 for _ in self._follower.state.tree.below(message.id)) - 1

        async def agreed(yes: bool | None) -> None:
            if yes:
                await self.around.attempt(self._follower.session.delete(message.id))

        about = self._said.delete_what.format(count=count) if count else self._said.delete_last
        self.around.push_screen(Confirm(self._said.delete, about), agreed)
