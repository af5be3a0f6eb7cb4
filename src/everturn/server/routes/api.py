"""API routes: each calls one method of `Access`, and requires the role of that method."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from starlette.responses import Response

from everturn import api
from everturn.access.access import Access
from everturn.access.administration.accounts import AccountAccess
from everturn.access.context.roles import role_of
from everturn.access.conversations.files import FileAccess
from everturn.access.conversations.log import PAGE, LogAccess
from everturn.access.conversations.prompts import PromptAccess
from everturn.access.conversations.sessions import SessionAccess
from everturn.access.gates import GateAccess
from everturn.access.memory import MemoryAccess
from everturn.core.context.context_report import ContextReport
from everturn.core.deltas import SEQ_LIMIT
from everturn.core.projections.session_reader import TEXT_LIMIT
from everturn.core.titles import MAX_LABEL
from everturn.errors import UnreadableLog
from everturn.server.decode import clean_text
from everturn.server.errors import RequestError
from everturn.server.route import Handler, HttpRequestContext, Method, Param, Route

ZIP: Final = "application/zip"
BYTES: Final = "application/octet-stream"

LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": 200}
PAGE_LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": PAGE}
MESSAGE: Final = {"type": "string", "minLength": 1, "maxLength": 200}
MESSAGES: Final = 200  # messages of a branch on one page
GATES: Final = 200
SEQ: Final = {"type": "integer", "minimum": 0, "maximum": SEQ_LIMIT}
TEXT: Final = {"type": "string", "maxLength": 1000}
SEARCH_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 1000}
TIME: Final = {"type": "number", "minimum": 0}
SESSION_FILTERS: Final = (
    Param("archived", {"type": "string", "enum": ["exclude", "include", "only"]}, "archived sessions"),
    Param("label", {"type": "string", "maxLength": MAX_LABEL}, "sessions with this label"),
    Param("agent", {"type": "string", "maxLength": 200}, "sessions that this agent has"),
    Param("since", TIME, "Unix time: sessions in which something happened at that time or later"),
)
MEMORY_PATH: Final = Param("path", SEARCH_TEXT, "of the file, relative to `/memories`", is_needed=True)

CURSOR: Final = {"type": "string", "maxLength": TEXT_LIMIT}
AFTER: Final = Param("after", CURSOR, "the cursor of the last message that was seen; `Last-Event-ID` says the same")


def route_for(method: Method, path: str, calls: Callable[..., Any], about: str, handler: Handler, **more: Any) -> Route:
    """A route for a method of `Access` or of a resource of it. Its role, and by default its name, are the method's."""
    more = {"name": calls.__name__, **more}
    return Route(method=method, path=path, calls=calls, needs=role_of(calls), about=about, handler=handler, **more)


def stream_cursor(context: HttpRequestContext) -> str:
    """The cursor from which a stream resumes. `Last-Event-ID`, which browsers send when they reconnect, takes precedence."""
    # Never truncated: a truncated cursor is a different, wrong cursor.
    return clean_text(context.request.headers.get("last-event-id", "")) or context.query.get("after", "")


def _with_limit(context: HttpRequestContext, limit: int) -> dict[str, Any]:
    """The query parameters, with a default page size."""
    return {"limit": limit, **context.query}


