"""Sessions, their messages, logs and files."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from everturn.api.base import Body, Busy, Id, Name, Text, View
from everturn.core.context.compaction import CONTEXT_PATTERN
from everturn.core.events import FilesReverted, LogEvent
from everturn.core.messages import Message
from everturn.core.options import ClientTool, LatePolicy, PermissionMode, StepLimitPolicy, ToolHistory
from everturn.core.parts import FilePart
from everturn.core.rate_limits import Priority
from everturn.core.ratings import MAX_REASON, Rating
from everturn.core.session_parameters import SessionParameters
from everturn.core.titles import MAX_LABEL, MAX_LABELS, MAX_TITLE


class AttachedContext(Body, frozen=True, kw_only=True):
    """Context that the client attaches to a message: a selection, a page, a note. A model reads it as quoted data."""

    kind: Annotated[str, Meta(min_length=1, max_length=50)]  # "selection", "page", "note", or any other word
    text: Annotated[str, Meta(min_length=1, max_length=1_000_000)]
    title: Annotated[str, Meta(max_length=500)] = ""
    source: Annotated[str, Meta(max_length=2_000)] = ""  # where it is from: a URL, a path
    untrusted: bool = True  # it may contain text of third parties


class MessageRequest(Body, frozen=True, kw_only=True):
    """A user message: a text, files that were uploaded before, or both, with options for its turn."""

    text: Text = ""
    files: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=32)] = []  # `FileView.file`
    contexts: Annotated[list[AttachedContext], Meta(max_length=32)] = []
    agent: Name = ""  # "": that of the session, or the first one
    model: Name = ""  # "": that of the agent; otherwise one of the server's models
    compare_with: Annotated[list[Name], Meta(max_length=3)] = []  # models that answer beside `model`, in branches
    params: dict[str, Any] | None = None
    tools: Annotated[list[Name], Meta(max_length=200)] | None = None
    tool_history: ToolHistory | None = None
    context: Annotated[str, Meta(pattern=CONTEXT_PATTERN)] | None = None  # auto, off or last_turns(n)
    late: LatePolicy | None = None
    max_steps: Annotated[int, Meta(ge=1, le=1000)] | None = None
    mode: PermissionMode = ""  # plan, ask or auto_edit, if the agent has it; "": ask
    at_step_limit: StepLimitPolicy = "answer"  # ask: at `max_steps` a gate asks whether the turn may continue
    clients: Annotated[list[ClientTool], Meta(max_length=50)] = []  # tools that the sending client runs
    busy: Busy = "queue"
    priority: Priority | None = None  # where requests wait for a rate limit; None: interactive, with `at` background
    at: Annotated[float, Meta(ge=0, lt=1e11)] = 0.0  # Unix time before which its turn does not start; 0: now


class NewSession(MessageRequest, frozen=True, kw_only=True):
    """Start a session with its first message. A session has at least one message."""

    parameters: SessionParameters | None = None  # for all turns of the session

    temporary: bool = False  # it is in no list and not found by searches, and is erased after a day


class NewMessage(MessageRequest, frozen=True, kw_only=True):
    """A message at the end of the selected branch, or `after` another message."""

    after: Id | None = None


class EditMessage(Body, frozen=True, kw_only=True):
    """A new version of a user message, and an answer to it."""

    text: Text = ""
    files: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=32)] = []
    contexts: Annotated[list[AttachedContext], Meta(max_length=32)] | None = None  # None: those of the earlier version
    model: Name = ""
    mode: PermissionMode = ""
    at_step_limit: StepLimitPolicy = "answer"


class RegenerateAnswer(Body, frozen=True, kw_only=True):
    """Regenerate an answer; with `after_step` its steps up to this one stay, and the model continues there."""

    after_step: Annotated[int, Meta(ge=0)] = 0
    model: Name = ""
    mode: PermissionMode = ""
    at_step_limit: StepLimitPolicy = "answer"
    params: dict[str, Any] | None = None


class ForkAnswer(Body, frozen=True, kw_only=True):
    """Continue inside an answer: its steps up to this one are copied beside it, and the next message follows the copy."""

    step: Annotated[int, Meta(ge=1)]


class CompactSession(Body, frozen=True, kw_only=True):
    """Summarise the earlier part of the selected branch."""

    focus: Annotated[str, Meta(max_length=2_000)] = ""  # what the summary keeps above all


class PatchSession(Body, frozen=True, kw_only=True):
    """Rename, pin, archive or label a session, or choose its parameters. A field that is left out stays as it is."""

    title: Annotated[str, Meta(min_length=1, max_length=MAX_TITLE)] | None = None
    pinned: bool | None = None
    archived: bool | None = None
    labels: (
        Annotated[list[Annotated[str, Meta(min_length=1, max_length=MAX_LABEL)]], Meta(max_length=MAX_LABELS)] | None
    ) = None  # all of them; [] removes them
    parameters: SessionParameters | None = None  # all of them; {} removes them


class PutRating(Body, frozen=True, kw_only=True):
    """Rate an answer up or down; "" withdraws the caller's rating."""

    rating: Rating
    reason: Annotated[str, Meta(max_length=MAX_REASON)] = ""


