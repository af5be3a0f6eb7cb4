"""Assistant in a folder: opens the folder at the server, chooses the session to continue, and keeps the permission mode."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final, Literal, Protocol

from msgspec import Struct
from rich.cells import cell_len
from textual.content import Content

from everturn import api
from everturn.config.folder.project import display_agent_name
from everturn.core.options import PERMISSION_MODES, PermissionMode
from everturn.core.phases import Phase
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.host import Host, Language
from everturn.terminal.tui.state import SessionState
from everturn.terminal.tui.texts.folder import get_folder_texts

PAGE: Final = 100  # sessions of a page, of which the ones of the folder are taken
MAX_PAGES: Final = 5
LAST, PICK = "last", "pick"  # the values of `FolderStart.resume` that are no session


class FolderStart(Struct, frozen=True):
    """How `everturn` was started in a folder. `resume` is a session, `last`, `pick`, or "" for a new one."""

    path: str
    mode: PermissionMode = ""  # "": the one of the configuration
    resume: str = ""


class FolderHost(Host, Protocol):
    """The app, as this module sees it."""

    agent: str
    mode: PermissionMode
    folder: api.FolderView | None


async def open_folder(app: FolderHost, start: FolderStart, *, is_first: bool) -> None:
    """Open the folder at the server of the store; its agent has the sessions that are started here."""
    opened = await app.attempt(app.server.open_folder(start.path))
    if opened is None:
        app.show_message(get_folder_texts(app.language).no_folder, "warning")
        return
    app.folder = opened
    if is_first:
        app.agent = opened.agent
        app.mode = start.mode or opened.mode
        if start.resume:  # a new session shows the notes above its input, for as long as it has no message
            for note in opened.notes:
                app.show_message(note, "warning")


async def find_session(app: FolderHost, start: FolderStart) -> str:
    """Return the session to begin with; "": a new one."""
    texts = get_folder_texts(app.language)
    if start.resume not in (LAST, PICK):
        return start.resume
    if start.resume == PICK or app.folder is None:
        return ""
    before = ""
    for _ in range(MAX_PAGES):
        page = await app.attempt(app.server.sessions(PAGE, before))
        if page is None:
            return ""
        for view in page.sessions:
            if view.agent == app.folder.agent and not view.parent:
                return view.id
        before = page.next
        if not before:
            break
    app.show_message(texts.no_session)
    return ""


def describe_start(
    folder: api.FolderView, model: str, mode: PermissionMode, language: Language, *, only_notes: bool = False
) -> Content:
    """Describe what a new session in a folder begins with: the folder, the model, the mode, and what is missing."""
    texts = get_folder_texts(language)
    values = {
        texts.start_folder: folder.label,
        texts.start_model: model or "-",
        texts.start_mode: texts.mode_now[mode or "ask"],
    }
    width = max(cell_len(name) for name in values)
    rows = [
        Content.assemble((name + " " * (width - cell_len(name)), "$text-muted"), f"  {escape_prose(value)}")
        for name, value in values.items()
        if not only_notes
    ]
    rows += [Content.styled(f"! {escape_prose(note)}", "$text-warning") for note in folder.notes]
    return Content("\n").join(rows)


def agent_label(agents: api.AgentList, name: str) -> str:
    """Return what people call an agent: the agent of a folder has the folder's name and a hash, and is called by the folder."""
    view = next((view for view in agents.agents if view.name == name), None)
    if view is not None:
        return PurePath(view.folder).name or name
    return display_agent_name(name)  # of a folder that no terminal has open


def next_mode(mode: PermissionMode, modes: list[str]) -> PermissionMode:
    """Return the mode after this one, of those that an agent has."""
    known: list[PermissionMode] = [name for name in PERMISSION_MODES if str(name) in modes]
    if not known:
        return ""
    return known[(known.index(mode) + 1) % len(known)] if mode in known else known[0]


def pending_question(state: SessionState | None) -> Literal["", "step_limit", "plan_ready"]:
    """Return what an empty Enter answers: whether to continue after the step limit, or to carry out a plan."""
    if state is None or not state.turns or state.running is not None:
        return ""
    turn = state.turns[next(reversed(state.turns))]
    if turn.phase is not Phase.COMPLETED:
        return ""
    if turn.step is not None and turn.step.closing and turn.limit is None and not turn.limit_gate:
        return "step_limit"
    return "plan_ready" if turn.options.mode == "plan" else ""