def _image_type(data: bytes) -> str:
    """The media type of an image that may be displayed; of everything else `application/octet-stream`."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else BYTES


async def _blob(context: HttpRequestContext) -> Response:
    data = await context.access.files.read(context.ids["session"], context.ids["blob"])
    return Response(data, media_type=_image_type(data), headers={"content-disposition": "attachment"})


async def _erase(context: HttpRequestContext) -> None:
    await context.access.sessions.erase(context.ids["session"])
    context.streams.end_erased(context.ids["session"])


async def _attach(context: HttpRequestContext) -> api.FileView:
    kind = context.request.headers.get("content-type", BYTES)
    return await context.access.files.upload(context.body, kind, context.query.get("name", ""))


async def _export(context: HttpRequestContext) -> Response:
    with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
        file = Path(folder, "session.zip")
        await context.access.sessions.export(context.ids["session"], file)
        data = await asyncio.to_thread(file.read_bytes)
    headers = {"content-disposition": 'attachment; filename="session.zip"'}
    return Response(data, media_type=ZIP, headers=headers)


async def _import_session(context: HttpRequestContext) -> api.SessionView:
    if not context.body:
        raise RequestError("unfit", "the body must be a file that GET …/export returned")
    with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
        file = Path(folder, "session.zip")
        await asyncio.to_thread(file.write_bytes, context.body)
        try:
            return await context.access.sessions.import_file(file)
        except UnreadableLog as error:  # in our own store that would be our fault; this file comes from the caller
            raise RequestError("unfit", str(error)) from None


SESSION: Final = "/api/sessions/{session}"

ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/me",
        Access.me,
        "Get the caller: tenant, user and role.",
        lambda a: a.access.me(),
        answer=api.Me,
        is_secret=True,
    ),
    route_for(
        "GET", "/api/agents", Access.agents, "List the agents.", lambda a: a.access.agents(), answer=api.AgentList
    ),
    route_for("GET", "/api/tools", Access.tools, "List the tools.", lambda a: a.access.tools(), answer=api.ToolList),
    route_for(
        "GET",
        "/api/sessions",
        SessionAccess.list,
        "List sessions, most recently changed first, without archived ones.",
        lambda a: a.access.sessions.list(**a.query),
        name="sessions",
        answer=api.SessionPage,
        query=(Param("limit", LIMIT), Param("before", TEXT, "`next` of the page before"), *SESSION_FILTERS),
    ),
    route_for(
        "POST",
        "/api/sessions",
        SessionAccess.start,
        "Start a session with its first message. Requests with the same `Idempotency-Key` start it once.",
        lambda a: a.access.sessions.start(a.body, a.key),
        body=api.NewSession,
        answer=api.MessageReceipt,
        status=201,
    ),
    route_for(
        "GET",
        SESSION,
        SessionAccess.get,
        "Get a session.",
        lambda a: a.access.sessions.get(a.ids["session"]),
        name="session",
        answer=api.SessionView,
    ),
    route_for(
        "PATCH",
        SESSION,
        SessionAccess.update,
        "Rename, pin, archive or label a session. The same `Idempotency-Key` changes it once.",
        lambda a: a.access.sessions.update(a.ids["session"], a.body, a.key),
        name="update_session",
        body=api.PatchSession,
        answer=api.SessionView,
    ),
    route_for("DELETE", SESSION, SessionAccess.erase, "Erase a session.", _erase, status=204),
    route_for(
        "GET",
        SESSION + "/messages",
        SessionAccess.messages,
        "Get the last messages of the selected branch, or of the branch that ends at `leaf`; with `before`, the "
        "page before them.",
        lambda a: a.access.sessions.messages(a.ids["session"], **_with_limit(a, MESSAGES)),
        answer=api.MessageList,
        query=(
            Param("leaf", MESSAGE),
            Param("limit", {**PAGE_LIMIT, "default": MESSAGES}),
            Param("before", MESSAGE, "`next` of the page that comes after this one"),
        ),
    ),
    route_for(
        "POST",
        SESSION + "/messages",
        SessionAccess.send,
        "Send a message. Requests with the same `Idempotency-Key` send it once.",
        lambda a: a.access.sessions.send(a.ids["session"], a.body, a.key),
        body=api.NewMessage,
        answer=api.MessageReceipt,
        status=202,
    ),
    route_for(
        "GET",
        SESSION + "/tree",
        SessionAccess.tree,
        "List all messages, of all branches.",
        lambda a: a.access.sessions.tree(a.ids["session"]),
        answer=api.TreeView,
    ),
    route_for(
        "GET",
        SESSION + "/log",
        LogAccess.page,
        "Get the log from a position on, to fold it before you follow the stream.",
        lambda a: a.access.log.page(a.ids["session"], **a.query),
        name="log",
        answer=api.LogPage,
        query=(Param("after", SEQ, "the `seq` of the last entry that was seen"), Param("limit", PAGE_LIMIT)),
    ),
    route_for(
        "GET",
        SESSION + "/log/tail",
        LogAccess.tail,
        "Get the last turns of the log, to show them before you follow the stream.",
        lambda a: a.access.log.tail(a.ids["session"], **a.query),
        name="log_tail",
        answer=api.LogTail,
        query=(
            Param("turns", PAGE_LIMIT, "how many turns; a page with much in it has fewer"),
            Param("before", SEQ, "the `start` of the page that was read last, for the turns before it"),
        ),
    ),
    route_for(
        "GET",
        SESSION + "/queue",
        LogAccess.queue,
        "List the messages that wait for the running turn to end.",
        lambda a: a.access.log.queue(a.ids["session"]),
        answer=api.QueueList,
    ),
    route_for(
        "POST",
        SESSION + "/messages/{message}/rerun",
        SessionAccess.rerun,
        "Regenerate the answer to a message, with the same model or another one; from its beginning, or after a step.",
        lambda a: a.access.sessions.rerun(a.ids["session"], a.ids["message"], a.body, a.key),
        body=api.RegenerateAnswer,
        answer=api.MessageReceipt,
        status=202,
    ),
    route_for(
        "POST",
        SESSION + "/messages/{message}/fork",
        SessionAccess.fork_answer,
        "Continue inside an answer: copies its finished steps up to one beside it, for the next message to follow.",
        lambda a: a.access.sessions.fork_answer(a.ids["session"], a.ids["message"], a.body, a.key),
        name="fork",
        body=api.ForkAnswer,
        answer=api.ForkedAnswer,
    ),
    route_for(
        "POST",
        SESSION + "/compact",
        SessionAccess.compact,
        "Summarise the earlier part of the selected branch.",
        lambda a: a.access.sessions.compact(a.ids["session"], a.body, a.key),
        body=api.CompactSession,
        answer=api.MessageReceipt,
        status=202,
    ),
    route_for(
        "GET",
        SESSION + "/context",
        SessionAccess.context,
        "Report how full the context window is, for the selected branch or the one that ends at `at`.",
        lambda a: a.access.sessions.context(a.ids["session"], **a.query),
        answer=ContextReport,
        query=(
            Param("at", MESSAGE),
            Param("model", TEXT, "the model of the next message; the agent's, if it is left out"),
        ),
    ),
    route_for(
        "POST",
        SESSION + "/messages/{message}/edit",
        SessionAccess.edit_message,
        "Edit a message: adds a new version in a branch of its own, and answers it.",
        lambda a: a.access.sessions.edit_message(a.ids["session"], a.ids["message"], a.body, a.key),
        name="edit",
        body=api.EditMessage,
        answer=api.MessageReceipt,
        status=202,
    ),
    route_for(
        "PUT",
        SESSION + "/messages/{message}/rating",
        SessionAccess.rate,
        "Rate an answer up or down, with a reason; a rating of the same caller is replaced.",
        lambda a: a.access.sessions.rate(a.ids["session"], a.ids["message"], a.body, a.key),
        body=api.PutRating,
        status=204,
    ),
    route_for(
        "DELETE",
        SESSION + "/messages/{message}",
        SessionAccess.delete_message,
        "Delete a message and all messages below it.",
        lambda a: a.access.sessions.delete_message(a.ids["session"], a.ids["message"]),
        name="delete",
        status=204,
    ),
    route_for(
        "POST",
        SESSION + "/select",
        SessionAccess.select_message,
        "Select the branch to continue from.",
        lambda a: a.access.sessions.select_message(a.ids["session"], a.body),
        name="select",
        body=api.SelectBranch,
        status=204,
    ),
    route_for(
        "POST",
        SESSION + "/agent",
        SessionAccess.switch_agent,
        "Hand the session to another agent.",
        lambda a: a.access.sessions.switch_agent(a.ids["session"], a.body, a.key),
        name="switch_agent",
        body=api.SwitchAgent,
        answer=api.SessionView,
    ),
    route_for(
        "GET",
        SESSION + "/turns/{turn}",
        SessionAccess.turn,
        "Get the current state of a turn.",
        lambda a: a.access.sessions.turn(a.ids["session"], a.ids["turn"]),
        answer=api.TurnView,
    ),
    route_for(
        "POST",
        SESSION + "/turns/{turn}/cancel",
        SessionAccess.cancel_turn,
        "Cancel a turn.",
        lambda a: a.access.sessions.cancel_turn(a.ids["session"], a.ids["turn"], a.body, a.key),
        name="cancel",
        body=api.CancelTurn,
        status=204,
    ),
    route_for(
        "GET",
        SESSION + "/turns/{turn}/events",
        Access.follow,
        "Stream the events of a turn, from a cursor until the turn is over.",
        lambda a: a.streams.turn(a.access, a.ids["session"], a.ids["turn"], stream_cursor(a)),
        name="follow_turn",
        answer=api.StreamItem,
        gives="events",
        query=(AFTER,),
    ),
    route_for(
        "GET",
        SESSION + "/events",
        Access.follow,
        "Stream the events of all turns of a session, from a cursor on, without an end.",
        lambda a: a.streams.session(a.access, a.ids["session"], stream_cursor(a)),
        answer=api.StreamItem,
        gives="events",
        query=(AFTER,),
    ),
    route_for(
        "GET",
        "/api/events",
        Access.inbox,
        "Stream pending approvals and running sessions: a snapshot, and then each change.",
        lambda a: a.streams.inbox(a.access),
        answer=api.InboxItem,
        gives="events",
    ),
    route_for(
        "GET",
        SESSION + "/gates",
        GateAccess.page,
        "List the open gates of a session.",
        lambda a: a.access.gates.page(a.ids["session"]),
        name="session_gates",
        answer=api.GateList,
    ),
    route_for(
        "GET",
        "/api/gates",
        GateAccess.page,
        "List the open gates of all sessions, oldest first.",
        lambda a: a.access.gates.page(**_with_limit(a, GATES)),
        name="gates",
        answer=api.GateList,
        query=(Param("limit", {**PAGE_LIMIT, "default": GATES}), Param("after", CURSOR, "`next` of the page before")),
    ),
    route_for(
        "POST",
        SESSION + "/gates/{gate}/answer",
        GateAccess.resolve,
        "Answer a gate. Most answers need the role approver; an answer that applies to all sessions needs owner.",
        lambda a: a.access.gates.resolve(a.ids["session"], a.ids["gate"], a.body),
        name="answer",
        body=api.AnswerGate,
        status=204,
    ),
    route_for(
        "POST",
        SESSION + "/gates/{gate}/claim",
        GateAccess.claim,
        "Claim a call of a client tool, to run it.",
        lambda a: a.access.gates.claim(a.ids["session"], a.ids["gate"], a.body),
        body=api.ClaimGate,
        answer=api.ClaimView,
    ),
    route_for(
        "GET",
        SESSION + "/grants",
        GateAccess.grants,
        'List the grants ("always allow") of a session.',
        lambda a: a.access.gates.grants(a.ids["session"]),
        answer=api.SessionGrantList,
    ),
    route_for(
        "DELETE",
        SESSION + "/grants/{grant}",
        GateAccess.revoke_grant,
        "Revoke a grant.",
        lambda a: a.access.gates.revoke_grant(a.ids["session"], a.ids["grant"]),
        status=204,
    ),
    route_for(
        "POST",
        SESSION + "/revert",
        FileAccess.revert,
        "Revert files to an earlier step.",
        lambda a: a.access.files.revert(a.ids["session"], a.body),
        body=api.RevertFiles,
        answer=api.RevertView,
    ),
    route_for(
        "POST",
        "/api/files",
        FileAccess.upload,
        "Upload a file: the body is its bytes, Content-Type its media type.",
        _attach,
        name="attach",
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
        FileAccess.read,
        "Download a file that the session refers to; always as an attachment.",
        _blob,
        name="blob",
        gives="bytes",
        media=(BYTES, "image/png", "image/jpeg", "image/gif", "image/webp"),
    ),
    route_for(
        "GET",
        "/api/search",
        SessionAccess.search,
        "Search messages.",
        lambda a: a.access.sessions.search(a.query.pop("q"), **a.query),
        answer=api.SearchResults,
        query=(
            Param("q", SEARCH_TEXT, is_needed=True),
            Param("limit", LIMIT),
            *SESSION_FILTERS,
            Param("until", TIME, "Unix time: sessions in which nothing happened at that time or later"),
        ),
    ),
    route_for(
        "GET",
        SESSION + "/export",
        SessionAccess.export,
        "Export a session as a file.",
        _export,
        gives="bytes",
        media=(ZIP,),
    ),
    route_for(
        "POST",
        "/api/import",
        SessionAccess.import_file,
        "Import an exported session under a new id.",
        _import_session,
        name="import_session",
        takes="bytes",
        media=(ZIP,),
        answer=api.SessionView,
        status=201,
        upload=True,
    ),
    route_for(
        "GET",
        "/api/memory",
        MemoryAccess.list,
        "List the caller's memory files.",
        lambda a: a.access.memory.list(),
        name="memory",
        answer=api.MemoryList,
    ),
    route_for(
        "GET",
        "/api/memory/file",
        MemoryAccess.read,
        "Get a memory file of the caller.",
        lambda a: a.access.memory.read(**a.query),
        name="read_memory",
        answer=api.MemoryFileView,
        query=(MEMORY_PATH,),
    ),
    route_for(
        "PUT",
        "/api/memory/file",
        MemoryAccess.write,
        "Write a whole memory file of the caller.",
        lambda a: a.access.memory.write(a.body),
        name="write_memory",
        body=api.PutMemory,
        answer=api.MemoryFileView,
    ),
    route_for(
        "DELETE",
        "/api/memory/file",
        MemoryAccess.delete,
        "Delete a memory file of the caller, or a directory with its files.",
        lambda a: a.access.memory.delete(**a.query),
        name="delete_memory",
        query=(MEMORY_PATH,),
        status=204,
    ),
    route_for(
        "GET",
        "/api/prompts",
        PromptAccess.list,
        "List the saved prompts of the configuration, the tenant and the caller.",
        lambda a: a.access.prompts.list(),
        name="prompts",
        answer=api.PromptList,
    ),
    route_for(
        "PUT",
        "/api/prompts",
        PromptAccess.write,
        "Write a saved prompt of the caller, or of the tenant.",
        lambda a: a.access.prompts.write(a.body),
        name="write_prompt",
        body=api.PutPrompt,
        answer=api.PromptView,
    ),
    route_for(
        "DELETE",
        "/api/prompts",
        PromptAccess.delete,
        "Delete a saved prompt of the caller, or of the tenant.",
        lambda a: a.access.prompts.delete(**a.query),
        name="delete_prompt",
        query=(
            Param("name", SEARCH_TEXT, "of the prompt", is_needed=True),
            Param("shared", {"type": "boolean"}, "the tenant's, not the caller's"),
        ),
        status=204,
    ),
    route_for(
        "GET",
        "/api/instructions",
        PromptAccess.instructions,
        "Get the instructions of a new session, layer by layer.",
        lambda a: a.access.prompts.instructions(**a.query),
        answer=api.InstructionsView,
        query=(Param("agent", TEXT, "the agent of the session; the default agent if left out"),),
    ),
    route_for(
        "PUT",
        "/api/instructions",
        PromptAccess.write_instructions,
        "Write the instructions of the caller, or of the tenant.",
        lambda a: a.access.prompts.write_instructions(a.body),
        body=api.PutInstructions,
        answer=api.InstructionsView,
    ),
    route_for(
        "GET",
        f"{SESSION}/instructions",
        PromptAccess.session_instructions,
        "Get the instructions of the next turn of a session, layer by layer.",
        lambda a: a.access.prompts.session_instructions(a.ids["session"]),
        answer=api.InstructionsView,
    ),
    route_for(
        "PUT",
        f"{SESSION}/instructions",
        PromptAccess.write_session_instructions,
        "Set the instructions of a session, for later messages.",
        lambda a: a.access.prompts.write_session_instructions(a.ids["session"], a.body, a.key),
        body=api.PutSessionInstructions,
        answer=api.InstructionsView,
    ),
    route_for(
        "GET",
        "/api/usage",
        AccountAccess.usage,
        "Get tokens and cost, by day and agent.",
        lambda a: a.access.accounts.usage(**a.query),
        answer=api.UsageView,
        query=(Param("since", TIME, "seconds since 1970"),),
    ),
    route_for(
        "GET",
        "/api/usage/cache",
        AccountAccess.cache_usage,
        "Get the requests that missed the provider's prompt cache, by cause and model.",
        lambda a: a.access.accounts.cache_usage(**a.query),
        answer=api.CacheUsageView,
        query=(Param("since", TIME, "seconds since 1970"),),
    ),
]
