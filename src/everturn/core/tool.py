"""Tool port: a tool, and the context it gets while it runs. `core.ports` has the other ports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, overload

from msgspec import Struct

from everturn.core.canonical_json import JsonObject
from everturn.core.gates import GateResolution
from everturn.core.memory.recall import ConversationRecall
from everturn.core.memory.user_memory import MemoryChange, MemoryFile, MemoryFileInfo, MemoryReceipt
from everturn.core.options import Budget, Spent
from everturn.core.parts import FileChange, FilePart, Output
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import Rule, SubjectCase
from everturn.errors import ConfigError, ToolError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    DepsT = TypeVar("DepsT", default=Any)
else:  # `typing` has no defaults before Python 3.13, and only type checkers need one
    from typing import TypeVar

    DepsT = TypeVar("DepsT")

T = TypeVar("T")
OutputT = TypeVar("OutputT", covariant=True)


class Progress(Struct, frozen=True):
    """Progress of a running tool; yield it from an async generator."""

    text: str


class SubagentRequest(Struct, frozen=True):
    """A sub-agent run that a tool requests. It may do and use at most what the parent turn may."""

    prompt: str
    system: str = ""
    model: str = ""
    agent: str = ""  # the name of an agent that the app knows; the other fields only narrow it
    metadata: Mapping[str, Any] | None = None  # in addition to that of the parent turn
    tools: tuple[str, ...] | None = None
    rules: tuple[Rule, ...] = ()
    budget: Budget = Budget()
    max_steps: int = 10
    session: str = ""  # of an earlier sub-agent run, to continue it; "": a new one
    detached: bool = False  # it continues after the parent turn has ended


class SubagentResult(Struct, frozen=True):
    """The result of a sub-agent run."""

    session: str
    turn: str
    text: str
    spent: Spent = Spent()
    untrusted: bool = False
    private: bool = False
    recent_calls: tuple[str, ...] = ()  # fingerprints of its last calls
    failure: str = ""  # why it failed; "": it did not
    warnings: tuple[str, ...] = ()


class Handoff(Struct, frozen=True):
    """Returned by a tool, it hands the turn to another agent; `text` is the result of the call."""

    agent: str
    text: str = ""


async def _no_subagents(ask: SubagentRequest) -> SubagentResult:
    raise ConfigError("a sub-agent run is not possible in this context")


async def _no_results(call: str, start: int, length: int) -> str:
    raise ToolError("results cannot be read in this context")


async def _no_list(start: int) -> str:
    raise ToolError("results cannot be listed in this context")


async def _no_answer(question: Question) -> GateResolution:
    raise ToolError("a question is not possible in this context")


async def _no_tools(name: str, arguments: JsonObject) -> Output:
    raise ToolError("nested calls are not possible in this context")


async def _no_step(name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    raise ToolError("a step is not possible in this context")


async def _no_sleep(seconds: float = 0.0, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0) -> None:
    raise ToolError("a timer is not possible in this context")


async def _no_external(
    start: Callable[[str], Any] | None = None,
    /,
    *,
    timeout: float = 0.0,  # noqa: ASYNC109 - the wait is durable
    hook: str = "",
    label: str = "",
) -> Any:
    raise ToolError("an external result is not possible in this context")


async def _no_documents() -> Sequence[FilePart]:
    return ()


async def _no_contributors() -> Sequence[str]:
    return ()


def _never() -> bool:
    return False


def _all(name: str, arguments: JsonObject) -> bool:
    return True


def _not_kept(state: str) -> None:
    """Default of `keep`: such a tool is never resumed."""


class Question(Struct, frozen=True):
    """A question of a running tool to a user or a client; ask it with `ctx.ask`.

    A person answers a `form`: with `schema`, the answer's `result` is JSON that fits it. A client claims a `client`
    question, runs the call and answers with its `result`.
    """

    text: str
    kind: Literal["form", "client"] = "form"
    schema: JsonObject = {}
    name: str = ""  # identifies the question when the tool is resumed; "": its number does
    timeout: float = 0.0  # seconds; 0: the gate timeout of the turn
    once: bool = False  # if a client has claimed it and not answered in time, no other client may run it
    lease: float = 60.0  # seconds that a client should claim it for


class StepRunner(Protocol):
    """`ctx.step(name, function, *args)`: see `ToolContext`."""

    async def __call__(self, name: str, function: Callable[..., Awaitable[T] | T], /, *args: Any, **kwargs: Any) -> T:
        """Run a plain or async function once, and record its JSON value."""
        ...


class Sleeper(Protocol):
    """`ctx.sleep(hours=3)`: see `ToolContext`."""

    async def __call__(
        self, seconds: float = 0.0, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0
    ) -> None:
        """Suspend the tool for a time."""
        ...


class ExternalResult(Protocol):
    """A result that another system delivers: `await ctx.external(timeout=…)` returns it."""

    @property
    def token(self) -> str:
        """What the other system delivers its value with: `POST /api/callbacks/{token}` or `app.complete(token, value)`.

        With `hook=…`, a reference that the other system repeats in its signed delivery to that inbound hook.
        """
        ...

    async def result(self) -> Any:
        """Wait for the value. The tool is suspended meanwhile.

        Raises:
            ExternalTimeout: no value was delivered in time.
        """
        ...

    @property
    def deliver(self) -> Callable[[object], Awaitable[bool]]:
        """`await deliver(value)` does what `app.complete(token, value)` does, for a connection of this process that hears
        of the value. It may be kept and called after the tool was suspended.
        """
        ...


class ExternalWaiter(Protocol):
    """`ctx.external(timeout=…)`: see `ToolContext`."""

    @overload
    async def __call__(
        self,
        start: None = None,
        /,
        *,
        timeout: float = 0.0,  # noqa: ASYNC109
        hook: str = "",
        label: str = "",
    ) -> ExternalResult: ...
    @overload
    async def __call__(
        self,
        start: Callable[[str], Any],
        /,
        *,
        timeout: float = 0.0,  # noqa: ASYNC109
        hook: str = "",
        label: str = "",
    ) -> Any: ...
    async def __call__(
        self,
        start: Callable[[str], Any] | None = None,
        /,
        *,
        timeout: float = 0.0,  # noqa: ASYNC109 - the wait is durable
        hook: str = "",
        label: str = "",
    ) -> Any:
        """Start a wait for a result of another system; with `start`, call `start(token)` once and return the value."""
        ...


class NamedAgent(Protocol[OutputT]):
    """An agent as `ctx.run_agent` takes it."""

    @property
    def name(self) -> str:
        """The name that the app knows it by."""
        ...

    def parse_output(self, text: str) -> OutputT:
        """The output that the text of its answer is."""
        ...


class Preview(Struct, frozen=True):
    """What a gate shows of a call beside its arguments; `base_version` names the base version the preview was computed from."""

    text: str
    base_version: str = ""


class FileStorage(Protocol):
    """The files of a session, kept in its log: a tree is the name of a blob that lists them."""

    async def tree(self) -> str:
        """The present tree; "" before the first change."""
        ...

    async def change(self, make: Callable[[str], Awaitable[tuple[str, Sequence[FileChange]]]]) -> str:
        """Replace the tree: `make` gets the present one and returns the new one, under a lock."""
        ...


class BlobStorage(Protocol):
    """Bytes under their hashes."""

    async def put(self, data: bytes) -> str:
        """Store bytes, and return their hash."""
        ...

    async def get(self, name: str) -> bytes:
        """The bytes with this hash."""
        ...


class MemoryStorage(Protocol):
    """The memory files of the user who started the turn: see `core.memory.user_memory`."""

    async def files(self) -> Sequence[MemoryFileInfo]:
        """All files, by path."""
        ...

    async def file(self, path: str) -> MemoryFile | None:
        """One file; None if there is none."""
        ...

    async def change(self, change: MemoryChange, base: str = "") -> MemoryReceipt:
        """Make a change, once for this call. `base`: only if the files are those that it was previewed for."""
        ...


class ParentCall(Struct, frozen=True):
    """The call that started a sub-agent run."""

    session: str
    turn: str
    call: str


class TurnInfo(Struct, frozen=True, kw_only=True):
    """What a dependency factory (`deps=`) knows about the turn; the same in every process that continues the turn."""

    session: str
    turn: str
    agent: str = ""
    tenant: str = ""
    user: str = ""  # who started the turn, if users are known
    mode: str = ""  # its permission mode
    metadata: Mapping[str, Any] = {}  # what the caller gave with the message
    parent: ParentCall | None = None  # of a sub-agent run


class RunContext(Struct, Generic[DepsT], frozen=True, kw_only=True):
    """The context of an agent's own functions, such as dynamic instructions and output validators."""

    turn: TurnInfo
    deps: DepsT
    prompt: str = ""  # the text of the message that the turn answers

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the caller gave with the message."""
        return self.turn.metadata


class ToolContext(Struct, Generic[DepsT], frozen=True, kw_only=True):
    """The context of a call: what a tool can read, ask and run while it works.

    `key` is the same for every attempt of the call.

    While a person is asked (`ask`), or a nested call or a sub-agent run of this tool waits for a person, the tool may
    be suspended: the await never returns, nothing is held in memory, and once the answer has arrived the tool is run
    again from its beginning. Its earlier questions are then answered at once from the log, matched by order or by name.
    `save_state` saves state for that run, which reads it from `saved_state`. A tool that is neither `read_only` nor
    `idempotent` is suspended only if it is `resumable`; otherwise it is held in memory while it waits.

    `await step("charge", charge, order)` runs a plain or async function once and records its JSON value: a tool that is
    run again gets the recorded value. `await sleep(hours=3)` suspends the tool until that time. `await
    external(timeout=…)` returns an `ExternalResult`: give its `token` to another system, which delivers a value with
    `POST /api/callbacks/{token}` or `app.complete(token, value)`; `await external_result.result()` waits for it.
    `await external(start, timeout=…)` does all of it: it calls `start(token)` once, and returns the value. All three
    raise `NotResumable` in a tool that is neither `read_only`, `idempotent` nor `resumable`.

    `await run_agent(agent, "task")` runs another agent in a session of its own, and returns its output.
    """

    session: str
    turn: str
    call: str
    key: str
    progress: Callable[[str], None]
    run_subagent: Callable[[SubagentRequest], Awaitable[SubagentResult]] = _no_subagents
    read: Callable[[str, int, int], Awaitable[str]] = _no_results  # (call, start, length) of an earlier result
    list_results: Callable[[int], Awaitable[str]] = _no_list  # from number `start` on, the newest first
    ask: Callable[[Question], Awaitable[GateResolution]] = _no_answer
    run_tool: Callable[[str, JsonObject], Awaitable[Output]] = (
        _no_tools  # passes rules and gates and is logged like any call
    )
    step: StepRunner = _no_step
    sleep: Sleeper = _no_sleep
    external: ExternalWaiter = _no_external
    message: str = ""  # the id of the message that contains the call
    is_cancelled: Callable[[], bool] = _never
    tools: Callable[[], Mapping[str, ToolSpec]] = dict  # the tools that `run_tool` can call
    may: Callable[[str, JsonObject], bool] = _all  # (tool, arguments): False where a rule denies such a call
    saved_state: str = ""
    save_state: Callable[[str], None] = _not_kept
    base_version: str = ""  # the base version of the preview that the approving person saw
    began: float = 0.0  # when the call was started: the same after every resume
    files: FileStorage | None = None
    blobs: BlobStorage | None = None
    memory: MemoryStorage | None = None  # of the user who started the turn
    recall: ConversationRecall | None = None  # earlier messages
    documents: Callable[[], Awaitable[Sequence[FilePart]]] = _no_documents  # attached files whose text was read
    tenant: str = ""  # the tenant of the session; "local" without accounts
    by: str = ""  # the user who started the turn, if users are known
    # Other users who sent a message into the turn, or edited the arguments of the call.
    contributors: Callable[[], Awaitable[Sequence[str]]] = _no_contributors
    deps: DepsT = None  # pyright: ignore[reportAssignmentType]  # what the factory of the agent made
    metadata: Mapping[str, Any] = {}  # what the caller gave with the message
    cases: Sequence[SubjectCase] = ()  # for a preview: the cases that rules match

    @overload
    async def run_agent(self, agent: NamedAgent[T], task: str, *, metadata: Mapping[str, Any] | None = None) -> T: ...
    @overload
    async def run_agent(self, agent: str, task: str, *, metadata: Mapping[str, Any] | None = None) -> str: ...
    async def run_agent(
        self, agent: NamedAgent[Any] | str, task: str, *, metadata: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an agent of the app on a task, and return its output; of an agent given by its name, the text.

        It may do and use at most what this turn may. `metadata` is in addition to that of this turn. Every attempt of
        the call gets the same run.

        Raises:
            ToolError: the run failed, there is no such agent, or no budget is left for it.
        """
        name = agent if isinstance(agent, str) else agent.name
        if not name:
            raise ConfigError("an agent that a tool runs needs a name: Agent(…, name='researcher')")
        answer = await self.run_subagent(SubagentRequest(prompt=task, agent=name, metadata=metadata))
        return answer.text if isinstance(agent, str) else agent.parse_output(answer.text)

    @property
    def cancelled(self) -> bool:
        """Whether the call or its turn was cancelled or has timed out: for a plain function to check now and then."""
        return self.is_cancelled()


