"""Terminal app: the global keys, and the screens that they open."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar, cast

from msgspec.structs import replace
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from everturn.core.parts import FilesPart
from everturn.localization import format_text
from everturn.terminal.text.prompt_history import history_path, load_history
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui import settings
from everturn.terminal.tui.app_base import AppBase, state_of
from everturn.terminal.tui.chat import MIN_TALL_HEIGHT
from everturn.terminal.tui.chat_host import ChatHost
from everturn.terminal.tui.host import Language
from everturn.terminal.tui.key_bar import format_key, own_bindings
from everturn.terminal.tui.sidebar import Sidebar
from everturn.terminal.tui.texts.app import get_app_texts
from everturn.terminal.tui.texts.context import get_context_texts
from everturn.terminal.tui.texts.folder import get_folder_texts
from everturn.terminal.tui.texts.screens import get_screen_texts
from everturn.terminal.tui.themes import CSS


class TerminalApp(AppBase):
    """Full-screen client of a server: it draws events, sends commands and decides nothing."""

    TITLE = "everturn"
    CSS = CSS
    VERTICAL_BREAKPOINTS = [(0, "-low"), (MIN_TALL_HEIGHT, "-high")]  # noqa: RUF012 - as Textual has it
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
        Binding("ctrl+r", "history", "history", show=False),
    ]

    # Keys --------------------------------------------------------------------------------------------------------------

    async def action_new(self) -> None:
        """Begin a new session."""
        self._close_screens()
        await self.open_session("")

    def _close_screens(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    async def action_help(self) -> None:
        """Show all keys."""
        from everturn.terminal.tui.help import HelpScreen

        self.push_screen(HelpScreen())

    async def action_sessions(self) -> None:
        """Show all sessions."""
        from everturn.terminal.tui.sessions import SessionsScreen

        self.push_screen(SessionsScreen())

    async def action_gate(self) -> None:
        """Open the first gate of this session, or the inbox if it has none."""
        gates = self.gates_of_session()
        if gates and self.screen is self.chat_screen:
            self.chat_screen.open_gate(gates[0])
        else:
            await self.action_inbox()

    async def action_inbox(self) -> None:
        """Show the open gates of all sessions."""
        from everturn.terminal.tui.inbox import InboxScreen

        if not isinstance(self.screen, InboxScreen):
            self.push_screen(InboxScreen())

    async def action_permissions(self) -> None:
        """Show rules, tools and grants."""
        from everturn.terminal.tui.permissions import PermissionsScreen

        self.push_screen(PermissionsScreen(self.current_agent_and_model()[0]))

    async def action_servers(self) -> None:
        """Show the MCP servers."""
        from everturn.terminal.tui.mcp_servers import ServersScreen

        self.push_screen(ServersScreen())

    async def action_memory(self) -> None:
        """Show the memory files."""
        from everturn.terminal.tui.memory import MemoryScreen

        self.push_screen(MemoryScreen())

    async def action_prompts(self, start: str = "") -> None:
        """Show the saved prompts and the instructions; `start` is the row that the cursor is on."""
        from everturn.terminal.tui.prompt_commands import use_prompt
        from everturn.terminal.tui.prompts import PromptsScreen

        async def left(name: str | None) -> None:
            prompts = await self.attempt(self.server.prompts())
            self.prompts = self.prompts if prompts is None else prompts
            if name:
                use_prompt(self, name, "")

        self.push_screen(PromptsScreen(start), left)

    async def action_branches(self) -> None:
        """Show the versions of messages."""
        from everturn.terminal.tui.branches import BranchesScreen

        if self.follower is not None:
            self.push_screen(BranchesScreen(self.follower, self.picked))
            self.run_worker(self.follower.load_earlier(all_turns=True), exit_on_error=False)

    async def action_compare(self) -> None:
        """Show two answers side by side."""
        from everturn.terminal.tui.compare import CompareScreen, find_versioned

        if self.follower is not None:
            message = find_versioned(self.follower.state, self.picked)
            self.push_screen(CompareScreen(self.follower.state, message))

    async def action_files(self) -> None:
        """Show the file changes, and revert them."""
        from everturn.terminal.tui.revert import FilesScreen

        if self.follower is not None:
            await self.follower.load_earlier(all_turns=True)
            self.push_screen(FilesScreen(self.follower))

    def confirm_revert(self, part: FilesPart) -> None:
        """Ask whether to restore the files as they were before a step, and do it."""
        from everturn.terminal.tui.revert import confirm_revert

        if self.follower is not None:
            confirm_revert(cast("ChatHost", self), self.follower, part, before=True)

    async def action_pick(self) -> None:
        """Choose the model or the agent."""
        from everturn.terminal.tui.picker import PickerScreen

        def picked(choice: tuple[str, str] | None) -> None:
            if choice is not None:
                self.choose(**{choice[0]: choice[1]})

        self.push_screen(PickerScreen(self.commands.completion.models(), *self.current_agent_and_model()), picked)

    async def action_history(self) -> None:
        """Search the messages that were sent earlier, and put one into the input."""
        from everturn.terminal.tui.history_search import HistorySearchScreen

        entries = load_history(history_path())
        if not entries:
            return self.show_message(get_screen_texts(self.language).no_history)

        def picked(text: str | None) -> None:
            if text:
                self.write_input(text)

        self.push_screen(HistorySearchScreen(entries, self.chat_screen.composer.text.strip()), picked)
        return None

    async def action_context(self) -> None:
        """Show what fills the context window."""
        from everturn.terminal.tui.context import ContextScreen

        if self.follower is None:
            return self.show_message(get_context_texts(self.language).nothing_yet)

        async def closed(wants_compaction: bool | None) -> None:
            if wants_compaction:
                await self.commands.compact()

        self.push_screen(ContextScreen(self.follower), closed)
        return None

    async def action_compact(self) -> None:
        """Summarise the earlier part of the conversation."""
        await self.commands.compact()

    async def action_usage(self) -> None:
        """Show the usage."""
        from everturn.terminal.tui.usage import UsageScreen

        self.push_screen(UsageScreen())

    async def action_settings(self) -> None:
        """Show the settings."""

        async def apply_setting(choice: tuple[str, str] | None) -> None:
            if choice is not None:
                await self.like(*choice)

        self.push_screen(settings.SettingsScreen(), apply_setting)

    async def like(self, setting: str, value: str) -> None:
        """Apply a setting, and save it for the next run."""
        if setting == "theme":
            self.theme = value
            self.user_settings = replace(self.user_settings, theme=value)
        else:
            self.language: Language = "zh" if value == "zh" else "en"
            self.user_settings = replace(self.user_settings, language=self.language)
            self.chat_screen.refresh_texts()
            self.chat_screen.transcript.show(state_of(self.follower), None)
            self.draw()
        settings.save_user_settings(self.user_settings)

    async def action_again(self) -> None:
        """Regenerate the last answer."""
        await self.commands.regenerate()

    async def action_export(self) -> None:
        """Write this session to a file."""
        await self.commands.files.export("")

    def action_side(self) -> None:
        """Show or hide the sidebar."""
        self.chat_screen.query_one(Sidebar).toggle(self.size.width)
        self.draw()

    async def action_quit(self) -> None:
        """Quit, and print what is still running."""
        texts = get_app_texts(self.language)
        awake = [view for view in self.sessions.values() if view.is_awake and not view.parent]
        waiting = {gate.session for gate in self.inbox_gates}
        if self.is_in_memory and self.sessions:
            self.exit_messages.append(texts.gone)
        if self.is_here and not self.is_in_memory and (count := sum(view.id not in waiting for view in awake)):
            self.exit_messages.append(format_text(texts.still_runs, n=count))
        if self.inbox_gates and not self.is_in_memory:
            self.exit_messages.append(format_text(texts.still_waits, n=len(self.inbox_gates)))
        if self.folder is not None and self.follower is not None and not self.is_in_memory:
            text = get_folder_texts(self.language).come_back
            self.exit_messages.append(text.format(session=self.follower.id))
        self.exit(0)

    def action_help_quit(self) -> None:
        """Ctrl+C is a habit: show which key quits, in the user's language."""
        self.show_message(get_app_texts(self.language).press_quit)

    async def on_unmount(self) -> None:
        """Stop following the session."""
        if self.follower is not None:
            await self.follower.aclose()

    def action_command_palette(self) -> None:
        """Open the command palette."""
        from textual.command import CommandPalette

        if not isinstance(self.screen, CommandPalette):
            palette = CommandPalette(placeholder=get_app_texts(self.language).palette, id="--command-palette")
            self.buffer_keys_for(palette)
            self.push_screen(palette)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield every action by its name, for the command palette."""
        texts = get_app_texts(self.language)
        keys = {binding.action: format_key(binding.key) for binding in own_bindings(type(self))}
        for name, title in texts.keys.items():
            if (action := getattr(self, f"action_{name}", None)) is not None and name != "command_palette":
                yield SystemCommand(f"{title} · {keys[name]}" if name in keys else title, "", action)
        for command, about in self.commands.completion.slash_commands().items():
            if command not in texts.slash:
                yield SystemCommand(command, escape_prose(about), partial(self.write_input, f"{command} "))
