"""MCP tasks: what a server says about a task, when a tool is called as one, and when its status is asked for again. Pure.

Tasks are those of protocol version 2025-11-25: the server answers a call with the id of a task, and the result is
fetched later, also in another session.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, Protocol, cast

from msgspec import Struct

from everturn.core.canonical_json import JsonObject, hash_values, replace_surrogates
from everturn.errors import ToolError
from everturn.mcp.config import TaskUse

TaskSupport = Literal["forbidden", "optional", "required"]
"""What a server says about a tool (`execution.taskSupport`)."""

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]

TASK_TTL: Final = 7 * 86_400  # seconds that a server is asked to keep a task; it may decide otherwise
SHORTEST_POLL: Final = 0.1  # seconds
LONGEST_POLL: Final = 3600.0
DEFAULT_POLL: Final = 1.0
POLL_SHARE: Final = 0.1  # of the time waited so far: how late a result may be noticed
LONGEST_ID: Final = 1000  # characters of the id of a task
MOST_WAKES: Final = 20  # status notifications that resume a call; after these it is polled only
MOST_FAILURES: Final = 10  # errors in a row to `tasks/get`, after which a call gives up
STATUS: Final = "notifications/tasks/status"
RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
_STATUSES: Final = ("working", "input_required", "completed", "failed", "cancelled")


class ServerTask(Struct, frozen=True, omit_defaults=True):
    """A task as its server describes it."""

    id: str
    status: TaskStatus
    message: str = ""
    poll: float = DEFAULT_POLL  # seconds
    ttl: float | None = None  # seconds after its creation; None: without limit

    @property
    def is_over(self) -> bool:
        """Whether its status does not change any more."""
        return self.status in ("completed", "failed", "cancelled")


class TaskUnknown(ToolError):
    """The server does not know the task: it has expired, or the server was restarted."""


class TaskRefused(ToolError):
    """The server answered a request about a task with another error."""


Wake = Callable[[object], Awaitable[bool]]


class TaskQuestion(Struct, eq=False):
    """A request of a server that waits for its answer."""

    method: str
    params: JsonObject
    answer: Future[JsonObject]


class TaskClient(Protocol):
    """Requests about the tasks of one server."""

    async def get(self, task: str) -> ServerTask:
        """Ask for the status of a task."""
        ...

    async def result(self, task: str) -> JsonObject:
        """Fetch the result of a task that is over."""
        ...

    async def cancel(self, task: str) -> None:
        """Cancel a task."""
        ...

    def watch(self, task: str, wake: Wake) -> None:
        """Call `wake` once when the server reports that this task is over or requires input."""
        ...

    async def wait_for_question(self, task: str) -> TaskQuestion | None:
        """Return the question of a task that requires input."""
        ...


class TaskStart(Struct, frozen=True, omit_defaults=True):
    """What came of the request for a task. It is recorded, so that the tool is not called again."""

    task: ServerTask | None = None
    is_plain: bool = False  # the server returned the result at once
    login: str = ""  # nothing was sent: why a login is needed
    problem: str = ""
    is_unknown: bool = False  # whether the tool was run is not known


class TaskProgress(Struct, frozen=True, omit_defaults=True):
    """How far a call has waited for its task: the state that is saved while it is suspended."""

    task: str
    waits: int = 0
    waited: float = 0.0  # seconds
    failures: int = 0  # errors in a row
    logins: int = 0  # that were asked for while it waited
    answered: tuple[str, ...] = ()  # hashes of the questions that were answered


def runs_as_task(support: TaskSupport, configured: TaskUse | None, at_most_once: bool) -> bool:
    """Whether a tool is called as a task.

    Where the server leaves it open, a call that must not be repeated is: a lost response would leave its outcome
    unknown. Other calls can be sent again, and are answered sooner without a task.
    """
    if support == "optional":
        return at_most_once if configured in (None, "auto") else configured == "always"
    return support == "required"


def read_task_support(tool: JsonObject) -> TaskSupport:
    """Return what a server says about a tool in its list."""
    execution = tool.get("execution")
    support = cast("JsonObject", execution).get("taskSupport") if isinstance(execution, dict) else None
    return support if support in ("optional", "required") else "forbidden"


def read_task(raw: Any) -> ServerTask | None:
    """Read a task; None if it is none."""
    row = cast("JsonObject", raw) if isinstance(raw, dict) else {}
    name, status, message = row.get("taskId"), row.get("status"), row.get("statusMessage")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_ID or replace_surrogates(name) != name:
        return None
    if status not in _STATUSES:
        return None
    poll, ttl = _seconds(row.get("pollInterval")), _seconds(row.get("ttl"))
    return ServerTask(
        name,
        status,
        replace_surrogates(message)[:500] if isinstance(message, str) else "",
        DEFAULT_POLL if poll is None else min(max(poll, SHORTEST_POLL), LONGEST_POLL),
        ttl,
    )


def _seconds(milliseconds: Any) -> float | None:
    is_number = isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool)
    return milliseconds / 1000 if is_number and 0 <= milliseconds < 1e15 else None


def next_delay(task: ServerTask, progress: TaskProgress) -> float:
    """Return the seconds until the status is asked for again.

    It grows with the time waited so far, so a task of days makes a few hundred entries in the log; and shrinks before
    the server may delete the task.
    """
    delay = max(progress.waited * POLL_SHARE, min(2.0**progress.failures, 60.0) if progress.failures else 0.0)
    if task.ttl is not None:
        delay = min(delay, (task.ttl - progress.waited) / 2)
    return max(delay, task.poll)


def related_task(params: JsonObject) -> str:
    """Return the id of the task that a request of the server belongs to; "" if it names none."""
    meta = params.get("_meta")
    related = cast("JsonObject", meta).get(RELATED_TASK) if isinstance(meta, dict) else None
    name = cast("JsonObject", related).get("taskId") if isinstance(related, dict) else None
    return name if isinstance(name, str) else ""


def question_hash(method: str, params: JsonObject) -> str:
    """Return a name for a question, which is the same when another process is asked it again."""
    return hash_values(method, {key: value for key, value in params.items() if key != "_meta"})[:16]
