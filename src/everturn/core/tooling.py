"""A tool, and what it is given while it runs: the port that most people implement. `core.ports` has the others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from everturn.core.asking import Verdict
from everturn.core.canonical import JsonObject
from everturn.core.options import Budget, Spent
from everturn.core.parts import FileChange, Output
from everturn.core.policy import Case, Rule
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError, ToolError


class Progress(Struct, frozen=True):
    """What a running tool has to say; yield it from an async generator."""

    text: str


class SubTurn(Struct, frozen=True):
    """A turn that a tool wants to be run for it: it may do, and use, at most what the turn may that called the tool."""

    prompt: str
    system: str = ""
    model: str = ""
    tools: tuple[str, ...] | None = None
    rules: tuple[Rule, ...] = ()
    budget: Budget = Budget()
    max_steps: int = 10
    session: str = ""  # of an earlier sub-turn, to go on there; "": a new one
    detached: bool = False  # it goes on when the turn that asked for it has ended


class SubAnswer(Struct, frozen=True):
    """What became of it."""

    session: str
    turn: str
    text: str
    spent: Spent = Spent()
    untrusted: bool = False
    private: bool = False
    trail: tuple[str, ...] = ()  # marks of its last calls
    failure: str = ""  # why it did not end well


async def _no_sub_turn(ask: SubTurn) -> SubAnswer:
    raise ConfigError("there is nobody here to run a sub-turn")


async def _no_results(call: str, start: int, length: int) -> str:
    raise ToolError("there are no results here that could be read")


async def _no_answer(question: Question) -> Verdict:
    raise ToolError("there is nobody here who could be asked")


async def _no_tools(name: str, arguments: JsonObject) -> Output:
    raise ToolError("there are no tools here")


def _all(name: str, arguments: JsonObject) -> bool:
    return True


def _not_kept(state: str) -> None:
    """Nothing is begun again here."""


class Question(Struct, frozen=True):
    """What a running tool wants to know before it can go on.

    A `form` is filled in by a person: with `schema`, the answer's `result` is JSON that fits it. A `client` question is
    claimed by one client, which does what the call asks for and answers with its `result`.
    """

    text: str
    kind: Literal["form", "client"] = "form"
    schema: JsonObject = {}
    name: str = ""  # by which it is known again when the tool is begun again; "": its number
    timeout: float = 0.0  # seconds; 0: as long as any gate of the turn
    once: bool = False  # what a client has begun and not answered in time, no other may begin
    lease: float = 60.0  # seconds that a client should claim it for


class Preview(Struct, frozen=True):
    """What a person is shown of a call beside its arguments; `basis` names the state of the world it was made from."""

    text: str
    basis: str = ""


class Files(Protocol):
    """The files that a session keeps in its log: a tree is the name of a blob that lists them."""

    async def tree(self) -> str:
        """The tree as it is now; "" before the first change."""
        ...

    async def change(self, make: Callable[[str], Awaitable[tuple[str, Sequence[FileChange]]]]) -> str:
        """Put another tree in its place: `make` is given the present one; nobody else changes it meanwhile."""
        ...


class Blobs(Protocol):
    """Bytes under their hashes."""

    async def put(self, data: bytes) -> str:
        """Keep them."""
        ...

    async def get(self, name: str) -> bytes:
        """Bring them back."""
        ...


class ToolContext(Struct, frozen=True):
    """What a tool may know about the call it answers. `key` is the same however often the call is tried.

    While somebody is asked (`ask`), or a call or a sub-turn of this tool waits for a person, the tool may be put aside:
    the await never returns, nothing is held in memory, and when the answer has come the tool is run again from its
    beginning. What it asked before is then answered at once, by its place in the order or by its name. `keep` is for
    what it must know then: it finds it in `kept`. A tool whose effects are `once` is put aside only if its spec says
    that it `resumes`; else it is held in memory while it waits.
    """

    session: str
    turn: str
    call: str
    key: str
    progress: Callable[[str], None]
    sub_turn: Callable[[SubTurn], Awaitable[SubAnswer]] = _no_sub_turn
    read: Callable[[str, int, int], Awaitable[str]] = _no_results  # (call, start, length) of an earlier result
    ask: Callable[[Question], Awaitable[Verdict]] = _no_answer
    run_tool: Callable[[str, JsonObject], Awaitable[Output]] = _no_tools  # permitted, asked about and logged like any
    tools: Callable[[], Mapping[str, ToolSpec]] = dict  # those that `run_tool` finds
    may: Callable[[str, JsonObject], bool] = _all  # (tool, arguments): False where a rule denies such a call
    kept: str = ""
    keep: Callable[[str], None] = _not_kept
    basis: str = ""  # of the preview that a person was shown when they allowed this
    began: float = 0.0  # when the call was started: the same however often its tool is begun
    files: Files | None = None
    blobs: Blobs | None = None
    tenant: str = ""  # whose session it is; "local" where nobody is told from anybody
    by: str = ""  # the user who asked for the turn, where users are known
    cases: Sequence[Case] = ()  # for a preview: what rules see of the call


class Tool(Protocol):
    """Something a model may call."""

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        ...

    def validate(self, arguments: JsonObject) -> JsonObject | None:
        """Check arguments before anybody is asked about them, and say what is meant by them: defaults filled in, and
        values as the tool is given them, for rules are held against that. None: just what they say.

        Raises:
            BadArguments: in words a model can act on.
        """
        ...

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[object] | AsyncIterator[object]:
        """Do it: an output, or an async iterator of `Progress` and then the output. May raise anything."""
        ...


class ToolSource(Protocol):
    """Tools that come and go by themselves, such as those of a server."""

    @property
    def origins(self) -> Sequence[str]:
        """The origins whose tools it publishes."""
        ...

    @property
    def is_opening(self) -> bool:
        """Whether some of them have never been published, and still may be soon."""
        ...

    async def open(self, publish: Callable[[str, Sequence[Tool]], None]) -> None:
        """Begin, and publish (origin, all its tools) whenever they change. It returns within a second."""
        ...

    async def aclose(self) -> None:
        """End."""
        ...
