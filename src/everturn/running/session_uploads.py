"""Uploads of a session: reads them from its log once per drive, and writes each change before it returns."""

from __future__ import annotations

from everturn.core.events import FileUploadChanged
from everturn.core.file_uploads import MARGIN, FileUpload, UploadRegister, fold_uploads
from everturn.running.active_turn import ActiveTurn


class SessionUploads(UploadRegister):
    """The uploads of the session of a turn."""

    def __init__(self, run: ActiveTurn) -> None:
        self._run = run
        self._uploads: dict[tuple[str, str], FileUpload] | None = None

    async def find(self, blob: str, account: str) -> FileUpload | None:
        """Return the newest upload of a file to an account, unless it is gone or about to expire."""
        found = (await self._known()).get((blob, account))
        if found is None or found.state == "gone" or (found.expires and found.expires - MARGIN < self._run.now()):
            return None
        return found

    async def start(self, blob: str, account: str) -> FileUpload:
        """Write down that a file is about to be uploaded."""
        upload = FileUpload(self._run.setup.ids.new("upload"), blob, account)
        await self.change(upload)
        return upload

    async def change(self, upload: FileUpload) -> None:
        """Write down what became of an upload."""
        known, run = await self._known(), self._run
        event = FileUploadChanged(
            turn=run.turn,
            at=run.now(),
            upload=upload.id,
            state=upload.state,
            blob=upload.blob,
            account=upload.account,
            reference=upload.reference,
            expires=upload.expires,
        )
        await run.commit([event])
        known[upload.blob, upload.account] = upload

    async def _known(self) -> dict[tuple[str, str], FileUpload]:
        if self._uploads is None:
            run = self._run
            found = await run.setup.store.indexed_events(run.session, "upload")
            self._uploads = fold_uploads(entry.event for entry in found)
        return self._uploads