class SelectBranch(Body, frozen=True, kw_only=True):
    """Select the branch that ends at a message; None: the beginning."""

    message: Id | None = None


class SwitchAgent(Body, frozen=True, kw_only=True):
    """Hand the session to another agent, which takes the next turns."""

    agent: Name


class RevertFiles(Body, frozen=True, kw_only=True):
    """Revert files: `tree` is the `before` or the `after` of a files part, or of an earlier revert."""

    root: Annotated[str, Meta(max_length=4096)]
    tree: Annotated[str, Meta(min_length=1, max_length=200)]


class SessionView(View, frozen=True, kw_only=True):
    """A session in a list."""

    id: str
    title: str
    agent: str
    by: str
    created: float
    updated: float
    leaf: str | None
    is_awake: bool
    quarantined: str
    parent: str = ""
    awaited_agent: str = ""  # it waits for a process that knows this agent; "": it does not
    pinned: bool = False
    archived: bool = False
    labels: list[str] = []
    is_renamed: bool = False  # a person gave the title
    is_listed: bool = True  # False: a temporary session, or of others, of which the caller sees the open gates only
    parameters: SessionParameters | None = None  # for `GET /api/sessions/{session}` alone


class SessionPage(View, frozen=True, kw_only=True):
    """A page of sessions, and the cursor of the next page; "": this is the last page."""

    sessions: list[SessionView]
    next: str = ""
    waiting: list[str] = []  # those of them with an open gate, in themselves or in a sub-agent run
    pinned: list[SessionView] = []  # on the first page: all pinned sessions that fit, wherever they are in the list


class MessageReceipt(View, frozen=True, kw_only=True):
    """A durable message, and the turn that it starts."""

    session: str
    turn: str
    message: str  # "" for a re-run; the copy of the steps that stay, if it begins after a step
    is_new: bool  # False: the same message was sent before with this key
    compared: list[str] = []  # the turns of the models that answer beside `turn`


class ForkedAnswer(View, frozen=True, kw_only=True):
    """The copy of an answer up to one of its steps, at the end of the branch that is selected now."""

    message: str


class RatingView(View, frozen=True, kw_only=True):
    """How a person rated an answer."""

    message: str
    rating: Rating
    reason: str
    by: str
    at: float


class MessageList(View, frozen=True, kw_only=True):
    """A branch, or its last page, oldest first, and the cursor of the page before it; "": there is none."""

    messages: list[Message]
    next: str = ""
    ratings: list[RatingView] = []  # of these messages, one of each person


class TreeView(View, frozen=True, kw_only=True):
    """All messages of a session, in the order in which they were added, and the end of the selected branch."""

    messages: list[Message]
    leaf: str | None


class LogItem(View, frozen=True, kw_only=True):
    """An event at its position in the log."""

    seq: int
    event: LogEvent


class LogPage(View, frozen=True, kw_only=True):
    """A page of a session's log, in order; `is_whole`: this is the last page, and a stream continues `after` its `seq`."""

    entries: list[LogItem]
    is_whole: bool


class LogTail(View, frozen=True, kw_only=True):
    """The last turns of a session's log, each from its first event to its last; a stream continues `after` its `seq`.

    `start` is where it begins: turns that started before are left out (`before` it brings them), and so are events of
    the session itself; 1: nothing is left out.
    """

    entries: list[LogItem]
    start: int
    seq: int
    leaf: str | None = None
    title: str = ""
    cost: float | None = None  # of the whole session, with its sub-agent runs; None if no price is known


class QueuedView(View, frozen=True, kw_only=True):
    """A message that waits until the turn before it is over. If its turn is cancelled first, it is never sent."""

    turn: str
    message: str
    at: float
    text: str
    files: list[FilePart]
    by: str = ""
    steers: str = ""  # the turn that it will join at the next step; "": it starts its own


class QueueList(View, frozen=True, kw_only=True):
    """The queued messages, in the order in which they will be sent."""

    queued: list[QueuedView]


class RevertView(View, frozen=True, kw_only=True):
    """The result of a revert."""

    reverted: FilesReverted


class FileView(View, frozen=True, kw_only=True):
    """A stored file. `file` is its handle in a message, valid for this tenant only."""

    file: str
    part: FilePart
    problem: str = ""  # of a document: why its text was not read, or not to its end


class SearchHit(View, frozen=True, kw_only=True):
    """A search hit: a message, and the title of its top-level session."""

    session: str
    message: Message
    title: str = ""
    updated: float = 0.0  # when something last happened in that session; 0: not known


class SearchResults(View, frozen=True, kw_only=True):
    """Search hits, newest first."""

    results: list[SearchHit]
