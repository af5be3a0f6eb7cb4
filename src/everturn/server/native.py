"""The routes of our own API: each is one method of `Access`, and takes the role that this method takes."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from starlette.responses import Response

from everturn import api
from everturn.access.access import Access
from everturn.access.looking import PAGE
from everturn.access.needs import role_of
from everturn.core.following import SEQ_LIMIT, TEXT_LIMIT
from everturn.errors import UnreadableLog
from everturn.server.problems import Refusal
from everturn.server.reading import clean_text
from everturn.server.routing import Asked, Handler, Method, Param, Route

ZIP: Final = "application/zip"
BYTES: Final = "application/octet-stream"

LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": 200}
MOST: Final = {"type": "integer", "minimum": 1, "maximum": PAGE}
MESSAGE: Final = {"type": "string", "minLength": 1, "maxLength": 200}
MESSAGES: Final = 200  # of a branch, on a page
GATES: Final = 200
SEQ: Final = {"type": "integer", "minimum": 0, "maximum": SEQ_LIMIT}
TEXT: Final = {"type": "string", "maxLength": 1000}
WORDS: Final = {"type": "string", "minLength": 1, "maxLength": 1000}
TIME: Final = {"type": "number", "minimum": 0}

CURSOR: Final = {"type": "string", "maxLength": TEXT_LIMIT}
AFTER: Final = Param("after", CURSOR, "the cursor of the last message that was seen; `Last-Event-ID` says the same")


def route_for(method: Method, path: str, calls: Callable[..., Any], about: str, handler: Handler, **more: Any) -> Route:
    """A route for a method of `Access`: its name and its role are the method's own."""
    more = {"name": calls.__name__, **more}
    return Route(method=method, path=path, calls=calls, needs=role_of(calls), about=about, handler=handler, **more)


def after(asked: Asked) -> str:
    """From which cursor a stream goes on: what a browser says by itself when it comes back counts first."""
    # Never cut: what is left of a cursor is another cursor, and one that lies.
    return clean_text(asked.request.headers.get("last-event-id", "")) or asked.query.get("after", "")


def _paged(asked: Asked, limit: int) -> dict[str, Any]:
    """What was asked for, a page at most."""
    return {"limit": limit, **asked.query}


