"""Tool port: a tool, and the context it gets while it runs. `core.ports` has the other ports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from everturn.core.canonical_json import JsonObject
from everturn.core.gates import GateResolution
from everturn.core.options import Budget, Spent
from everturn.core.parts import FileChange, Output
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import Rule, SubjectCase
from everturn.errors import ConfigError, ToolError


class Progress(Struct, frozen=True):
    """Progress of a running tool; yield it from an async generator."""

    text: str


class SubagentRequest(Struct, frozen=True):
    """A sub-agent run that a tool requests. It may do and use at most what the parent turn may."""

    prompt: str
    system: str = ""
    model: str = ""
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


async def _no_subagents(ask: SubagentRequest) -> SubagentResult:
    raise ConfigError("there is nobody here to run a sub-agent run")


async def _no_results(call: str, start: int, length: int) -> str:
    raise ToolError("there are no results here that could be read")


async def _no_answer(question: Question) -> GateResolution:
    raise ToolError("there is nobody here who could be asked")


async def _no_tools(name: str, arguments: JsonObject) -> Output:
    raise ToolError("there are no tools here")


def _all(name: str, arguments: JsonObject) -> bool:
    return True


def _not_kept(state: str) -> None:
    """Default of `keep`: such a tool is never resumed."""


class Question(Struct, frozen=True):
    """A question of a running tool to a person or a client.

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


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a tool can read and do during a call. `key` is the same for every attempt of the call.

    While a person is asked (`ask`), or a nested call or a sub-agent run of this tool waits for a person, the tool may
    be suspended: the await never returns, nothing is held in memory, and once the answer has arrived the tool is run
    again from its beginning. Its earlier questions are then answered at once from the log, matched by order or by name.
    `save_state` saves state for that run, which reads it from `saved_state`. A tool that is neither `read_only` nor
    `idempotent` is suspended only if it is `resumable`; otherwise it is held in memory while it waits.
    """

    session: str
    turn: str
    call: str
    key: str
    progress: Callable[[str], None]
    run_subagent: Callable[[SubagentRequest], Awaitable[SubagentResult]] = _no_subagents
    read: Callable[[str, int, int], Awaitable[str]] = _no_results  # (call, start, length) of an earlier result
    ask: Callable[[Question], Awaitable[GateResolution]] = _no_answer
    run_tool: Callable[[str, JsonObject], Awaitable[Output]] = (
        _no_tools  # passes rules and gates and is logged like any call
    )
    tools: Callable[[], Mapping[str, ToolSpec]] = dict  # the tools that `run_tool` can call
    may: Callable[[str, JsonObject], bool] = _all  # (tool, arguments): False where a rule denies such a call
    saved_state: str = ""
    save_state: Callable[[str], None] = _not_kept
    base_version: str = ""  # the base version of the preview that the approving person saw
    began: float = 0.0  # when the call was started: the same after every resume
    files: FileStorage | None = None
    blobs: BlobStorage | None = None
    tenant: str = ""  # the tenant of the session; "local" without accounts
    by: str = ""  # the user who started the turn, if users are known
    cases: Sequence[SubjectCase] = ()  # for a preview: the cases that rules match


class Tool(Protocol):
    """A tool that a model may call."""

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

    @property
    def is_opening(self) -> bool:
        """Whether some origins have not published their tools yet, but may do so soon."""
        ...

    async def open(self, publish: Callable[[str, Sequence[Tool]], None]) -> None:
        """Start, and publish (origin, all its tools) whenever they change. It returns within a second."""
        ...

    async def aclose(self) -> None:
        """Stop publishing and disconnect."""
        ...
