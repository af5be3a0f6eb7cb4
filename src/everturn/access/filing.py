"""Files, search, moving sessions, and what was used: as one principal may."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from everturn import api
from everturn.access.handles import handle_of, plain_name, plain_type
from everturn.access.inside import Inside, is_id
from everturn.access.needs import needs
from everturn.access.talking import session_view
from everturn.access.veiling import VEILED, veil_event
from everturn.core.canonical import clean
from everturn.core.events import CallBelow, Entry, GateOpened, TurnStarted
from everturn.core.options import Spent
from everturn.errors import ConfigError, Forbidden, UnknownFile, UnknownMessage, UnknownSession, UnreadableLog
from everturn.stores.mentions import blobs_in
from everturn.stores.portable import LOG, MANIFEST, MANIFEST_LIMIT, Manifest, export_session, import_session, open_zip

DAY = 86_400
LAST_DAY = 2_932_896  # of the year 9999: a clock may have been anywhere
MOST_FOUND = 200
LONGEST_SEARCH = 1000  # characters
MOST_EVENTS = 100_000  # of a session that is brought in: a zip of a few kilobytes may hold millions
MOST_BROUGHT = 64 * 1024 * 1024  # bytes of its log, unpacked
WHY_NOT_OUT = (
    "this session holds results that a person reviews, or private values; to export it takes the role 'approver', and "
    "yours is {role!r}"
)


class Filing(Inside):
    """What somebody may keep here, and take away."""

    @needs("member")
    async def attach(self, data: bytes, media_type: str, name: str) -> api.FileView:
        """Keep a file, to be named in a message. What it is called here is good for this tenant only."""
        most = self.house.agents.limits(self.principal.tenant).uploads
        if most and len(data) > most:
            raise ConfigError(f"a file has at most {most:,} bytes; this has {len(data):,}")
        self.house.meter.upload(self.principal.tenant, len(data))
        part = await self.chat("files").attach(data, plain_type(media_type), plain_name(name))
        secret = await self.house.secret("files")
        return api.FileView(file=handle_of(secret, self.principal.tenant, part), part=part)

    @needs("viewer")
    async def blob(self, session: str, blob: str) -> bytes:
        """The bytes of a blob that a session speaks of. What is private, or reviewed, takes an approver."""
        await self.readable(session)
        if not is_id(blob):
            raise UnknownFile("there is no such file")
        with self.within():
            is_there = await self.store.mentions(session, blob)
        if not is_there or (self.is_veiled and not await self._is_for_all(session, blob)):
            raise UnknownFile("there is no such file")
        try:
            return await self.store.blob(blob)
        except UnknownMessage:
            raise UnknownFile("there is no such file") from None

    async def _is_for_all(self, session: str, blob: str) -> bool:
        """Whether a session, or a sub-turn of it, speaks of a blob where everybody may see it."""
        left, seen = [session], {session}
        while left:
            for entry in await self._log(left.pop()):
                if blob in blobs_in(veil_event(entry.event)):
                    return True
                if isinstance(entry.event, CallBelow) and entry.event.session not in seen:
                    seen.add(entry.event.session)
                    left.append(entry.event.session)
        with self.within():  # what was sent and not acted on yet
            return any(blob in blobs_in(command) for command in await self.store.inbox(session))

    async def _log(self, session: str) -> list[Entry]:
        try:
            await self.readable(session)  # a log may name any session; only its own tenant's are read
            with self.within():
                return await self.store.events(session)
        except UnknownSession:
            return []

    @needs("viewer")
    async def search(self, text: str, limit: int = 50) -> api.FoundList:
        """Messages of the tenant that have these words."""
        text, limit = clean(text)[:LONGEST_SEARCH].replace("\0", " "), max(1, min(limit, MOST_FOUND))
        with self.within():
            found = await self.store.search(text, self.principal.tenant, limit)
        hidden = await self._hidden({session for session, _ in found})
        found = [(session, message) for session, message in found if session not in hidden]
        shown = self.shown([message for _, message in found])
        titles = {session: await self._title(session) for session in {session for session, _ in found}}
        return api.FoundList(
            found=[
                api.FoundView(session=session, message=message, title=titles[session])
                for (session, _), message in zip(found, shown, strict=True)
            ]
        )

    async def _title(self, session: str) -> str:
        """The title of a session; for that of a sub-turn, of the one at the top."""
        try:
            info = await self.own(session)
            while info.above:
                info = await self.own(info.above)
        except UnknownSession:  # erased just now
            return ""
        return info.title

    async def _hidden(self, sessions: set[str]) -> set[str]:
        """Those of some sessions that this one may not read; a sub-turn's is named after the one above it."""
        hidden: set[str] = set()
        for session in sessions if self.is_veiled else ():
            try:
                if "-" in session:
                    await self.readable(session)
            except UnknownSession:
                hidden.add(session)
        return hidden

    @needs("member")
    async def export(self, session: str, file: Path) -> None:
        """Write a session to a file, with all that is in it."""
        await self.own_top(session)
        if self.is_veiled and any(_is_for_approvers(entry) for entry in await self._log(session)):
            raise Forbidden(WHY_NOT_OUT.format(role=self.principal.role))
        with self.within():
            await export_session(self.store, session, file)
        await self.note("session.export", session)

    @needs("member")
    async def bring_in(self, file: Path) -> api.SessionView:
        """Make a session from a file. It has a new name, and nothing of it goes on by itself."""
        self.house.meter.upload(self.principal.tenant, (await asyncio.to_thread(file.stat)).st_size)
        await asyncio.to_thread(_refuse_incomplete, file)
        session = await self.fresh_session("")
        by, now = self.principal, self.house.runtime.clock.now()
        await import_session(self.store, file, session=session, tenant=by.tenant, by=by.user, now=now)
        if any(_is_sub_turn(entry) for entry in await self._log(session)):
            # What it says to be below may be anybody's, and would be counted and erased with that.
            await self.store.erase(session)
            raise UnreadableLog("this is the session of a sub-turn; only that of the turn above it can be imported")
        await self.note("session.import", session)
        return session_view(await self.own(session))

    @needs("viewer")
    async def usage(self, since: float = 0.0) -> api.UsageView:
        """What the tenant has used since a time, by day and agent."""
        if not 0 <= since < 1e12:
            raise ConfigError("since: seconds since 1970; 0 is from the beginning")
        with self.within():
            used = await self.store.used(self.principal.tenant, since)
        total = sum((spent for _, _, spent in used), Spent())
        days = [api.UsedView(day=_day(day), agent=agent, spent=spent) for day, agent, spent in used]
        return api.UsageView(since=since, total=total, days=days)


