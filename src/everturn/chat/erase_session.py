"""Erasure of a session, and of what was uploaded for it to providers.

The providers are asked after the session is erased, best effort: what one of them did not delete is returned, for the
audit log, and the provider deletes it by itself when the lifetime of the upload ends.
"""

from __future__ import annotations

import logging

from everturn.base_app import BaseApp
from everturn.core.events import AnswerStarted, FileUploadChanged, SubagentStarted, TurnStarted
from everturn.core.file_uploads import AccountUploads, FileUpload, fold_uploads, uploads_of
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, EverturnError, UnknownSession

log = logging.getLogger(__name__)


async def erase_session(app: BaseApp, session: str) -> list[FileUpload]:
    """Erase a session with its sub-agent runs; return the uploads that a provider did not delete.

    Raises:
        SessionBusy: a turn is running; cancel it first.
        UnknownSession: the session never existed.
    """
    uploads, models = await _uploads_of_session(app.store, session)
    await app.store.erase(session)
    accounts: dict[str, AccountUploads] = {}
    for name in models if uploads else ():
        try:
            accounts.update((account.account, account) for account in uploads_of(app.model_for(name)))
        except ConfigError:  # this process does not have the model any more
            continue
    left: list[FileUpload] = []
    for upload in uploads:
        try:
            if (account := accounts.get(upload.account)) is None:
                raise ConfigError("no model here has its API key")
            await account.delete(upload)
        except EverturnError as error:
            log.warning("upload %s is left at its provider until it expires: %s", upload.id, error)
            left.append(upload)
    return left


async def _uploads_of_session(store: Store, session: str) -> tuple[list[FileUpload], set[str]]:
    """The uploads that a provider may still have, and the models of their turns; with those of sub-agent runs."""
    found, models, waiting, seen = list[FileUpload](), set[str](), [session], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            events = [entry.event for entry in await store.indexed_events(name, "upload")]
            children = [entry.event for entry in await store.indexed_events(name, "subagent")]
        except UnknownSession:
            continue
        waiting += [event.session for event in children if isinstance(event, SubagentStarted)]
        found += [upload for upload in fold_uploads(events).values() if upload.state in ("started", "ready")]
        for turn in {event.turn for event in events if isinstance(event, FileUploadChanged)}:
            for entry in await store.events(name, turn=turn):
                if isinstance(entry.event, TurnStarted):
                    models.add(entry.event.options.model)
                elif isinstance(entry.event, AnswerStarted):
                    models.add(entry.event.message.by)
    return found, models
