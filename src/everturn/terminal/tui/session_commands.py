"""Commands that organize the session on the screen: `/rename`, `/pin`, `/archive` and `/label`."""

from __future__ import annotations

from typing import Final, Protocol

from everturn import api
from everturn.core.canonical_json import replace_surrogates
from everturn.terminal.tui.host import Host
from everturn.terminal.tui.texts.sessions import get_session_texts


class SessionHost(Host, Protocol):
    """The app, as these commands see it."""

    sessions: dict[str, api.SessionView]  # known sessions


SESSION_COMMANDS: Final = frozenset(("/rename", "/pin", "/archive", "/label"))


async def run_session_command(app: SessionHost, word: str, rest: str) -> None:
    """Rename the session, pin or archive it (or undo that), or set its labels."""
    texts = get_session_texts(app.language)
    if app.follower is None:
        return app.show_message(texts.no_session)
    remote, rest = app.follower.session, replace_surrogates(rest)
    before = await app.attempt(remote.info())
    if before is None:
        return None
    match word:
        case "/rename" if not rest:
            return app.show_message(texts.which_title)
        case "/rename":
            changed, done = await app.attempt(remote.update(title=rest)), texts.renamed
        case "/pin":
            changed = await app.attempt(remote.update(pinned=not before.pinned))
            done = texts.unpinned if before.pinned else texts.pinned
        case "/archive":
            changed = await app.attempt(remote.update(archived=not before.archived))
            done = texts.unarchived if before.archived else texts.archived
        case _:
            labels = [label.strip() for label in rest.split(",") if label.strip()]
            changed, done = await app.attempt(remote.update(labels=labels)), texts.labelled
            done = done.format(labels=", ".join(labels)) if labels else texts.unlabelled
    if changed is not None:
        app.sessions[changed.id] = changed
        app.show_message(done)
    return None


def listed_first(views: list[api.SessionView]) -> list[api.SessionView]:
    """Sort sessions as lists show them: pinned ones first, then the last used; without archived ones."""
    shown = (view for view in views if not view.parent and not view.archived)
    return sorted(shown, key=lambda view: (not view.pinned, -view.updated))