class StoppedCall(Struct, frozen=True, kw_only=True):
    """A call that was cancelled hard, and the values of its recorded steps (`ctx.step`), by name."""

    session: str
    turn: str
    call: str
    tenant: str
    by: str  # the user who started the turn, if users are known
    steps: Mapping[str, Any]


class Tool(Protocol):
    """A tool that a model may call.

    An attribute `takes_context = False` says that `run` does not use its context: none is made then. A method `stop(call:
    StoppedCall)` is called when a call with recorded steps is cancelled hard, to stop what its steps started elsewhere.
    """

    @property
    def spec(self) -> ToolSpec:
        """The specification."""
        ...

    def validate(self, arguments: JsonObject) -> JsonObject | None:
        """Validate arguments before rules and gates see them. None: use them as they are.

        Returns the arguments with defaults filled in and values as the tool gets them: rules are matched against these.

        Raises:
            BadArguments: the arguments are invalid; the text tells the model how to fix them.
        """
        ...

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[object] | AsyncIterator[object]:
        """Run the call: returns an output, or an async iterator of `Progress` and then the output.

        May raise anything.
        """
        ...


class ToolSource(Protocol):
    """A source of tools that change at run time, such as an MCP server."""

    @property
    def origins(self) -> Sequence[str]:
        """The origins whose tools it publishes."""
        ...

    async def wait_until_open(self) -> None:
        """Wait until every origin has published its tools, or cannot before a person has done something.

        A resumed call waits for it, for a limited time.
        """
        ...

    async def open(self, publish: Callable[[str, Sequence[Tool]], None]) -> None:
        """Start, and publish (origin, all its tools) whenever they change. It returns within a second."""
        ...

    async def aclose(self) -> None:
        """Stop publishing and disconnect."""
        ...
