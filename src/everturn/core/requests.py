"""What a model is shown: a neutral request that every adapter renders into its own wire format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, cast

from msgspec import Struct

from everturn.core.canonical import JsonObject, digest
from everturn.core.events import Effects
from everturn.core.options import ResultPolicy
from everturn.core.parts import CallState, FilePart, NoticePart, Opaque, ReasoningPart, TextPart
from everturn.core.policy import SubjectKind
from everturn.errors import ConfigError

Execute = Literal["auto", "ask_once", "ask", "deny"]
"""Who decides about a call where no rule does: nobody, a person until they have said `always`, a person every time."""


class ToolSpec(Struct, frozen=True, gc=False):
    """What a tool is called, takes and does. Only name, description and schema are shown to a model."""

    name: str
    description: str
    schema: JsonObject
    effects: Effects = "once"
    execute: Execute = "auto"
    timeout: float = 60.0
    result: ResultPolicy = "auto"  # who reads its results before the model does
    subjects: dict[str, SubjectKind] = {}  # arguments that say what it is done to
    repeatable: bool = False  # to call it again and again with the same arguments is no loop
    egress: bool = False  # what it is given leaves the house
    untrusted: bool = False  # what it brings was written by somebody else
    private: tuple[str, ...] = ()  # fields of its result that no model sees
    limit: int = 0  # characters of a result that a model is shown; 0: as many as of any
    origin: str = "function"
    by_hand: bool = False  # a person runs it
    echoes: bool = False  # what it is given may come back in any form: it is given no private values
    resumes: bool = False  # begun again with what it was told, it does nothing twice

    @property
    def identity(self) -> str:
        """The hash of what a model and a person were told it is, and of where it comes from."""
        return digest(self.name, self.schema, self.description, self.origin)[:32]


class RequestCall(Struct, frozen=True, gc=False, tag="call"):
    """A call the model made before. `arguments` is always a JSON object, whatever the model wrote."""

    call: str
    name: str
    arguments: str
    opaque: Opaque | None = None
    given: str = ""  # the id the provider gave it


class RequestResult(Struct, frozen=True, gc=False, tag="result"):
    """What that call came to."""

    call: str
    name: str
    text: str
    is_error: bool = False
    files: tuple[FilePart, ...] = ()
    state: CallState = "completed"  # how it was settled


RequestPart = TextPart | ReasoningPart | FilePart | NoticePart | RequestCall | RequestResult


class RequestMessage(Struct, frozen=True, gc=False):
    """One message of a request. `hint_size` is how much of its text is a digest of tools, in front of the answer."""

    role: Literal["user", "assistant", "tool"]
    parts: tuple[RequestPart, ...]
    name: str = ""
    hint_size: int = 0

    @property
    def text(self) -> str:
        """Only the text."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart | NoticePart))


REQUEST_MESSAGE_FIELDS: Final = frozenset(RequestMessage.__struct_fields__)


class ModelRequest(Struct):
    """A request as it goes to a model. Plugins may change it until it is sent; nobody may after that."""

    model: str
    system: str
    messages: list[RequestMessage]
    tools: list[ToolSpec]
    params: dict[str, Any]
    files: dict[str, bytes] = {}  # the blobs its messages mention
    memo: dict[str, Any] = {}  # what a model may keep from one request of a turn to the next; lost with the process


def request_message(source: RequestMessage | Mapping[str, Any], fields: Iterable[str]) -> RequestMessage:
    """Make a request message out of a plugin's, keeping only `fields`; `content` is short for a single text part."""
    given: Mapping[str, Any]
    if isinstance(source, RequestMessage):
        given = {name: getattr(source, name) for name in source.__struct_fields__}
    else:
        given = dict(source)
        if "content" in given:
            given = {**given, "parts": (TextPart(str(given["content"])),)}
    kept: dict[str, Any] = {name: given[name] for name in fields if name in given}
    if "role" not in kept or "parts" not in kept:
        raise ConfigError(f"a request message needs a role and parts (or content); this one has {sorted(given)}")
    kept["parts"] = tuple(cast("Iterable[RequestPart]", kept["parts"]))
    return RequestMessage(**kept)
