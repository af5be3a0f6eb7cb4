"""Session updates: renames, pins, archives or labels a session, and waits until its log says so."""

from __future__ import annotations

from collections.abc import Iterable

from everturn.base_app import BaseApp
from everturn.chat.commands import carry_out
from everturn.chat.replies import checked_name
from everturn.core.commands import UpdateSession
from everturn.core.session_parameters import SessionParameters, check_parameters
from everturn.core.titles import check_labels, check_title
from everturn.errors import ConfigError

NO_CHANGE = "say what changes: title, pinned, archived, labels or parameters"


def build_update(
    key: str,
    session: str,
    tenant: str,
    at: float,
    *,
    title: str | None = None,
    pinned: bool | None = None,
    archived: bool | None = None,
    labels: Iterable[str] | None = None,
    parameters: SessionParameters | None = None,
    by: str = "",
) -> UpdateSession:
    """Build the command that changes how a session is listed, or its parameters; None leaves a field as it is.

    Raises:
        ConfigError: nothing changes, or the title or a label is not valid.
    """
    if title is None and pinned is None and archived is None and labels is None and parameters is None:
        raise ConfigError(NO_CHANGE)
    if isinstance(labels, str):
        raise ConfigError("labels must be a list: labels=['work']")
    return UpdateSession(
        key=key,
        session=session,
        tenant=tenant,
        at=at,
        title=None if title is None else check_title(title),
        pinned=pinned,
        archived=archived,
        labels=None if labels is None else check_labels(labels),
        parameters=None if parameters is None else check_parameters(parameters),
        by=checked_name(by),
    )


async def update_session(app: BaseApp, command: UpdateSession) -> None:
    """Carry out an update, and wait until the log has it.

    Raises:
        UnknownSession: the session does not exist.
    """
    await carry_out(app, command)
