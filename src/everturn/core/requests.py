"""Model requests: a provider-neutral request that every adapter renders into its own wire format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, cast

from msgspec import Struct

from everturn.core.canonical_json import JsonObject, hash_values
from everturn.core.file_uploads import UploadRegister
from everturn.core.options import Approval, Review
from everturn.core.parts import CallState, FilePart, NoticePart, Opaque, ProviderToolPart, ReasoningPart, TextPart
from everturn.core.rate_limits import Sender
from everturn.core.rules.policy import SubjectKind
from everturn.errors import ConfigError


class ToolSpec(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """The specification of a tool. A model sees only name, description and schema."""

    name: str
    description: str
    schema: JsonObject
    read_only: bool = False
    idempotent: bool = False
    approval: Approval = "auto"
    timeout: float = 60.0
    review: Review = "never"  # whether a person reviews its results before the model reads them
    subjects: dict[str, SubjectKind] = {}  # arguments that rules match as paths, URLs or commands
    repeatable: bool = False  # repeated calls with the same arguments are not a loop
    egress: bool = False  # its arguments are sent outside
    untrusted: bool = False  # its results contain text from third parties
    private: tuple[str, ...] = ()  # fields of its result that are hidden from the model
    limit: int = 0  # characters of a result that the model reads; 0: the default
    origin: str = "function"
    manual: bool = False  # a person runs its calls by hand
    echoes: bool = False  # its result may repeat its arguments in any form: it gets no private values
    resumable: bool = False  # it can be suspended: run again with its recorded answers, it repeats no effect
    effects_in_steps: bool = (
        False  # all its effects are steps (`ctx.step`): after a crash it is run again, and they are not
    )
    provider: JsonObject | None = None  # the provider of the model runs it: its options by vendor

    @property
    def at_most_once(self) -> bool:
        """Whether a second run could do harm: a call is not run again after a crash."""
        return not (self.read_only or self.idempotent)

    @property
    def identity(self) -> str:
        """The hash of its name, schema, description and origin: what a model and a person were shown."""
        return hash_values(self.name, self.schema, self.description, self.origin)[:32]


class RequestCall(Struct, frozen=True, gc=False, tag="call", repr_omit_defaults=True):
    """A call the model made before. `arguments` is always a JSON object, whatever the model wrote."""

    call: str
    name: str
    arguments: str
    opaque: Opaque | None = None
    provider_id: str = ""  # the provider's id of the call


class RequestResult(Struct, frozen=True, gc=False, tag="result", repr_omit_defaults=True):
    """The result of such a call."""

    call: str
    name: str
    text: str
    is_error: bool = False
    files: tuple[FilePart, ...] = ()
    state: CallState = "completed"  # the final state of the call


RequestPart = TextPart | ReasoningPart | FilePart | NoticePart | ProviderToolPart | RequestCall | RequestResult


class RequestMessage(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """One message of a request. `hint_size` is the length of the digest of tool calls in front of its text.

    A `paused` answer is continued by its provider where it stopped, if nothing follows it.
    """

    role: Literal["user", "assistant", "tool"]
    parts: tuple[RequestPart, ...]
    name: str = ""
    hint_size: int = 0
    paused: bool = False

    @property
    def text(self) -> str:
        """Only the text."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart | NoticePart))


REQUEST_MESSAGE_FIELDS: Final = frozenset(RequestMessage.__struct_fields__)


class ModelRequest(Struct):
    """A request to a model. Plugins may change it until it is sent, and not after that."""

    model: str
    system: str
    messages: list[RequestMessage]
    tools: list[ToolSpec]
    params: dict[str, Any]
    files: dict[str, bytes] = {}  # the blobs that its messages refer to
    memo: dict[
        str, Any
    ] = {}  # a cache that a model adapter may use across the requests of a turn; lost with the process
    sender: Sender | None = None  # who sends it, for rate limits; None: nothing limits it
    provider_tools: list[ToolSpec] = []  # tools that the provider of the model runs
    uploads: UploadRegister | None = None  # of the session; None: files are sent inline
    references: dict[str, str] = {}  # blobs that the provider has -> how it names them; the adapter sets it
    cache_key: str = ""  # the same for all requests of a session to one agent, for providers that group requests by it


def build_request_message(source: RequestMessage | Mapping[str, Any], fields: Iterable[str]) -> RequestMessage:
    """Make a request message out of a plugin's, keeping only `fields`; `content` is short for a single text part."""
    attributes: Mapping[str, Any]
    if isinstance(source, RequestMessage):
        attributes = {name: getattr(source, name) for name in source.__struct_fields__}
    else:
        attributes = dict(source)
        if "content" in attributes:
            attributes = {**attributes, "parts": (TextPart(str(attributes["content"])),)}
    values: dict[str, Any] = {name: attributes[name] for name in fields if name in attributes}
    if "role" not in values or "parts" not in values:
        raise ConfigError(f"a request message needs a role and parts (or content); this one has {sorted(attributes)}")
    values["parts"] = tuple(cast("Iterable[RequestPart]", values["parts"]))
    return RequestMessage(**values)
