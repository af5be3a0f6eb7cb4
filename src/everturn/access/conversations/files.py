"""File access: uploads, the blobs that a session refers to, and reverting files that a session changed."""

from __future__ import annotations

from msgspec.structs import replace

from everturn import api
from everturn.access.context.role_redaction import redact_event
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, is_id
from everturn.access.conversations.upload_handles import encode_handle, sanitize_file_name, sanitize_media_type
from everturn.core.context.documents import StoredDocument
from everturn.core.events import FilesChanged, FilesReverted, SubagentStarted
from everturn.core.parts import FilesPart
from everturn.core.tenants.encryption import blobs_of_tenant
from everturn.errors import ConfigError, UnknownFile, UnknownMessage
from everturn.stores.blob_refs import referenced_blobs


class FileAccess:
    """Access to files."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("member")
    async def upload(self, data: bytes, media_type: str, name: str) -> api.FileView:
        """Store a file that a message can name. The returned handle is valid for this tenant only."""
        limit = self.scope.server_context.agents.limits(self.scope.principal.tenant).uploads
        if limit and len(data) > limit:
            raise ConfigError(f"a file has at most {limit:,} bytes; this has {len(data):,}")
        self.scope.server_context.meter.count_upload(self.scope.principal.tenant, len(data))
        part = await self.scope.chat("files").attach(data, sanitize_media_type(media_type), sanitize_file_name(name))
        key = await self.scope.server_context.accounts.keys.first("files")
        problem = ""
        if part.text:
            text = await self.scope.chat("files").read(replace(part, blob=part.text))
            problem = StoredDocument(text).info.problem
        return api.FileView(file=encode_handle(key, self.scope.principal.tenant, part), part=part, problem=problem)

    @needs("viewer")
    async def read(self, session: str, blob: str) -> bytes:
        """The bytes of a blob that a session refers to. Private values and reviewed results need an approver."""
        await self.scope.readable_session(session)
        if not is_id(blob):
            raise UnknownFile("there is no such file")
        with self.scope.tenant_scope():
            is_there = await self.scope.store.refers_to_blob(session, blob)
        if not is_there or (self.scope.is_redacted and not await self._is_visible_to_all(session, blob)):
            raise UnknownFile("there is no such file")
        try:
            with blobs_of_tenant(self.scope.principal.tenant):
                return await self.scope.store.blob(blob)
        except UnknownMessage:
            raise UnknownFile("there is no such file") from None

    async def _is_visible_to_all(self, session: str, blob: str) -> bool:
        """Whether a session, or one of its sub-agents, refers to a blob in an event that is not redacted."""
        pending, seen = [session], {session}
        while pending:
            for entry in await self.scope.readable_events(pending.pop()):
                if blob in referenced_blobs(redact_event(entry.event)):
                    return True
                if isinstance(entry.event, SubagentStarted) and entry.event.session not in seen:
                    seen.add(entry.event.session)
                    pending.append(entry.event.session)
        with self.scope.tenant_scope():  # commands that were sent and not processed yet
            return any(blob in referenced_blobs(command) for command in await self.scope.store.inbox(session))

    @needs("approver")
    async def revert(self, session: str, reverted: api.RevertFiles) -> api.RevertView:
        """Revert files to a tree. It must have been recorded in this session, for this root."""
        await self.scope.own_root_session(session)
        with self.scope.tenant_scope():
            log = await self.scope.store.indexed_events(session, "files", reverted.root)
        trees = {
            tree
            for entry in log
            if isinstance(entry.event, FilesChanged | FilesReverted)
            for tree in (entry.event.before, entry.event.after)
        }
        if reverted.tree not in trees or (reverted.root and not reverted.tree):
            raise UnknownFile("these files were never recorded here")
        files = FilesPart(0, before=reverted.tree, after="", root=reverted.root)
        done = await self.scope.chat(session).revert(files, by=self.scope.principal.user)
        await self.scope.audit_action("files.revert", session, root=reverted.root, tree=reverted.tree)
        return api.RevertView(reverted=done)
