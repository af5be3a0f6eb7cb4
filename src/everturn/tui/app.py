"""The app: the keys that hold everywhere, and the screens that they open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from msgspec.structs import replace
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from everturn.tui import settings
from everturn.tui.hosting import Hosting, state_of
from everturn.tui.keys import bindings_of, spelt
from everturn.tui.looks import CSS
from everturn.tui.side import Side
from everturn.tui.talking import LOW
from everturn.tui.words.app import words


class EverturnApp(Hosting):
    """A face for a server: it draws events, sends commands and decides nothing."""

    TITLE = "everturn"
    CSS = CSS
    VERTICAL_BREAKPOINTS = [(0, "-low"), (LOW, "-high")]  # noqa: RUF012 - as Textual has it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "help", "help"),
        Binding("ctrl+p", "command_palette", "command_palette", priority=True),
        Binding("ctrl+q", "quit", "quit", priority=True),
        Binding("ctrl+n", "new", "new"),
        Binding("ctrl+o", "sessions", "sessions"),
        Binding("ctrl+g", "gate", "gate"),
        Binding("ctrl+b", "branches", "branches"),
        Binding("ctrl+l", "pick", "pick"),
        Binding("f2", "side", "side", show=False),
    ]

    # Keys --------------------------------------------------------------------------------------------------------------

    async def action_new(self) -> None:
        """Begin a new session."""
        self._to_talk()
        await self.open_session("")

    def _to_talk(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    async def action_help(self) -> None:
        """All keys."""
        from everturn.tui.helping import HelpScreen

        self.push_screen(HelpScreen())

    async def action_sessions(self) -> None:
        """All sessions."""
        from everturn.tui.sessions import SessionsScreen

        self.push_screen(SessionsScreen())

    async def action_gate(self) -> None:
        """The question that stands here; or all of them, wherever they stand."""
        gates = self.gates_here()
        if gates and self.screen is self.talk:
            self.talk.open_gate(gates[0])
        else:
            await self.action_inbox()

    async def action_inbox(self) -> None:
        """All questions."""
        from everturn.tui.inbox import InboxScreen

        if not isinstance(self.screen, InboxScreen):
            self.push_screen(InboxScreen())

    async def action_permissions(self) -> None:
        """What is allowed."""
        from everturn.tui.permissions import PermissionsScreen

        self.push_screen(PermissionsScreen())

    async def action_servers(self) -> None:
        """MCP servers."""
        from everturn.tui.servers import ServersScreen

        self.push_screen(ServersScreen())

    async def action_branches(self) -> None:
        """Versions of messages, and what can be done with them."""
        from everturn.tui.branches import BranchesScreen

        if self.follower is not None:
            self.push_screen(BranchesScreen(self.follower, self.picked))

    async def action_compare(self) -> None:
        """Two answers beside each other."""
        from everturn.tui.comparing import CompareScreen, versioned

        if self.follower is not None:
            message = versioned(self.follower.state, self.picked)
            self.push_screen(CompareScreen(self.follower.state, message))

    async def action_files(self) -> None:
        """What was done to files, and back."""
        from everturn.tui.reverting import FilesScreen

        if self.follower is not None:
            self.push_screen(FilesScreen(self.follower))

    async def action_pick(self) -> None:
        """Who answers."""
        from everturn.tui.picking import PickScreen

        def picked(found: tuple[str, str] | None) -> None:
            if found is not None:
                self.choose(**{found[0]: found[1]})

        self.push_screen(PickScreen(self.commands.models(), *self.who()), picked)

    async def action_usage(self) -> None:
        """What was used."""
        from everturn.tui.usage import UsageScreen

        self.push_screen(UsageScreen())

    async def action_settings(self) -> None:
        """What a person likes."""

        async def liked(found: tuple[str, str] | None) -> None:
            if found is not None:
                await self.like(*found)

        self.push_screen(settings.SettingsScreen(), liked)

    async def like(self, what: str, value: str) -> None:
        """Take it, and keep it for the next time."""
        if what == "theme":
            self.theme = value
            self.liked = replace(self.liked, theme=value)
        else:
            self.language = "zh" if value == "zh" else "en"
            self.liked = replace(self.liked, language=self.language)
            self.talk.say_anew()
            self.talk.transcript.show(state_of(self.follower), None)
            self.draw()
        settings.save(self.liked)

    async def action_again(self) -> None:
        """Another answer."""
        await self.commands.again()

    async def action_export(self) -> None:
        """Write this session to a file."""
        await self.commands.export("")

    def action_side(self) -> None:
        """Sessions beside it, or not."""
        self.talk.query_one(Side).toggle(self.size.width)
        self.draw()

    async def action_quit(self) -> None:
        """Leave, and say what still runs."""
        said = words(self.language)
        awake = [view for view in self.sessions.values() if view.is_awake and not view.above]
        waiting = {one.session for one in self.waits}
        if self.is_in_memory and self.sessions:
            self.farewell.append(said.gone)
        if self.is_here and not self.is_in_memory and (count := sum(view.id not in waiting for view in awake)):
            self.farewell.append(said.still_runs.format(count=count))
        if self.waits and not self.is_in_memory:
            text = said.still_waits_one if len(self.waits) == 1 else said.still_waits
            self.farewell.append(text.format(count=len(self.waits)))
        self.exit(0)

    def action_help_quit(self) -> None:
        """Ctrl+C is a habit: say which key leaves, in this language."""
        self.tell(words(self.language).press_quit)

    async def on_unmount(self) -> None:
        """Listen no more."""
        if self.follower is not None:
            await self.follower.aclose()

    def action_command_palette(self) -> None:
        """All that can be done, to be searched."""
        from textual.command import CommandPalette

        if not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandPalette(placeholder=words(self.language).palette, id="--command-palette"))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """All that can be done, by its name."""
        said = words(self.language)
        keys = {one.action: spelt(one.key) for one in bindings_of(type(self))}
        for name, title in said.keys.items():
            if (action := getattr(self, f"action_{name}", None)) is not None and name != "command_palette":
                yield SystemCommand(f"{title} · {keys[name]}" if name in keys else title, "", action)
