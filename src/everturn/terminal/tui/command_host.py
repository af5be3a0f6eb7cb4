"""What commands use of the app and of the conversation screen."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from textual.screen import Screen

from everturn import api
from everturn.core.options import PermissionMode
from everturn.core.parts import ContextPart, FilesPart
from everturn.terminal.tui.composer import Composer
from everturn.terminal.tui.host import Host
from everturn.terminal.tui.mcp_offers import McpOfferList
from everturn.terminal.tui.transcript import Transcript

T = TypeVar("T")


class ConversationView(Protocol):
    """The conversation screen, as commands see it."""

    @property
    def composer(self) -> Composer:
        """The input."""
        ...

    @property
    def transcript(self) -> Transcript:
        """The conversation."""
        ...

    def draw(self) -> None:
        """Draw the lines around the conversation again."""
        ...

    def show_own_command(self, command: str) -> None:
        """Show that a `!command` runs; "": it has ended."""
        ...


class CommandHost(Host, Protocol):
    """The app, as commands see it."""

    agent: str  # choice for the next message; "": the default
    model: str
    mode: PermissionMode
    attached: list[api.FileView]  # files of the next message
    contexts: list[ContextPart]  # outputs of commands that go with the next message
    folder: api.FolderView | None  # the folder that this terminal works in
    editing: str  # the message that is edited; "": none
    is_in_memory: bool  # the sessions end with this process
    prompts: list[api.PromptView]  # saved prompts
    sessions: dict[str, api.SessionView]  # known sessions
    mcp_offers: McpOfferList  # prompts and resources of MCP servers

    @property
    def chat_screen(self) -> ConversationView:
        """The conversation screen, whichever screen is on top of it."""
        ...

    async def open_session(self, session: str, leaf: str | None = None, *, keeps_text: bool = False) -> None:
        """Show another session; "" is a new one. `keeps_text`: the text in the input is meant for it, and stays."""
        ...

    def current_agent_and_model(self) -> tuple[str, str]:
        """Return the agent and the model of the next message."""
        ...

    def choose(self, agent: str = "", model: str = "") -> None:
        """Select another agent for new sessions, or another model."""
        ...

    def confirm_revert(self, part: FilesPart) -> None:
        """Ask whether to restore the files as they were before a step, and do it."""
        ...

    def mode_to_send(self) -> PermissionMode:
        """Return the permission mode of the next message."""
        ...

    async def action_help(self) -> None:
        """Show all keys."""
        ...

    async def action_new(self) -> None:
        """Begin a new session."""
        ...

    async def action_quit(self) -> None:
        """Quit, and print what is still running."""
        ...

    async def action_files(self) -> None:
        """Show the file changes, and revert them."""
        ...

    async def action_memory(self) -> None:
        """Show the memory files."""
        ...

    async def action_prompts(self, start: str = "") -> None:
        """Show the saved prompts and the instructions; `start` is the row that the cursor is on."""
        ...

    def write_input(self, text: str) -> None:
        """Replace the text in the input."""
        ...

    async def action_pick(self) -> None:
        """Choose the model or the agent."""
        ...

    async def action_context(self) -> None:
        """Show what fills the context window."""
        ...

    async def run_action(self, action: str) -> bool:
        """Run an action of the app by its name."""
        ...

    def push_screen(self, screen: Screen[T], callback: Callable[[T | None], Any] | None = None) -> object:
        """Show a screen on top of the others, and call back with its result."""
        ...

    def run_worker(self, work: Coroutine[Any, Any, None], *, exit_on_error: bool = True) -> object:
        """Run something beside everything else."""
        ...
