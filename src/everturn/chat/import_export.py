"""Import and export of conversations, as message lists of other libraries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from everturn.base_app import BaseApp
from everturn.chat.commands import carry_out
from everturn.chat.tree import read_tree
from everturn.core.canonical_json import hash_values
from everturn.core.commands import ImportMessages
from everturn.core.history import render_history
from everturn.core.messages import Message
from everturn.core.parts import FilePart, ToolPart
from everturn.core.store_ports import Store
from everturn.core.tenants.encryption import blobs_of_tenant
from everturn.errors import ConfigError, UnknownMessage
from everturn.message_formats import MessageFormat, read_messages, write_messages


class ImportedMessages(Struct, frozen=True):
    """What an import added to the session, and what it did not take over."""

    messages: tuple[Message, ...]
    instructions: str = ""  # the system prompts in the list; they were not imported
    warnings: tuple[str, ...] = ()  # what was left out, and where
    is_new: bool = True  # False: it was imported before, with the same key


async def import_conversation(
    app: BaseApp,
    messages: object,
    format: MessageFormat | None,
    *,
    session: str,
    tenant: str,
    at: float,
    key: str,
    parent: str | None,
    at_leaf: bool,
    by: str,
) -> ImportedMessages:
    """Add a message list to a session, which is created if it does not exist, and wait until its log has it.

    Raises:
        ConfigError: this is not a message list, or nothing in it can be imported.
        SessionBusy: a turn is running or queued.
    """
    builder = read_messages(messages, format)
    imported = builder.build(import_id(session, key))
    if not imported:
        raise ConfigError("there is no message to import" + "".join(f"; {text}" for text in builder.warnings))
    with blobs_of_tenant(tenant):
        for data in builder.files.values():
            await app.store.put_blob(data)
    command = ImportMessages(
        key=key, session=session, tenant=tenant, at=at, messages=imported, parent=parent, at_leaf=at_leaf, by=by
    )
    receipt = await carry_out(app, command)
    tree = await read_tree(app.store, session)
    placed = tuple(tree.messages[message.id] for message in imported)
    return ImportedMessages(placed, builder.system, tuple(builder.warnings), receipt.is_new)


async def export_conversation(
    store: Store, tenant: str, messages: Iterable[Message], format: MessageFormat
) -> list[dict[str, Any]]:
    """A branch as a model would be sent it, as a message list in plain JSON data."""
    messages = [message for message in messages if message.parts]
    with blobs_of_tenant(tenant):
        files = await _read_files(store, messages)
    return write_messages(render_history(messages), format, files)


def import_id(session: str, key: str) -> str:
    """The prefix of the ids of imported messages: the same for a repeat, so that it is the same command."""
    return f"imp_{hash_values(session, key)[:24]}"


async def _read_files(store: Store, messages: Iterable[Message]) -> dict[str, bytes]:
    """The content of all files in these messages; those that the store no longer has are left out."""
    files: dict[str, bytes] = {}
    for name in {file.blob for message in messages for file in _files_of(message)}:
        try:
            files[name] = await store.blob(name)
        except UnknownMessage:
            continue
    return files


def _files_of(message: Message) -> Iterable[FilePart]:
    for part in message.parts:
        if isinstance(part, FilePart):
            yield part
        elif isinstance(part, ToolPart) and part.output is not None:
            yield from part.output.attachments