def _picture(data: bytes) -> str:
    """The media type of what may be shown as a picture; of everything else, that it is bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else BYTES


async def _blob(asked: Asked) -> Response:
    data = await asked.access.blob(asked.ids["session"], asked.ids["blob"])
    return Response(data, media_type=_picture(data), headers={"content-disposition": "attachment"})


async def _erase(asked: Asked) -> None:
    await asked.access.erase(asked.ids["session"])
    asked.streams.erased(asked.ids["session"])


async def _attach(asked: Asked) -> api.FileView:
    kind = asked.request.headers.get("content-type", BYTES)
    return await asked.access.attach(asked.body, kind, asked.query.get("name", ""))


async def _export(asked: Asked) -> Response:
    with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
        file = Path(folder, "session.zip")
        await asked.access.export(asked.ids["session"], file)
        data = await asyncio.to_thread(file.read_bytes)
    headers = {"content-disposition": 'attachment; filename="session.zip"'}
    return Response(data, media_type=ZIP, headers=headers)


async def _bring_in(asked: Asked) -> api.SessionView:
    if not asked.body:
        raise Refusal("unfit", "the body is a file that GET …/export gave")
    with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
        file = Path(folder, "session.zip")
        await asyncio.to_thread(file.write_bytes, asked.body)
        try:
            return await asked.access.bring_in(file)
        except UnreadableLog as error:  # of what is kept here that is our fault; this is what somebody brought
            raise Refusal("unfit", str(error)) from None


SESSION: Final = "/api/sessions/{session}"

ROUTES: Final[list[Route]] = [
    route_for("GET", "/api/me", Access.me, "Who is asking.", lambda a: a.access.me(), answer=api.Me, is_secret=True),
    route_for(
        "GET", "/api/agents", Access.agents, "Agents there are.", lambda a: a.access.agents(), answer=api.AgentList
    ),
    route_for("GET", "/api/tools", Access.tools, "Tools there are.", lambda a: a.access.tools(), answer=api.ToolList),
    route_for(
        "GET",
        "/api/sessions",
        Access.sessions,
        "Sessions, the last one touched first.",
        lambda a: a.access.sessions(**a.query),
        answer=api.SessionPage,
        query=(Param("limit", LIMIT), Param("before", TEXT, "`next` of the page before")),
    ),
    route_for(
        "POST",
        "/api/sessions",
        Access.begin,
        "Begin a session with its first message. The same `Idempotency-Key` begins it once.",
        lambda a: a.access.begin(a.body, a.key),
        body=api.NewSession,
        answer=api.Sent,
        status=201,
    ),
    route_for(
        "GET",
        SESSION,
        Access.session,
        "A session.",
        lambda a: a.access.session(a.ids["session"]),
        answer=api.SessionView,
    ),
    route_for("DELETE", SESSION, Access.erase, "Erase a session.", _erase, status=204),
    route_for(
        "GET",
        SESSION + "/messages",
        Access.messages,
        "The end of a branch: of the selected one, or of that which ends at `leaf`; with `before`, the page before it.",
        lambda a: a.access.messages(a.ids["session"], **_paged(a, MESSAGES)),
        answer=api.MessageList,
        query=(
            Param("leaf", MESSAGE),
            Param("limit", {**MOST, "default": MESSAGES}),
            Param("before", MESSAGE, "`next` of the page that comes after this one"),
        ),
    ),
    route_for(
        "POST",
        SESSION + "/messages",
        Access.send,
        "Say something. The same `Idempotency-Key` says it once.",
        lambda a: a.access.send(a.ids["session"], a.body, a.key),
        body=api.NewMessage,
        answer=api.Sent,
        status=202,
    ),
    route_for(
        "GET",
        SESSION + "/tree",
        Access.tree,
        "All messages.",
        lambda a: a.access.tree(a.ids["session"]),
        answer=api.TreeView,
    ),
    route_for(
        "GET",
        SESSION + "/log",
        Access.log,
        "The log, from a position: what is folded before the stream is followed from there.",
        lambda a: a.access.log(a.ids["session"], **a.query),
        answer=api.LogPage,
        query=(Param("after", SEQ, "the `seq` of the last entry that was seen"), Param("limit", MOST)),
    ),
    route_for(
        "GET",
        SESSION + "/queue",
        Access.queue,
        "Messages that wait until the turn before them is over.",
        lambda a: a.access.queue(a.ids["session"]),
        answer=api.QueueList,
    ),
    route_for(
        "POST",
        SESSION + "/messages/{message}/rerun",
        Access.rerun,
        "Another answer.",
        lambda a: a.access.rerun(a.ids["session"], a.ids["message"], a.body, a.key),
        body=api.Rerun,
        answer=api.Sent,
        status=202,
    ),
    route_for(
        "POST",
        SESSION + "/messages/{message}/edit",
        Access.edit,
        "A new version of what was said, and an answer to it.",
        lambda a: a.access.edit(a.ids["session"], a.ids["message"], a.body, a.key),
        body=api.Edited,
        answer=api.Sent,
        status=202,
    ),
    route_for(
        "DELETE",
        SESSION + "/messages/{message}",
        Access.delete,
        "Take a message out, and what follows it.",
        lambda a: a.access.delete(a.ids["session"], a.ids["message"]),
        status=204,
    ),
    route_for(
        "POST",
        SESSION + "/select",
        Access.select,
        "Go on from a message.",
        lambda a: a.access.select(a.ids["session"], a.body),
        body=api.Selected,
        status=204,
    ),
    route_for(
        "GET",
        SESSION + "/turns/{turn}",
        Access.turn,
        "A turn as it is now.",
        lambda a: a.access.turn(a.ids["session"], a.ids["turn"]),
        answer=api.TurnView,
    ),
    route_for(
        "POST",
        SESSION + "/turns/{turn}/cancel",
        Access.cancel,
        "End a turn.",
        lambda a: a.access.cancel(a.ids["session"], a.ids["turn"], a.body, a.key),
        body=api.Cancelled,
        status=204,
    ),
    route_for(
        "GET",
        SESSION + "/turns/{turn}/events",
        Access.follow,
        "The events of a turn, from a cursor until it is over.",
        lambda a: a.streams.turn(a.access, a.ids["session"], a.ids["turn"], after(a)),
        name="follow_turn",
        answer=api.Item,
        gives="events",
        query=(AFTER,),
    ),
    route_for(
        "GET",
        SESSION + "/events",
        Access.follow,
        "The events of all turns of a session, from a cursor, without an end.",
        lambda a: a.streams.session(a.access, a.ids["session"], after(a)),
        answer=api.Item,
        gives="events",
        query=(AFTER,),
    ),
    route_for(
        "GET",
        "/api/events",
        Access.inbox,
        "What waits for somebody, and what moves: a snapshot, and then what changes.",
        lambda a: a.streams.inbox(a.access),
        answer=api.InboxItem,
        gives="events",
    ),
    route_for(
        "GET",
        SESSION + "/gates",
        Access.gates,
        "The open gates of a session.",
        lambda a: a.access.gates(a.ids["session"]),
        name="session_gates",
        answer=api.GateList,
    ),
    route_for(
        "GET",
        "/api/gates",
        Access.gates,
        "Open gates of all sessions, the oldest first.",
        lambda a: a.access.gates(**_paged(a, GATES)),
        answer=api.GateList,
        query=(Param("limit", {**MOST, "default": GATES}), Param("after", CURSOR, "`next` of the page before")),
    ),
    route_for(
        "POST",
        SESSION + "/gates/{gate}/answer",
        Access.answer,
        "Answer a gate. Most take an approver; what is to hold everywhere takes an owner.",
        lambda a: a.access.answer(a.ids["session"], a.ids["gate"], a.body),
        body=api.Answered,
        status=204,
    ),
    route_for(
        "POST",
        SESSION + "/gates/{gate}/claim",
        Access.claim,
        "Take a call of a client tool upon oneself.",
        lambda a: a.access.claim(a.ids["session"], a.ids["gate"], a.body),
        body=api.Claim,
        answer=api.ClaimView,
    ),
    route_for(
        "GET",
        SESSION + "/grants",
        Access.grants,
        "What was allowed from then on.",
        lambda a: a.access.grants(a.ids["session"]),
        answer=api.GrantList,
    ),
    route_for(
        "DELETE",
        SESSION + "/grants/{grant}",
        Access.revoke_grant,
        "Allow it no more.",
        lambda a: a.access.revoke_grant(a.ids["session"], a.ids["grant"]),
        status=204,
    ),
    route_for(
        "POST",
        SESSION + "/revert",
        Access.revert,
        "Let files be what they were.",
        lambda a: a.access.revert(a.ids["session"], a.body),
        body=api.Reverted,
        answer=api.RevertView,
    ),
    route_for(
        "POST",
        "/api/files",
        Access.attach,
        "Keep a file: the body is its bytes, and Content-Type what they are.",
        _attach,
        takes="bytes",
        media=("*/*",),
        answer=api.FileView,
        status=201,
        upload=True,
        query=(Param("name", {"type": "string", "maxLength": 200}),),
    ),
    route_for(
        "GET",
        SESSION + "/blobs/{blob}",
        Access.blob,
        "The bytes of a file that the session mentions; always to be saved, and never to be opened in its place.",
        _blob,
        gives="bytes",
        media=(BYTES, "image/png", "image/jpeg", "image/gif", "image/webp"),
    ),
    route_for(
        "GET",
        "/api/search",
        Access.search,
        "Messages that have the words.",
        lambda a: a.access.search(a.query["q"], a.query.get("limit", 50)),
        answer=api.FoundList,
        query=(Param("q", WORDS, is_needed=True), Param("limit", LIMIT)),
    ),
    route_for(
        "GET",
        SESSION + "/export",
        Access.export,
        "A session as a file.",
        _export,
        gives="bytes",
        media=(ZIP,),
    ),
    route_for(
        "POST",
        "/api/import",
        Access.bring_in,
        "A session from such a file, under a new id.",
        _bring_in,
        takes="bytes",
        media=(ZIP,),
        answer=api.SessionView,
        status=201,
        upload=True,
    ),
    route_for(
        "GET",
        "/api/usage",
        Access.usage,
        "What was used, by day and agent.",
        lambda a: a.access.usage(**a.query),
        answer=api.UsageView,
        query=(Param("since", TIME, "seconds since 1970"),),
    ),
]
