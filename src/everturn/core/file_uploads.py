"""File uploads: files that were uploaded to a provider, as the log of a session has them.

Every change is in the log before what follows it: an upload before it is sent, a reference before the request that uses
it. So a process that takes a turn over knows each upload that may have happened. A reference belongs to one session and
to one account, the provider with its address and API key; nothing else ever reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from msgspec import Struct

from everturn.core.events import Event, FileUploadChanged, UploadState

MARGIN: Final = 3600.0  # seconds before its end from which a reference is not used any more: an answer may take long


class FileUpload(Struct, frozen=True):
    """The newest upload of a file to an account."""

    id: str
    blob: str
    account: str
    state: UploadState = "started"
    reference: str = ""
    expires: float = 0.0


def fold_uploads(events: Iterable[Event]) -> dict[tuple[str, str], FileUpload]:
    """The newest upload of each blob to each account."""
    uploads: dict[tuple[str, str], FileUpload] = {}
    for event in events:
        if isinstance(event, FileUploadChanged):
            uploads[event.blob, event.account] = FileUpload(
                event.upload, event.blob, event.account, event.state, event.reference, event.expires
            )
    return uploads


@dataclass(init=False, repr=False)
class UploadRegister:
    """The uploads of a session, as an adapter of a model reads and writes them.

    A dataclass without fields: a request with it is compared, encoded and hashed as if it were not there.
    """

    async def find(self, blob: str, account: str) -> FileUpload | None:
        """The newest upload of a file to an account, unless it is gone or about to expire."""
        raise NotImplementedError

    async def start(self, blob: str, account: str) -> FileUpload:
        """Write down that a file is about to be uploaded."""
        raise NotImplementedError

    async def change(self, upload: FileUpload) -> None:
        """Write down what became of an upload."""
        raise NotImplementedError


class AccountUploads(Protocol):
    """The uploads to one account, as its adapter deletes them."""

    @property
    def account(self) -> str:
        """The hash of the provider, its address and the API key."""
        ...

    async def delete(self, upload: FileUpload) -> None:
        """Delete an upload at the provider.

        Raises:
            ModelError: the provider did not delete it.
        """
        ...


def uploads_of(model: object) -> tuple[AccountUploads, ...]:
    """The accounts to which a model uploads files; none if it sends them inline."""
    return getattr(model, "uploads", ())


__all__ = ["MARGIN", "AccountUploads", "FileUpload", "UploadRegister", "fold_uploads", "uploads_of"]