def _is_for_approvers(entry: Entry) -> bool:
    """Whether an event holds what is hidden from others."""
    veiled = veil_event(entry.event)
    return (isinstance(entry.event, GateOpened) and veiled is not entry.event) or VEILED in blobs_in(veiled)


def _is_sub_turn(entry: Entry) -> bool:
    return isinstance(entry.event, TurnStarted) and entry.event.options.above is not None


def _refuse_incomplete(file: Path) -> None:
    """Refuse a file that speaks of blobs it does not have.

    Such a blob may be here, and another tenant's: blobs are kept by their hash, and whoever speaks of one may read it.

    Raises:
        UnreadableLog: it does, or it is no exported session.
    """
    try:
        with file.open("rb") as opened, open_zip(opened) as archive:
            if archive.getinfo(MANIFEST).file_size > MANIFEST_LIMIT:
                raise UnreadableLog("its manifest is too large")
            if archive.getinfo(LOG).file_size > MOST_BROUGHT:
                raise UnreadableLog(f"its log is too long: {MOST_BROUGHT:,} bytes are the most")
            manifest = msgspec.json.decode(archive.read(MANIFEST), type=Manifest)
    except UnreadableLog:
        raise
    except Exception as error:  # a broken zip breaks in many ways
        raise UnreadableLog(f"this is no exported session: {type(error).__name__}") from None
    if manifest.head > MOST_EVENTS:
        raise UnreadableLog(f"its log is too long: {MOST_EVENTS:,} events are the most")
    if manifest.missing:
        raise UnreadableLog("it speaks of files that are not in it; export it again where they are")


def _day(day: int) -> str:
    return datetime.fromtimestamp(max(0, min(day, LAST_DAY)) * DAY, UTC).date().isoformat()
