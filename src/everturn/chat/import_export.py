"""Import and export of conversations: the result of an import, and the files of an export."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from everturn.core.canonical_json import hash_values
from everturn.core.messages import Message
from everturn.core.parts import FilePart, ToolPart
from everturn.core.store_ports import Store
from everturn.errors import UnknownMessage


class ImportedMessages(Struct, frozen=True):
    """What an import added to the session, and what it did not take over."""

    messages: tuple[Message, ...]
    instructions: str = ""  # the system prompts in the list; they were not imported
    warnings: tuple[str, ...] = ()  # what was left out, and where
    is_new: bool = True  # False: it was imported before, with the same key


def import_id(session: str, key: str) -> str:
    """The prefix of the ids of imported messages: the same for a repeat, so that it is the same command."""
    return f"imp_{hash_values(session, key)[:24]}"


async def read_files(store: Store, messages: Iterable[Message]) -> dict[str, bytes]:
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
